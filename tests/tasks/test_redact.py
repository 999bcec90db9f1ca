"""tag --redact: entities are replaced in their texts, and nothing else is changed."""

import re
import time
from collections.abc import Sequence
from pathlib import Path

import pytest
from conftest import Made
from helpers.terminal import bertcli, wrong_usage
from reference import task_cases as cases

import bertcli as library
from bertcli.tasks.parts.redact import Found, Redaction, whole_words

TEXTS = [*cases.TAGGED_TEXTS, "The king of France saw the river;  she walked into the city.", "", "tea"]


@pytest.fixture
def tagger(made: Made) -> Path:
    return made(**cases.TAGGER)


def redacted(redaction: Redaction, text: str, found: Sequence[Found], words: Sequence[tuple[int, int]] = ()) -> str:
    return redaction.replaced(text, redaction.hidden_parts(text, found, words))


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        ([Found(0, 3, "PER", 0.9)], "[PER] Lee met Bo."),
        ([Found(0, 3, "PER", 0.9), Found(4, 7, "PER", 0.9)], "[PER] [PER] met Bo."),
        ([Found(0, 3, "PER", 0.9), Found(4, 7, "PER", 0.9, True)], "[PER] met Bo."),
        ([Found(0, 3, "PER", 0.9), Found(4, 7, "LOC", 0.9, True)], "[PER] [LOC] met Bo."),
        ([Found(4, 6, "PER", 0.9), Found(6, 7, "PER", 0.9)], "Ann [PER] met Bo."),
        ([Found(4, 6, "PER", 0.9), Found(6, 7, "LOC", 0.9)], "Ann [PER] met Bo."),
        ([Found(4, 7, "LOC", 0.9), Found(0, 7, "PER", 0.9)], "[PER] met Bo."),
        ([Found(0, 5, "LOC", 0.9), Found(4, 11, "PER", 0.9)], "[PER] Bo."),
        ([Found(5, 6, "PER", 0.9)], "Ann [PER] met Bo."),
        ([Found(0, 5, "LOC", 0.9), Found(4, 9, "PER", 0.9), Found(8, 14, "ORG", 0.9)], "[ORG]."),
        ([Found(3, 8, "PER", 0.9)], "Ann [PER] met Bo."),
        ([Found(3, 4, "PER", 0.9)], "Ann Lee met Bo."),
        # A type may be called O; what is outside of any entity is not found.
        ([Found(0, 3, "O", 0.9)], "[O] Lee met Bo."),
        ([], "Ann Lee met Bo."),
    ],
)
def test_redact_replaces_what_is_one_entity_once(found: list[Found], expected: str) -> None:
    assert redacted(Redaction(), "Ann Lee met Bo.", found) == expected
    assert redacted(Redaction(), "Ann Lee met Bo.", found[::-1]) == expected


def test_redact_takes_only_certain_labels_of_a_score() -> None:
    found = [Found(0, 3, "PER", 0.9), Found(4, 7, "LOC", 0.5)]
    assert redacted(Redaction(only={"LOC"}), "Ann Lee", found) == "Ann [LOC]"
    assert redacted(Redaction(threshold=0.6), "Ann Lee", found) == "[PER] Lee"
    assert redacted(Redaction("███", threshold=0.5), "Ann Lee", found) == "███ ███"
    assert redacted(Redaction(only={"O"}), "Ann Lee", [Found(0, 3, "O", 0.9)]) == "[O] Lee"


def test_redact_keeps_texts_and_words_where_that_is_asked_for(tagger: Path) -> None:
    arguments: list[str | Path] = ["tag", "-m", tagger, "--redact", "--format", "jsonl", *TEXTS]
    records, kept = bertcli(*arguments).records, bertcli(*arguments, "--keep-text").records
    plain = bertcli("tag", "-m", tagger, "--format", "jsonl", *TEXTS).records
    of_pieces = bertcli(*arguments, "--aggregation", "none").records
    assert [record["redacted"] for record in of_pieces] == [record["redacted"] for record in records]
    assert any(whole["hidden"] for whole in kept)
    for text, record, whole, without in zip(TEXTS, records, kept, plain, strict=True):
        assert list(whole) == ["index", "text", "truncated", "entities", "redacted", "hidden"]
        assert (whole["text"], whole["entities"]) == (text, without["entities"])
        assert {name: whole[name] for name in ("redacted", "hidden")} == {
            name: record[name] for name in ("redacted", "hidden")
        }
        rebuilt, end = "", 0
        for part in whole["hidden"]:
            rebuilt += text[end : part["start"]] + f"[{part['label']}]"
            end = part["end"]
        assert rebuilt + text[end:] == whole["redacted"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("we met in O’Neill's", "we met in [LOC]"),
        ("Zürich-Nord, Zürich.", "[LOC], [LOC]."),
        ("it is 3.14% of 3.14.", "it is [LOC] of [LOC]."),
        ("anna_lee (anna)", "[LOC] ([LOC])"),
        ("-anna- 'anna' anna--x", "-[LOC]- '[LOC]' [LOC]--x"),
        ("in an\u00ad-\u200bna x", "in [LOC] x"),
    ],
)
def test_redact_hides_words_with_signs_inside_whole(text: str, expected: str) -> None:
    """The model gives only the letters before the first sign, or a digit, a label."""
    places = [match.span() for match in re.finditer(r"O(?=’)|Z|3|an", text)]
    assert redacted(Redaction(), text, [Found(start, end, "LOC", 0.9) for start, end in places]) == expected


def test_whole_words_take_time_in_proportion_to_a_text() -> None:
    """Signs and invisible characters without end are no word."""
    for text in ("a" + "\u200b" * 200_000, "a-" * 100_000, "a" + "-" * 200_000, "a\u200b-\u200b" * 50_000):
        begun = time.perf_counter()
        whole_words(text, [])
        assert time.perf_counter() - begun < 5


def test_redact_writes_lines_and_a_page_of_what_was_hidden_where(tagger: Path, tmp_path: Path) -> None:
    page, lines = tmp_path / "x.html", tmp_path / "x.txt"
    text = "The king of France"
    assert bertcli("tag", "-m", tagger, "--redact", "-o", lines, text, "tea").status == 0
    assert lines.read_text(encoding="utf-8") == bertcli("tag", "-m", tagger, "--redact", text, "tea").out
    assert bertcli("tag", "-m", tagger, "--redact", "--threshold", "1", "hot\ntea").out == "hot tea\n"
    refused = bertcli("tag", "-m", tagger, "-o", lines, text)
    assert "the ending must be one of .json" in refused.error
    assert bertcli("tag", "-m", tagger, "--redact", "--redact-with", "***", "-o", page, text).status == 0
    record = library.load(tagger).tag(text, redact=True, redact_with="***")
    html = page.read_text(encoding="utf-8")
    for part in record["hidden"]:
        assert f'title="{part["label"]}: {part["start"]} to {part["end"]}"' in html
        cells = re.sub(r"<[^>]*>", " ", html).split()
        assert [part["label"], str(part["start"]), str(part["end"])] in [cells[i : i + 3] for i in range(len(cells))]
    assert "king" not in html
    assert "Redacted texts" in html
    assert "What was hidden where" in html


def test_redact_in_files_and_of_what_cannot_be_used(tagger: Path, tmp_path: Path) -> None:
    source, target = tmp_path / "in.jsonl", tmp_path / "out.csv"
    source.write_text('{"text": "The king\\nof France"}\n{"text": 3}\n{"text": "tea"}\n', encoding="utf-8")
    arguments: list[str | Path] = [
        "tag",
        "-m",
        tagger,
        "-i",
        source,
        "--keep-going",
        "--redact",
        "--redact-with",
        "███",
    ]
    done = bertcli(*arguments)
    assert done.status == 1
    first, second, third = done.out.splitlines()
    assert ("███" in first, "king" in first, second) == (True, False, "")
    assert third in ("███", "tea")
    assert bertcli(*arguments, "-o", target).status == 1
    assert target.read_text(encoding="utf-8").startswith("index,redacted,error\n")
    failed = bertcli(*arguments, "--format", "jsonl").records[1]
    why = f"{source}, line 2 cannot be used; without --keep-going it is said why."
    assert failed == {"index": 1, "error": why}
    assert bertcli(*arguments, "--keep-text", "--format", "jsonl").records[1]["error"].endswith("is not a text.")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--redact", "--threshold", "1.5"], "scores are 0 to 1"),
        (["--redact", "--threshold", "much"], "--threshold"),
    ],
)
def test_redact_wrong_usage(arguments: list[str], message: str, tagger: Path) -> None:
    wrong_usage("tag", "-m", tagger, "king", *arguments, why=message)
