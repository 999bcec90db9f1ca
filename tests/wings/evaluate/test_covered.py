"""evaluate's `covered`, by hand: the share of the characters of true entities that --redact would hide; its gold."""

import re
from pathlib import Path
from typing import Any

import pytest
from helpers.known_taggers import word_piece_tagger
from helpers.lines import write_lines
from helpers.terminal import bertcli
from wings.evaluate.test_tasks import judged, lines

import bertcli as library

# The model finds anna (B-PER), lee (I-PER), york (B-LOC), and of o'neill the first letter alone.
WORDS = "we met anna lee bob in new york o neill s ' - zurich nord".split()  # noqa: SIM905
FOUND = {"anna": 3, "lee": 4, "york": 1, "o": 3, "zurich": 1}
# Twelve texts, with their true entities in characters; then how many of these are hidden, of how many. Blanks aside.
TEXTS: list[tuple[str, list[tuple[int, int, str]], int, int]] = [
    ("we met anna", [(7, 11, "PER")], 4, 4),
    ("we met anna lee", [(7, 15, "PER")], 7, 7),
    ("we met bob", [(7, 10, "PER")], 0, 3),
    ("bob met anna", [(0, 3, "PER"), (8, 12, "PER")], 4, 7),
    ("in new york", [(3, 11, "LOC")], 4, 7),
    ("in york", [(3, 7, "PER")], 4, 4),
    ("o'neill met anna", [(0, 7, "PER"), (12, 16, "PER")], 11, 11),
    ("in zurich-nord", [(3, 14, "LOC")], 11, 11),
    ("we met", [], 0, 0),
    ("anna met lee", [], 0, 0),
    ("in zurich", [(3, 9, "LOC"), (3, 9, "PER")], 6, 6),
    ("bob", [(0, 3, "LOC")], 0, 3),
]
HIDDEN, LETTERS = sum(text[2] for text in TEXTS), sum(text[3] for text in TEXTS)


@pytest.fixture(scope="module")
def tagger(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return word_piece_tagger(tmp_path_factory.mktemp("tagger"), WORDS, FOUND)


def of_model(file: Path, model: Path, *more: str) -> dict[str, Any]:
    """The record of one model."""
    return dict(judged(file, "-m", model, *more)["models"][0])


def spans_of(text: str, spans: list[tuple[int, int, str]]) -> list[dict[str, Any]]:
    return [{"start": start, "end": end, "label": label} for start, end, label in spans]


def test_covered_is_what_one_counts_by_hand(tagger: Path, tmp_path: Path) -> None:
    rows = [{"text": text, "entities": spans_of(text, spans), "kind": "short" if len(text) < 11 else "long"}
            for text, spans, *_ in TEXTS]  # fmt: skip
    file = lines(tmp_path / "gold.jsonl", rows)
    model = of_model(file, tagger, "--by", "kind")
    covered = model["metrics"]["covered"]
    assert (HIDDEN, LETTERS) == (51, 63)
    assert covered["value"] == pytest.approx(51 / 63)
    assert covered["low"] < 51 / 63 < covered["high"]
    assert "accuracy" not in model["metrics"]
    long_ones = [text for text in TEXTS if len(text[0]) >= 11]
    of_long = sum(text[2] for text in long_ones) / sum(text[3] for text in long_ones)
    assert model["by"]["long"]["covered"]["value"] == pytest.approx(of_long)
    # By hand: right are anna, anna lee, anna, anna, zurich (LOC).
    assert model["metrics"]["recall"]["value"] == pytest.approx(5 / 13)
    left = [(left["place"].rpartition(" ")[2], *[*left.values()][1:]) for left in model["readable"]]
    assert left[:2] == [("3", "PER", "bob", "bob"), ("4", "PER", "bob", "bob")]
    assert left[2:] == [("5", "LOC", "new york", "new"), ("12", "LOC", "bob", "bob")]
    assert model["readable_count"] == 4
    redacted = library.load(tagger).tag([text for text, *_ in TEXTS], redact=True)
    for (text, spans, hidden, letters), record in zip(TEXTS, redacted, strict=True):
        places = {place for part in record["hidden"] for place in range(part["start"], part["end"])}
        true = {place for start, end, _ in spans for place in range(start, end) if text[place] != " "}
        assert (len(true & places), len(true)) == (hidden, letters)


def test_gold_in_three_shapes_gives_the_same_figures(tagger: Path, tmp_path: Path) -> None:
    """Characters, words with tags in rows, and CoNLL's columns."""
    sentences = [("we met anna lee", "O O B-PER I-PER"), ("in new york", "O B-LOC I-LOC"), ("bob met", "B-PER O")]
    in_rows, in_columns, in_characters = [], [], []
    for text, tags in sentences:
        words = text.split()
        in_rows.append({"tokens": words, "ner_tags": tags.split()})
        in_columns.append("".join(f"{word} {tag}\n" for word, tag in zip(words, tags.split(), strict=True)))
        spans = [(match.start(), match.end()) for match in re.finditer("anna lee|new york|bob", text)]
        label = "LOC" if "york" in text else "PER"
        in_characters.append({"text": text, "entities": [[start, end, label] for start, end in spans]})
    columns = tmp_path / "a.conll"
    write_lines(columns, in_columns)
    files = [lines(tmp_path / "rows.jsonl", in_rows), columns, lines(tmp_path / "chars.jsonl", in_characters)]
    every = [of_model(file, tagger) for file in files]
    for name in ("covered", "f1", "precision", "recall", "macro_f1", "f1:PER", "f1:LOC"):
        assert len({(model["metrics"][name]["value"], model["metrics"][name]["low"]) for model in every}) == 1, name
    assert every[0]["metrics"]["covered"]["value"] == pytest.approx(11 / 17)
    assert every[0]["metrics"]["accuracy"]["value"] == pytest.approx(7 / 9)
    assert [left["readable"] for left in every[0]["readable"]] == ["new", "bob"]


@pytest.mark.parametrize(
    ("row", "more"),
    [
        ({"text": "we met anna", "entities": [{"start": 7, "end": 11, "label": "PER"}]}, ()),
        ({"text": "we met anna", "ents": [{"start": 7, "end": 11, "label": "PER"}]}, ()),  # spaCy
        ({"text": "we met anna", "spans": [{"start": 7, "end": 11, "label": "PER", "text": "anna"}]}, ()),  # GLiNER
        ({"id": 3, "text": "we met anna", "label": [[7, 11, "PER"]]}, ("--task", "tag", "--label-column", "label")),
        ({"text": "we met anna", "entities": [{"id": 1, "label": "PER", "start_offset": 7, "end_offset": 11}]}, ()),
    ],
)
def test_spans_are_read_as_other_tools_write_them(
    row: Any, more: tuple[str, ...], tagger: Path, tmp_path: Path
) -> None:
    without: dict[str, list[Any]] = {name: [] for name in row if name not in ("id", "text")}
    file = lines(tmp_path / "gold.jsonl", [row, {**row, "text": "anna in york"} | without])
    model = of_model(file, tagger, *more)
    assert model["metrics"]["recall"]["value"] == 1
    assert model["metrics"]["precision"]["value"] == pytest.approx(1 / 3)
    assert model["metrics"]["covered"] == {
        "value": 1, "low": None, "high": None, "n": 2,
        "reason": "every character is hidden, so resampling shows none that is not",
    }  # fmt: skip


def test_records_of_tag_are_gold(tagger: Path, tmp_path: Path) -> None:
    gold = tmp_path / "gold.jsonl"
    asked = ("we met anna lee", "in york")
    assert bertcli("tag", "-m", tagger, "-o", gold, *asked).status == 0
    assert of_model(gold, tagger)["metrics"]["f1"]["value"] == 1


@pytest.mark.parametrize(
    ("entities", "why"),
    [
        ([{"start": 7, "end": 99, "label": "PER"}], "the PER of characters 7 to 99 ends after the text, which has 11"),
        ([{"start": 5, "end": 4, "label": "PER"}], "is no entity such as {start, end, label}"),
        ([{"start": "7", "end": 11, "label": "PER"}], "is no entity such as {start, end, label}"),
        ([[7, 11]], "is no entity such as {start, end, label}"),
        ("PER", "is no list of entities"),
        (
            [{"start": 8, "end": 11, "label": "PER", "text": "anna"}],
            "is not at characters 8 to 11, where there is 'nna'",
        ),
        ([{"start": 7, "end": 11, "label": "ORG"}], "the type 'ORG' is not one of this model's: LOC, PER"),
    ],
)
def test_spans_that_cannot_be_are_refused_by_their_row(entities: Any, why: str, tagger: Path, tmp_path: Path) -> None:
    file = lines(tmp_path / "gold.jsonl", [{"text": "we met anna", "entities": entities}])
    error = bertcli("evaluate", file, "-m", tagger).error
    assert f"{file}, line 1: " in error
    assert why in error


def test_types_are_renamed_in_spans(tagger: Path, tmp_path: Path) -> None:
    spans = [{"start": 7, "end": 11, "label": "NAME"}, {"start": 0, "end": 2, "label": "WHO"}]
    file = lines(tmp_path / "gold.jsonl", [{"text": "we met anna", "entities": spans}])
    model = of_model(file, tagger, "--rename-label", "NAME=PER,WHO=O")
    assert model["metrics"]["f1"]["value"] == 1


def test_the_page_and_the_table_show_what_is_covered(tagger: Path, tmp_path: Path) -> None:
    rows = [{"text": text, "entities": spans_of(text, spans)} for text, spans, *_ in TEXTS]
    file, page = lines(tmp_path / "gold.jsonl", rows), tmp_path / "x.html"
    shown = bertcli("evaluate", file, "-m", tagger)
    assert re.search(r"covered +0\.81 +\[0\.\d\d, 0\.\d\d\] +12\n", shown.out), shown.out
    assert bertcli("evaluate", file, "-m", tagger, "-o", page).status == 0
    html = page.read_text(encoding="utf-8")
    assert "share of the characters of true entities that tag --redact hides, without --only" in html
    assert f"What --redact would leave readable with {tagger}: 4" in html
    cells = re.findall(r"<t[dh][^>]*>([^<]*)</t[dh]>", html)
    assert ["line 5", "LOC", "new york", "new"] in [cells[i : i + 4] for i in range(len(cells))]
