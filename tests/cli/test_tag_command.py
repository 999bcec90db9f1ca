"""tag on the command line: what it prints, marks, writes and refuses."""

import re
from pathlib import Path
from typing import Any

import pytest
from conftest import Made
from helpers.json_files import read_json, write_json_lines
from helpers.pipelines import same
from helpers.terminal import bertcli
from reference import task_cases as cases

import bertcli as library

COLORS = {"FORCE_COLOR": "1", "COLORTERM": "truecolor"}
TEXTS = ("The king of France.", "unbelievable <b>&amp; queen", "")


@pytest.fixture
def tagger(made: Made) -> Path:
    return made(**cases.TAGGER)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    file = tmp_path / "texts.jsonl"
    rows = [{"said": f"{TEXTS[i % 3]} {'river ' * i}"} for i in range(30)]
    write_json_lines(file, rows)
    return file


@pytest.mark.parametrize("aggregation", ["simple", "none"])
def test_tag_gives_the_records_of_the_library(aggregation: Any, tagger: Path, tmp_path: Path) -> None:
    expected = library.load(tagger).tag(TEXTS, aggregation=aggregation)
    arguments: list[str | Path] = ["tag", "-m", tagger, "--aggregation", aggregation]
    assert bertcli(*arguments, *TEXTS, "--format", "jsonl").records == expected
    assert bertcli(*arguments, "--format", "json", stdin="".join(f"{text}\n" for text in TEXTS)).json == expected
    file = tmp_path / "tags.json"
    assert bertcli(*arguments, *TEXTS, "-o", file).status == 0
    assert read_json(file) == expected


def test_tag_leaves_out_the_labels_of_a_list(tagger: Path) -> None:
    arguments = ("tag", "-m", tagger, TEXTS[0], "--ignore")
    left = bertcli(*arguments, "O,PER, LOC,MISC,ORG", "--format", "jsonl").records
    assert left[0]["entities"] == []


def test_tag_prints_a_table_where_there_is_no_color(tagger: Path) -> None:
    (record,) = library.load(tagger).tag(TEXTS[:1])
    for result in (
        bertcli("tag", "-m", tagger, TEXTS[0]),
        bertcli("tag", "-m", tagger, TEXTS[0], terminal=True, environment={"NO_COLOR": "1"}),
        bertcli("tag", "-m", tagger, TEXTS[0], terminal=True, environment={"TERM": "dumb"}),
    ):
        heading, _, *rows = result.out.splitlines()
        assert heading.split() == ["label", "score", "word", "start", "end"]
        first = record["entities"][0]
        assert rows[0].split()[:2] == [first["entity_group"], f"{first['score']:.4f}"]
        assert len(rows) == len(record["entities"])


def test_tag_says_of_which_text_a_row_is_if_only_one_has_rows(tagger: Path) -> None:
    heading, _, *rows = bertcli("tag", "-m", tagger, "", TEXTS[0]).out.splitlines()
    assert heading.split() == ["index", "label", "score", "word", "start", "end"]
    assert {row.split()[0] for row in rows} == {"1"}


@pytest.mark.parametrize("environment", [COLORS, {"TERM": "xterm-256color"}])
def test_tag_marks_the_text_where_there_is_color(environment: dict[str, str], tagger: Path) -> None:
    (record,) = library.load(tagger).tag(TEXTS[:1])
    out = bertcli(
        "tag", "-m", tagger, TEXTS[0], terminal="TERM" in environment, environment=environment
    ).out  # fmt: skip
    assert record["entities"]
    for entity in record["entities"]:
        words = TEXTS[0][entity["start"] : entity["end"]]
        assert re.search(
            rf"m{re.escape(words)}\x1b\[0m\x1b\[1;[0-9;]*m {entity['entity_group']} {entity['score']:.4f}", out
        )


def test_tag_marks_keep_lines_and_escape_other_controls(tagger: Path) -> None:
    out = bertcli("tag", "-m", tagger, "king\nof \x1b[31m\r France", environment=COLORS).out
    assert "\x1b[31m" not in out
    assert "\r" not in out
    assert out.count("\n") == 2


def test_tag_writes_a_page_that_is_safe(tagger: Path, tmp_path: Path) -> None:
    file = tmp_path / "tags.html"
    result = bertcli("tag", "-m", tagger, *TEXTS, '<script>alert("x")</script>', "-o", file)
    assert (result.status, result.out) == (0, "")
    text = file.read_text(encoding="utf-8")
    assert text.startswith("<!DOCTYPE html>")
    assert "<script>" not in text
    assert "<b>" not in text
    assert "&lt;" in text
    assert text.count('<p class="text"') == 4
    (record, *_) = library.load(tagger).tag(TEXTS)
    assert text.count("<mark") >= len(record["entities"])
    assert f">{record['entities'][0]['score']:.4f}</td>" in text
    assert "://" not in text
    assert f"{tagger}" in text.partition('<p class="about">')[2].partition("</p>")[0]
    marks = re.findall(r'--hue: (\d+)"[^>]*>[^<]*<small>([^<]*)</small>', text)
    hues = {label: hue for hue, label in marks}
    assert len(hues) > 1
    assert len({hue for hue, _ in marks}) == len(hues)  # a color for each label


def test_tag_keeps_going(tagger: Path, tmp_path: Path) -> None:
    file = tmp_path / "bad.jsonl"
    file.write_text('{"text": "king"}\n{"text": 3}\n', encoding="utf-8")
    assert "which is not a text" in bertcli("tag", "-m", tagger, "-i", file).error
    result = bertcli("tag", "-m", tagger, "-i", file, "--keep-going", "--format", "jsonl")
    assert result.status == 1
    assert "1 of 2 texts could not be used" in result.err
    good, bad = result.records
    same(good["entities"], library.load(tagger).tag(["king"])[0]["entities"])
    assert list(bad) == ["index", "text", "error"]
    assert (
        "which is not a text"
        in bertcli("tag", "-m", tagger, "-i", file, "--keep-going", environment={"FORCE_COLOR": "1"}).out
    )


@pytest.mark.parametrize(
    ("line", "status", "message"),
    [
        ("tag king", 2, "no bundled model for tag; give one that fits, such as -m dslim/bert-base-NER."),
        ("tag -m TAGGER king -o tags.xlsx", 1, ".html"),
        ("tag -m TAGGER king --text-pair queen", 2, "No such option"),
        ("tag -m TAGGER -i SOURCE -o tags.html --resume", 2, "it works with .json"),
    ],
)
def test_tag_refuses_in_a_line(
    line: str, status: int, message: str, tagger: Path, source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(source.parent)
    result = bertcli(*line.replace("TAGGER", str(tagger)).replace("SOURCE", str(source)).split())
    assert (result.status, result.out) == (status, "")
    assert message in result.said
    assert not list(source.parent.glob("tags.*"))
