"""Words of CoNLL's files and the pieces that belong to them: `bertcli evaluate` of taggers."""

from pathlib import Path

import pytest
from conftest import Made
from helpers.family_checkpoints import make_family
from helpers.terminal import bertcli
from helpers.tokenizer_kinds import write_kind
from tokenizers import Tokenizer
from wings.evaluate.test_tasks import LABELS, judged, lines, values

import bertcli as library
from bertcli.tokens.word_places import WordPlaces

WORDS = ["The", "Zq9", "drinks", "Bx", "milk", "Kj7", "Vw", "tea", "Zq", "Q"]  # some begin with a lone "▁"
KINDS = ["xlm-roberta", "camembert", "deberta-v2", "albert"]


def word_of_each_piece(folder: Path) -> list[int]:
    """As `word_ids` of transformers gives it: the words are tokenized one by one."""
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    encoding = tokenizer.encode(WORDS, is_pretokenized=True, add_special_tokens=False)
    assert "▁" in encoding.tokens
    return [number for number in encoding.word_ids if number is not None]


@pytest.mark.parametrize("kind", KINDS)
def test_the_first_piece_of_a_word_gives_its_tag_also_where_it_is_a_lone_space(tmp_path: Path, kind: str) -> None:
    size = write_kind(tmp_path, kind)
    labels = {"id2label": {"0": "B-ORG", "1": "B-PER", "2": "B-LOC"}}
    folder = make_family(tmp_path, kind, "token_classifier", sizes={"V": size}, config=labels, seed=5)
    (record,) = library.load(folder).tag([" ".join(WORDS)], aggregation="none", ignore=())
    pieces = [entity["entity"] for entity in record["entities"]]
    numbers = word_of_each_piece(folder)
    tags: dict[int, str] = {}
    last: dict[int, str] = {}
    for number, tag in zip(numbers, pieces, strict=True):
        tags.setdefault(number, tag)
        last[number] = tag
    assert tags != last, "the pieces of a word have different tags, else this test shows nothing"
    data = lines(tmp_path / "data.jsonl", [{"tokens": WORDS, "tags": [tags[i] for i in range(len(WORDS))]}])
    found = values(judged(data, "-m", folder))
    assert (found["precision"], found["recall"], found["f1"]) == (1, 1, 1)


@pytest.mark.parametrize("kind", KINDS)
def test_pieces_belong_to_the_words_that_word_ids_says(tmp_path: Path, kind: str) -> None:
    write_kind(tmp_path, kind)
    whole = Tokenizer.from_file(str(tmp_path / "tokenizer.json")).encode(" ".join(WORDS), add_special_tokens=False)
    places = WordPlaces(WORDS)
    assert [places.number(*offsets) for offsets in whole.offsets] == word_of_each_piece(tmp_path)


def test_a_no_break_space_is_part_of_a_word(made: Made, tmp_path: Path) -> None:
    folder, file = made(head="token_classifier", id2label=LABELS), tmp_path / "data.conll"
    file.write_text("10\u00a0000 B-LOC\ntea\tO\n", encoding="utf-8")
    (worst,) = judged(file, "-m", folder)["models"][0]["worst"]
    assert worst["text"] == "10\u00a0000 tea"
    assert worst["expected"] == "10\u00a0000 (LOC)"


BILOU = {0: "O", 1: "B-PER", 2: "I-PER", 3: "L-PER", 4: "U-PER", 5: "B-LOC", 6: "I-LOC", 7: "L-LOC", 8: "U-LOC"}
BIOES = {number: tag.replace("L-", "E-").replace("U-", "S-") for number, tag in BILOU.items()}


@pytest.mark.parametrize(("scheme", "labels"), [("BILOU", BILOU), ("BIOES", BIOES)])
def test_schemes_that_mark_an_entity_s_end_are_told_apart(
    made: Made, tmp_path: Path, scheme: str, labels: dict[int, str]
) -> None:
    """The gold tags say the same in both; a model of BIOES tags judged on BILOU data has the same figures."""
    words = ["The", "king", "drinks", "tea"]
    last, unit = ("L", "U") if scheme == "BILOU" else ("E", "S")
    tags = ["B-PER", f"{last}-PER", "O", f"{unit}-LOC"]
    file = lines(tmp_path / "data.jsonl", [{"tokens": words, "tags": tags}])
    folder = made(head="token_classifier", id2label=labels, seed=4)
    left = bertcli("evaluate", file, "-m", folder, "--format", "json")
    assert f"tags are read as {scheme} in the data, as {scheme} in what" in left.err
    record = left.json
    assert record["models"][0]["worst"][0]["expected"] == "The king (PER); tea (LOC)"
    said = ["B-PER", "L-PER", "O", "U-LOC"] if scheme == "BIOES" else ["B-PER", "E-PER", "O", "S-LOC"]
    other = lines(tmp_path / "other.jsonl", [{"tokens": words, "tags": said}])
    assert values(judged(other, "-m", folder)) == values(record)


def test_what_a_tagger_finds_in_bilou_is_read_as_bilou(made: Made, tmp_path: Path) -> None:
    """The model's own tags as gold give F1 1 only if its U is read, though in the data every entity is one word."""
    folder = made(head="token_classifier", id2label={0: "U-PER", 1: "U-LOC", 2: "B-PER", 3: "O"}, seed=40)
    words = ["The", "king", "drinks", "tea"]
    (record,) = library.load(folder).tag([" ".join(words)], aggregation="none", ignore=())
    starts = {0: 0, 4: 1, 9: 2, 16: 3}
    tags = {starts[one["start"]]: one["entity"] for one in record["entities"] if one["start"] in starts}
    file = lines(tmp_path / "data.jsonl", [{"tokens": words, "tags": [tags[i] for i in range(4)]}])
    found = judged(file, "-m", folder)
    assert values(found)["f1"] == 1
    assert {row["label"]: row["support"] for row in found["models"][0]["labels"]} == {"LOC": 1, "PER": 3}


def test_a_scheme_that_is_asked_for_says_that_names_are_tags(made: Made, tmp_path: Path) -> None:
    """Where every entity is one word, and the model's labels have no prefixes, S-PER could be a name."""
    file = lines(tmp_path / "data.jsonl", [{"tokens": ["The", "king"], "tags": ["O", "S-PER"]}])
    folder = made(head="token_classifier", id2label={0: "PER", 1: "O"})
    assert "the type 'S-PER' is not one of this model's" in bertcli("evaluate", file, "-m", folder).err
    (row,) = judged(file, "-m", folder, "--scheme", "BIOES")["models"][0]["labels"]
    assert (row["label"], row["support"]) == ("PER", 1)
