"""tag on words: what belongs to a word, where it is in the text, and that redaction hides all of it."""

import json
import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from helpers.json_files import write_json
from helpers.known_taggers import byte_tagger, word_piece_tagger
from helpers.served import serving
from helpers.terminal import bertcli as command
from helpers.terminal import wrong_usage
from helpers.tokenizer_kinds import write_kind
from safetensors import safe_open
from safetensors.numpy import save_file
from tokenizers import pre_tokenizers as split

import bertcli
from bertcli.errors import BertcliError
from bertcli.kinds.entities import LabelledSpan
from bertcli.tasks.parts import redact
from bertcli.tasks.parts.tagged_words import bio_tags

AGGREGATIONS: tuple[Any, ...] = ("none", "simple", "first", "max", "average")
NOVARA = ("we", "met", "in", "no", "##vara", "##1", "today", "-", "x", ".", ",", "(", ")")


def spans(record: Any) -> list[tuple[str, int, int]]:
    return [(one["entity_group"], one["start"], one["end"]) for one in record["entities"]]


@pytest.fixture(scope="module")
def novara(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """It takes only the first piece of "novara" for a place."""
    return word_piece_tagger(tmp_path_factory.mktemp("novara"), NOVARA, {"no": 1})


def test_redact_hides_whole_words(novara: Path) -> None:
    texts = ("we met in novara today", "No\u0301vara, (no) x-no no.", "NOVARA")
    expected = ["we met in [LOC] today", "[LOC], ([LOC]) [LOC] [LOC].", "[LOC]"]
    for aggregation in AGGREGATIONS:
        arguments = ("tag", "-m", novara, "--redact", "--aggregation", aggregation)
        assert command(*arguments, *texts).out.splitlines() == expected
    entity = bertcli.load(novara).tag(texts[0], redact=True, keep_text=True)["entities"][0]
    assert (entity["word"], entity["start"], entity["end"]) == ("no", 10, 12)
    with serving([bertcli.load(novara)]) as running:
        parameters = {"redact": True, "redact_with": "***"}
        given = running.given("/tag", {"inputs": texts[0], "parameters": parameters})
        assert given["redacted"] == "we met in *** today"
        refused = running.ask("/tag", {"inputs": texts[0], "parameters": {**parameters, "redact_with": "z" * 201}})
        assert refused.status == 422


def test_redact_leaves_nothing_of_an_entity_that_two_windows_see(novara: Path) -> None:
    record = bertcli.load(novara).tag("no no no no no", max_length=5, stride=1, aggregation="first", redact=True)
    assert record["redacted"] == "[LOC] [LOC] [LOC] [LOC] [LOC]"


def test_redact_bounds_what_stands_for_an_entity(novara: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    why = "has 100,000 characters, which each entity would get: give at most 200."
    wrong_usage("tag", "-m", novara, "--redact", "--redact-with", "z" * 100_000, "no", why=why)
    assert redact.LONGEST_RESULT == 20_000_000
    monkeypatch.setattr(redact, "LONGEST_RESULT", 100_000)
    with pytest.raises(BertcliError, match=r"has 1,000 entities, and the text that replaces them is too long"):
        bertcli.load(novara).tag("no " * 1000, redact=True, redact_with="z" * 200)
    with pytest.raises(BertcliError, match="name a type in at most 1,000"):
        bertcli.load(novara).tag("no", labels=["z" * 1001])


def test_offsets_begin_where_words_do_after_any_pre_tokenizer(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """RobBERT's puts a space before each word itself, and then trims it from the word's characters."""
    caplog.set_level(logging.INFO, "bertcli")
    space = split.ByteLevel(add_prefix_space=True)
    splitters: Sequence[Any] = (
        split.Sequence([split.Whitespace(), space, split.Punctuation()]),
        split.Sequence([split.WhitespaceSplit(), space]),
        split.Sequence([split.BertPreTokenizer(), space]),
        split.Sequence([split.Punctuation(), space]),
        split.Sequence([split.Digits(individual_digits=True), space]),
        space,
    )
    for number, splitter in enumerate(splitters):
        folder = tmp_path / str(number)
        model = bertcli.load(byte_tagger(folder, ["in", "Amsterdam"], {"ĠAmsterdam": 1}, splitter))
        # A setting that two components have is named once.
        assert caplog.messages[-1].count("add_prefix_space false") == 1
        inside, first = model.tag(["in Amsterdam", "Amsterdam in"], redact=True)
        assert (spans(inside), inside["redacted"]) == ([("LOC", 3, 12)], "in [LOC]")
        assert spans(model.tag("in\tAmsterdam")) in ([("LOC", 3, 12)], [])
        if number < 5:
            # The class RoBERTa's own setting, no space before the first word, holds for a pre-tokenizer alone.
            assert (spans(first), first["redacted"]) == ([("LOC", 0, 9)], "[LOC] in")
        if number in (0, 2, 3):
            record = model.tag("in (Amsterdam)")
            assert spans(record) == [("LOC", 4, 13)]
    arguments = ("tag", "-m", tmp_path / "0", "--redact", "in Amsterdam")
    assert command(*arguments).out == "in [LOC]\n"


def test_words_are_those_of_the_tokenizer(tmp_path: Path) -> None:
    label_of = {"ĠBerlin": 1, **dict.fromkeys("Paris", 3)}
    model = byte_tagger(tmp_path / "bytes", ["Berlin", "Paris", "is"], label_of)
    texts = ["is Berlin\nParis", "is\tBerlin", "is\u00a0Berlin", "is, Berlin", "is \u2028is"]
    for aggregation in ("first", "max", "average"):
        records = command("tag", "-m", model, "--aggregation", aggregation, "--format", "jsonl", *texts).records
        assert spans(records[0]) == [("PER", 0, 2), ("LOC", 3, 9), ("PER", 10, 15)]
        assert spans(records[1]) == [("PER", 0, 2)]
        assert spans(records[3]) == [("PER", 0, 2), ("LOC", 4, 10)]


def test_words_keep_letters_whose_number_changes_on_the_way(tmp_path: Path) -> None:
    """İ in lower case is two characters, of which one is then stripped; ﬀ stays, and an unknown letter is a piece."""
    model = bertcli.load(word_piece_tagger(tmp_path, ["i", "##stanbul", "x", "##i", "a", "##a"], {"i": 1, "a": 3}))
    for text, expected in (("İstanbul x", [("LOC", 0, 8)]), ("xx İi", [("LOC", 3, 5)]), ("a\u0301a", [("PER", 0, 3)])):
        for aggregation in ("first", "max"):
            record = model.tag(text, aggregation=aggregation)
            assert spans(record) == expected


def test_words_of_a_tokenizer_that_parts_nothing_are_parted_by_spaces(tmp_path: Path) -> None:
    from helpers.opened_folders import tokenizer_of

    from bertcli.tokens.text_words import word_numbers, word_spans

    write_kind(tmp_path, "gemma3_text")
    text = "The hot  tea\nis here"
    (tokens,) = tokenizer_of(tmp_path).encode([text])
    assert {word for word in tokens.words if word is not None} == {0}
    numbers = word_numbers(text, tokens)
    words = [text[start:end].strip() for start, end in word_spans(numbers, tokens.offsets)]
    assert [word for word in words if word] == ["The", "hot", "tea", "is", "here"]


def test_redact_hides_a_word_with_signs_inside_that_the_tokenizer_takes_for_one(tmp_path: Path) -> None:
    by_space = split.ByteLevel(add_prefix_space=True, use_regex=False)
    model = byte_tagger(tmp_path, ["in"], {"b": 3}, split.Sequence([split.WhitespaceSplit(), by_space]))
    record = bertcli.load(model).tag("in o'brien, in", redact=True)
    assert record["redacted"] == "in [PER], in"


# ------------------------------------------------------------------------------------------------- texts given as words

# "novara" has two pieces, of which the second has another label; a sign alone has no piece of its own.
GIVEN = ["we", "met", "novara today", "\u200b", "in", "no"]
TAGS_OF = {
    "none": ["O", "O", "B-LOC", "O", "B-PER", "B-LOC"],
    "simple": ["O", "O", "B-LOC", "O", "B-PER", "B-LOC"],
    "first": ["O", "O", "B-LOC", "O", "B-PER", "B-LOC"],
    "max": ["O", "O", "I-PER", "O", "B-PER", "B-LOC"],
    "average": ["O", "O", "I-PER", "O", "B-PER", "B-LOC"],
}


@pytest.fixture(scope="module")
def of_pieces(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tagger that is surest of the second piece of "novara"."""
    folder = word_piece_tagger(tmp_path_factory.mktemp("pieces"), NOVARA, {"no": 1, "##vara": 4, "in": 3})
    with safe_open(folder / "model.safetensors", "numpy") as file:
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (it is no dict)
    of_token = tensors["bert.embeddings.word_embeddings.weight"]
    of_token[5 + NOVARA.index("no"), 0] = 4
    save_file(tensors, folder / "model.safetensors")
    return folder


@pytest.mark.parametrize("aggregation", AGGREGATIONS)
def test_a_row_with_words_gives_a_tag_for_each(aggregation: Any, of_pieces: Path, tmp_path: Path) -> None:
    rows = tmp_path / "rows.jsonl"
    write_json(rows, {"tokens": GIVEN, "ner_tags": [0] * len(GIVEN)})
    model, row = bertcli.load(of_pieces), {"tokens": GIVEN}
    (record,) = command("tag", "-m", of_pieces, "-i", rows, "--aggregation", aggregation, "--format", "jsonl").records
    assert (record["tokens"], record["tags"]) == (GIVEN, TAGS_OF[aggregation])
    assert record["text"] == " ".join(GIVEN)
    assert record == model.tag(row, aggregation=aggregation)
    assert model.tag([row, "no"], aggregation=aggregation)[0] == record
    alone = model.tag(" ".join(GIVEN), aggregation=aggregation)
    assert record == {**record, **alone}
    assert "tags" not in alone
    with serving([model]) as running:
        asked = {"inputs": [row, row], "parameters": {"aggregation": aggregation}}
        assert running.given("/tag", asked)[0] == record
        assert running.given("/tag", {**asked, "inputs": "no"})[0]["word"] == "no"


def test_tags_of_words_in_windows_and_in_parquet(novara: Path, tmp_path: Path) -> None:
    words = ["no", "we", "novara"] * 9
    expected = ["B-LOC", "O", "B-LOC"] * 9
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    parquet.write_table(arrow.table({"id": [7], "tokens": [words]}), tmp_path / "rows.parquet")
    arguments = ("tag", "-m", novara, "-i", tmp_path / "rows.parquet", "--format", "jsonl", "--keep", "id")
    (record,) = command(*arguments).records
    assert (record["tokens"], record["tags"], record["id"]) == (words, expected, 7)
    for max_length, stride in ((7, 2), (12, 5), (40, 0)):
        found = bertcli.load(novara).tag({"words": words}, max_length=max_length, stride=stride, ignore=["O", "LOC"])
        assert (found["tags"], found["entities"]) == (expected, [])


def test_redact_of_words_gives_a_text_and_no_words(novara: Path, tmp_path: Path) -> None:
    rows = tmp_path / "rows.jsonl"
    rows.write_text('{"id": 1, "tokens": ["met", "Novara", "."]}\n')
    arguments = ("tag", "-m", novara, "-i", rows, "--redact")
    assert command(*arguments).out == "met [LOC] .\n"
    (record,) = command(*arguments, "--keep", "all", "--format", "jsonl").records
    assert record.keys() == {"index", "truncated", "entities", "redacted", "hidden", "id"}
    assert "ovara" not in json.dumps(record)
    rows.write_text('{"id": 1, "tokens": ["met", "Novara", "."], "tags": [0, 1, 0]}\n')
    said = f"{rows}, line 1: the record of words has a field 'tags' of its own: rename that of the input"
    assert said in command("tag", "-m", novara, "-i", rows, "--keep", "tags").error
    (of_gold,) = command(*arguments, "--keep", "tags", "--format", "jsonl").records
    assert of_gold["tags"] == [0, 1, 0]
    rows.write_text('{"id": 1, "tokens": ["met", "Novara", "."]}\n')
    rows.write_text('{"text": "in", "tokens": ["met"]}\n{"tokens": ["Novara"]}\n')
    of_text, of_words = command(*arguments, "--keep", "all", "--format", "jsonl").records
    assert of_text["tokens"] == ["met"]
    assert "tokens" not in of_words
    rows.write_text('{"id": 1, "tokens": ["met", "Novara", "."]}\n')
    (kept,) = command(*arguments, "--keep-text", "--format", "jsonl").records
    assert (kept["tokens"], kept["tags"]) == (["met", "Novara", "."], ["O", "B-LOC", "O"])
    assert "Note: column 'id' was not looked at." in command(*arguments, "-o", tmp_path / "clean.jsonl").err
    assert (tmp_path / "clean.jsonl").read_text() == '{"id": 1, "tokens": "met [LOC] ."}\n'
    rows.write_text('{"text": "met Novara", "n": 1}\n{"id": 1, "tokens": ["met", "Novara", "."]}\n')
    assert "Note: columns 'n', 'id' were not looked at." in command(*arguments, "-o", tmp_path / "mixed.jsonl").err
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    parquet.write_table(arrow.table({"id": [1], "tokens": [["met", "Novara"]]}), tmp_path / "rows.parquet")
    again = tmp_path / "o.parquet"
    assert command("tag", "-m", novara, "-i", tmp_path / "rows.parquet", "--redact", "-o", again).status == 0
    assert parquet.read_table(again).to_pylist() == [{"id": 1, "tokens": "met [LOC]"}]


def test_a_row_with_a_text_is_read_by_its_text(novara: Path, tmp_path: Path) -> None:
    rows = tmp_path / "rows.jsonl"
    rows.write_text('{"text": "in no", "tokens": ["we"]}\n{"tokens": []}\n')
    result = command("tag", "-m", novara, "-i", rows, "--keep-going", "--format", "jsonl")
    first, second = result.records
    assert (first["text"], "tags" in first) == ("in no", False)
    assert "line 2: the field 'tokens' is [], which is not a text." in second["error"]
    table = tmp_path / "rows.csv"
    table.write_text("tokens\nwe\n")
    assert "there is no field 'text'" in command("tag", "-m", novara, "-i", table).error
    wrongs: list[Any] = [{"tokens": []}, {"tokens": "no"}, {"tokens": [1]}, {"text": "no", "tokens": ["no"]}, {}]
    for wrong in wrongs:
        with pytest.raises(BertcliError, match=r'A text must be a string, or \{"tokens": \[its words\]\}, but'):
            bertcli.load(novara).tag([wrong])


def test_tags_of_named_types_are_bio() -> None:
    spans = ((0, 7, "person"), (13, 23, "street"), (24, 25, "street"))
    found = [LabelledSpan(*span, 0.9) for span in spans]
    words = ["Ann", "Lee", "left", "Oak", "Street", "12", "."]
    expected = ["B-person", "I-person", "O", "B-street", "I-street", "B-street", "O"]
    assert bio_tags(words, found[::-1]) == expected
    # Of parts of one word the later counts.
    parts = [LabelledSpan(10, 15, "street", 0.9), LabelledSpan(8, 9, "person", 0.8)]
    assert bio_tags(words, parts) == ["O", "O", "B-street", "I-street", "O", "O", "O"]
