"""Schemes of labels: which labels have a prefix, which entities they make, and which sequences are legal."""

import itertools
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.known_taggers import word_piece_tagger
from helpers.terminal import bertcli
from hypothesis import given
from hypothesis import strategies as st

import bertcli as library
from bertcli.tasks.compute.tag import Labelling, Piece
from bertcli.tasks.compute.tag import entities as tagged
from bertcli.tasks.parts.label_schemes import NO_ENTITY, LabelSet, Tag, entities, open_scheme
from bertcli.tasks.parts.legal_path import legal_path, may_follow

# The labels of a set, and those of them that are names; all others are tags, a prefix and a type.
SETS = [
    ("O B-PER I-PER B-LOC", ""),
    ("O I-PER I-LOC", ""),
    ("O B-PER B-LOC", ""),
    ("O B-PER I-PER E-PER S-PER", ""),
    ("O B-PER I-PER L-PER U-PER", ""),
    # A type that occurs in single words alone has no B-.
    ("O B-PER E-PER S-LOC", ""),
    ("O B-PER L-PER U-LOC", ""),
    # Names that only look so.
    ("O B-PER I-PER E-mail", "E-mail"),
    ("O B-PER I-PER E-PER S-PER E-mail L-shape", "E-mail L-shape"),
    ("O B-PER I-PER E-PER U-235", "U-235"),
    ("O B-12 C-vitamin", "B-12 C-vitamin"),
    ("O E-mail I-phone", "E-mail I-phone"),
    ("E-mail S-Bahn U-Bahn L-shape", "E-mail S-Bahn U-Bahn L-shape"),
    ("PROPN VERB E-mail", "PROPN VERB E-mail"),
    # A type that is called O, one with a hyphen, and prefixes without a type.
    ("O B-O I-O", ""),
    ("O B-ARGM-LOC I-ARGM-LOC", ""),
    ("O B I", ""),
    ("O B I L U", ""),
    ("O B PER", "B PER"),
    ("O B-PER PER LOC", "PER LOC"),
    ("O B-PER I-PER MISC", "MISC"),
]


def as_tag(label: str) -> Tag:
    """A label that is a tag: of BILOU the prefixes are those of BIOES, and a prefix alone has the type "entity"."""
    prefix, _, type = label.partition("-")
    return Tag({"L": "E", "U": "S"}.get(prefix, prefix), type or "entity")


@pytest.mark.parametrize(("labels", "names"), SETS, ids=[labels for labels, _ in SETS])
def test_prefixes_count_where_the_set_has_them_for_the_same_types(labels: str, names: str) -> None:
    of_set = labels.split()
    expected = {label: Tag("", label) if label in names.split() else as_tag(label) for label in of_set if label != "O"}
    for in_order in (of_set, of_set[::-1]):
        assert {name: tag for name, tag in LabelSet(in_order).tags.items() if name != "O"} == expected


WORDS = ["we", "met", "anna", "lee", "smith", "in", "new", "york", "and", "novara", "."]
ONE_TEXT = " ".join(WORDS)
# In each scheme the tags of anna lee smith, new york, novara.
SAME_ENTITIES = {
    "IOB2": "B-PER I-PER I-PER B-LOC I-LOC B-LOC",
    "IOB1": "I-PER I-PER I-PER I-LOC I-LOC I-LOC",
    "BIOES": "B-PER I-PER E-PER B-LOC E-LOC S-LOC",
    "BILOU": "B-PER I-PER L-PER B-LOC L-LOC U-LOC",
    "plain": "PER PER PER LOC LOC LOC",
}
FOUND = [("PER", "anna lee smith"), ("LOC", "new york"), ("LOC", "novara")]


def tagger(folder: Path, tags: str, words: str = "anna lee smith new york novara") -> Path:
    labels = ["O", *dict.fromkeys(tags.split())]
    numbers = {word: labels.index(tag) for word, tag in zip(words.split(), tags.split(), strict=True)}
    return word_piece_tagger(folder, [*dict.fromkeys([*WORDS, *words.split()])], numbers, labels)


@pytest.mark.parametrize("scheme", SAME_ENTITIES)
def test_tag_redact_and_evaluate_find_the_same_entities_in_each_scheme(scheme: str, tmp_path: Path) -> None:
    folder = tagger(tmp_path / "m", SAME_ENTITIES[scheme])
    for aggregation in ("simple", "first", "max", "average"):
        (record,) = bertcli("tag", "-m", folder, "--aggregation", aggregation, "--format", "jsonl", ONE_TEXT).records
        assert [(one["entity_group"], ONE_TEXT[one["start"] : one["end"]]) for one in record["entities"]] == FOUND
    for more, hidden in (([], "[PER] in [LOC] and [LOC]"), (["--only", "LOC"], "anna lee smith in [LOC] and [LOC]")):
        for aggregation in ("simple", "none"):
            redacted = bertcli("tag", "-m", folder, "--redact", "--aggregation", aggregation, *more, ONE_TEXT)
            assert redacted.out == f"we met {hidden} .\n"
    tags = dict(zip(["anna", "lee", "smith", "new", "york", "novara"], SAME_ENTITIES[scheme].split(), strict=True))
    gold = tmp_path / "gold.conll"
    gold.write_text("".join(f"{word} {tags.get(word, 'O')}\n" for word in WORDS), encoding="utf-8")
    result = bertcli("evaluate", gold, "-m", folder, "--format", "json")
    figures = result.json["models"][0]["metrics"]
    assert {figures[name]["value"] for name in ("f1", "precision", "recall", "f1:PER", "f1:LOC")} == {1.0}
    assert f"as {'plain labels' if scheme == 'plain' else scheme} in what" in result.err


def test_a_folder_with_few_labels_of_bioes_is_read_as_bioes(tmp_path: Path) -> None:
    """Its labels, in this order, lack I-LOC, S-PER and most others."""
    labels = ["O", "B-LOC", "E-LOC", "B-PER", "E-PER", "S-LOC", "I-PER"]
    of_words = ["O", "O", "B-PER", "I-PER", "E-PER", "O", "B-LOC", "E-LOC", "O", "S-LOC", "O"]
    tags = dict(zip(WORDS, of_words, strict=True))
    numbers = {word: labels.index(tag) for word, tag in tags.items()}
    folder = word_piece_tagger(tmp_path / "m", WORDS, numbers, labels)
    record = library.load(folder).tag(ONE_TEXT)
    assert [(one["entity_group"], one["word"]) for one in record["entities"]] == FOUND
    assert bertcli("tag", "-m", folder, "--redact", ONE_TEXT).out == "we met [PER] in [LOC] and [LOC] .\n"


def test_types_called_o_and_labels_without_a_type_are_entities(tmp_path: Path) -> None:
    called_o = tagger(tmp_path / "o", "B-O I-O I-O B-LOC I-LOC B-LOC")
    record = library.load(called_o).tag(ONE_TEXT)
    assert [one["entity_group"] for one in record["entities"]] == ["O", "LOC", "LOC"]
    redact = ("tag", "-m", called_o, "--redact", ONE_TEXT)
    assert bertcli(*redact).out == "we met [O] in [LOC] and [LOC] .\n"
    assert bertcli(*redact, "--ignore", "").out == "we met [O] in [LOC] and [LOC] .\n"
    assert bertcli(*redact, "--only", "O", "--aggregation", "none").out == "we met [O] in new york and novara .\n"
    untyped = tagger(tmp_path / "b", "B I I B I B")
    record = library.load(untyped).tag(ONE_TEXT)
    spans = [(one["entity_group"], one["word"]) for one in record["entities"]]
    assert spans == [("entity", name) for _, name in FOUND]
    redacted = bertcli("tag", "-m", untyped, "--redact", "--only", "entity", ONE_TEXT)
    assert redacted.out == "we met [entity] in [entity] and [entity] .\n"
    assert "choose from 'entity'" in bertcli("tag", "-m", untyped, "--redact", "--only", "B", ONE_TEXT).error


def test_pieces_of_one_word_that_are_all_its_end_or_a_single_word_are_one_entity(tmp_path: Path) -> None:
    labels = ("O", "B-PER", "E-PER", "S-LOC")
    folder = word_piece_tagger(
        tmp_path / "m", ["anna", "smi", "##th", "nova", "##ra"],
        {"anna": 1, "smi": 2, "##th": 2, "nova": 3, "##ra": 3}, labels,
    )  # fmt: skip
    record = library.load(folder).tag("anna smith novara novara")
    assert [one["word"] for one in record["entities"]] == ["anna smith", "novara", "novara"]


# ------------------------------------------------------------------------------------- tag and evaluate agree

LABELS_OF = {
    "IOB2": "O B-X I-X B-Y I-Y", "IOB1": "O B-X I-X I-Y B-Y", "BIOES": "O B-X I-X E-X S-X B-Y E-Y I-Y S-Y",
    "BILOU": "O B-X I-X L-X U-X B-Y I-Y L-Y U-Y", "plain": "O X Y", "with a name": "O B-X I-X E-X S-X E-mail",
    "no I-Y": "O B-X I-X B-Y", "IO": "O I-X I-Y",
}  # fmt: skip
# A legal sequence in each scheme, with a space after each label, written down apart from the code.
LEGAL = {
    "IOB2": r"(O |B-(?P<a>[XY]) (I-(?P=a) )*)*",
    "BIOES": r"(O |S-[XY] |B-(?P<a>[XY]) (I-(?P=a) )*E-(?P=a) )*",
    "BILOU": r"(O |U-[XY] |B-(?P<a>[XY]) (I-(?P=a) )*L-(?P=a) )*",
    "plain": r"([OXY] )*",
    "with a name": r"(O |E-mail |S-X |B-X (I-X )*E-X )*",
    "no I-Y": r"(O |B-X (I-X )*|B-Y )*",
    "IO": r"(O |I-[XY] )*",
}


@given(st.data())
def test_tag_and_evaluate_find_the_same_entities_in_legal_labels(data: Any) -> None:
    scheme = data.draw(st.sampled_from([*LEGAL]))
    labels = LabelSet(LABELS_OF[scheme].split())
    names = data.draw(st.from_regex(f"(?:{LEGAL[scheme]})", fullmatch=True)).split()[:12]
    tags = [labels.tags[name] for name in names]
    if "E" in {tag.prefix for tag in labels.tags.values()} and tags and not may_follow(tags[-1], NO_ENTITY, labels):
        return
    pieces = [Piece(number, 2 * number, 2 * number + 1, "a", False) for number in range(len(names))]
    rows = np.array([[name == label for label in labels.labels] for name in names], float)
    rows = rows.reshape(len(names), len(labels.labels))
    found = tagged(pieces, rows, labels, Labelling(), " ".join)
    expected = entities(tags, labels.closed_scheme or open_scheme([tags]))
    in_order = sorted(expected, key=lambda one: one.start)
    assert [(one.label, one.start // 2, one.end // 2 + 1) for one in found] == in_order


# ---------------------------------------------------------------------------------------------- the legal path


def by_trying_all(rows: Any, names: list[str], scheme: str) -> list[tuple[str, ...]]:
    """The likeliest legal sequences of labels: every sequence is tried."""
    best, kept = -np.inf, list[tuple[str, ...]]()
    for path in itertools.product(range(len(names)), repeat=len(rows)):
        chosen = tuple(names[number] for number in path)
        if not re.fullmatch(LEGAL[scheme], "".join(f"{name} " for name in chosen)):
            continue
        score = sum(np.log(row[number]) for row, number in zip(rows, path, strict=True))
        if score > best + 1e-9:
            best, kept = score, []
        if score > best - 1e-9:
            kept.append(chosen)
    return kept


@pytest.mark.parametrize("scheme", LEGAL)
def test_the_legal_path_is_the_best_of_all_paths(scheme: str) -> None:
    names = LABELS_OF[scheme].split()
    labels, random = LabelSet(names), np.random.default_rng(7)
    changed = 0
    for length in (1, 2, 3, 4):
        for _ in range(12):
            rows = random.dirichlet(np.full(len(names), 0.7), length)
            likeliest = rows.argmax(axis=1).tolist()
            path = legal_path(rows, likeliest, labels, [False] * length)
            assert tuple(names[number] for number in path) in by_trying_all(rows, names, scheme)
            changed += path != likeliest
    assert bool(changed) == (scheme not in ("plain", "IO"))


def test_where_a_text_is_cut_an_entity_may_go_on() -> None:
    labels = LabelSet(["O", "B-X", "I-X", "E-X"])
    rows = np.array([[0.1, 0.2, 0.6, 0.1], [0.1, 0.1, 0.7, 0.1]])
    chosen = {
        (first, last): legal_path(rows, [2, 2], labels, [False, False], is_first=first, is_last=last)
        for first in (True, False) for last in (True, False)
    }  # fmt: skip
    assert chosen == {(True, True): [1, 3], (True, False): [1, 2], (False, True): [2, 3], (False, False): [2, 2]}
    # Pieces of one word may all have the label of the first.
    rows = np.array([[0.1, 0.2, 0.1, 0.6], [0.1, 0.1, 0.1, 0.7]])
    assert legal_path(rows, [3, 3], labels, [False, True], is_first=False) == [3, 3]
    assert legal_path(rows, [3, 3], labels, [False, False], is_first=False) == [1, 3]


def test_decode_legal_by_the_command(tmp_path: Path) -> None:
    """Of anna E-PER smith the likeliest legal labels are B-PER E-PER; what is legal before stays as it was."""
    folder = tagger(tmp_path / "m", "B-PER I-PER E-PER E-PER", "anna lee smith novara")
    texts = ["anna lee smith", "novara", "we met novara in anna smith"]
    asked: tuple[str | Path, ...] = ("tag", "-m", folder, "--format", "jsonl", *texts)
    plain, legal = bertcli(*asked).records, bertcli(*asked, "--decode", "legal").records
    words = [[[one["word"] for one in record["entities"]] for record in some] for some in (plain, legal)]
    assert words[0] == [["anna lee smith"], ["novara"], ["novara", "anna smith"]]
    assert words[1] == [["anna lee smith"], [], ["anna smith"]]
    assert plain[0] == legal[0]
    assert all(one["score"] < 1 for record in legal for one in record["entities"])
    why = "are for models that label tokens"
    assert why in bertcli("tag", "-m", folder, "--labels", "a", "--decode", "legal", "x").said
