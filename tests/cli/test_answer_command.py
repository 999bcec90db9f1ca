"""answer on the command line: where questions and contexts come from, and what it prints, marks, writes and refuses."""

import re
import shlex
from pathlib import Path

import pytest
from conftest import Made
from helpers.json_files import write_json_lines
from helpers.terminal import bertcli
from reference import task_cases as cases

import bertcli as library

CONTEXT = "The queen walked to the river, and the king drank tea."
QUESTIONS = ["Who walked?", "What?"]


@pytest.fixture
def reader(made: Made) -> Path:
    return made(**cases.READER)


def test_answer_gives_the_records_of_the_library(reader: Path, tmp_path: Path) -> None:
    expected = library.load(reader).answer(QUESTIONS, CONTEXT, top_k=3, no_answer=True)
    arguments: list[str | Path] = ["answer", "-m", reader, "--top-k", "3", "--no-answer", "--format", "jsonl"]
    assert bertcli(*arguments, *QUESTIONS, "--context", CONTEXT).records == expected
    assert bertcli(*arguments, "--context", CONTEXT, stdin="\n".join(QUESTIONS)).records == expected
    lines, table = tmp_path / "asked.jsonl", tmp_path / "asked.csv"
    write_json_lines(lines, ({"question": q, "context": CONTEXT} for q in QUESTIONS))
    table.write_text("q,story\n" + "".join(f'{q},"{CONTEXT}"\n' for q in QUESTIONS))
    assert bertcli(*arguments, "-i", lines).records == expected
    assert bertcli(*arguments, "-i", table, "--column", "q", "--context-column", "story").records == expected
    assert bertcli(*arguments, "-i", lines, "--context", CONTEXT).records == expected


def test_answer_prints_a_table_or_marks(reader: Path) -> None:
    (record,) = library.load(reader).answer(QUESTIONS[:1], CONTEXT)
    (best,) = record["answers"]
    arguments: list[str | Path] = ["answer", "-m", reader, QUESTIONS[0], "--context", CONTEXT]
    table = bertcli(*arguments).out
    assert table.splitlines()[0].split() == ["question", "score", "answer", "start", "end"]
    assert best["answer"] in table
    marked = bertcli(*arguments, environment={"FORCE_COLOR": "1", "COLORTERM": "truecolor"}).out
    assert f"\x1b[1m{QUESTIONS[0]}\x1b[0m\n" in marked
    assert re.search(rf"\x1b\[[0-9;]+m{re.escape(best['answer'])}\x1b\[0m", marked)
    assert marked.endswith(f"{best['score']:.4f}  {best['answer']}\n")


def test_answer_writes_a_page(reader: Path, tmp_path: Path) -> None:
    file = tmp_path / "answers.html"
    assert bertcli("answer", "-m", reader, "<i>?", "--context", CONTEXT, "--top-k", "9", "-o", file).status == 0
    text = file.read_text(encoding="utf-8")
    assert "<h2>&lt;i&gt;?</h2>" in text
    assert "<mark" in text
    assert f"{reader}" in text.partition('<p class="about">')[2].partition("</p>")[0]
    best = library.load(reader).answer(["<i>?"], CONTEXT)[0]["answers"][0]
    assert text.count(f">{best['score']:.4f}<") == 1  # in the table alone


def test_answer_keeps_going(reader: Path, tmp_path: Path) -> None:
    file = tmp_path / "asked.jsonl"
    rows = '{"question": "Who?", "context": ""}\n{"question": "Who?", "context": "The king."}\n'
    file.write_text(rows)
    assert "asked.jsonl, line 1 ('Who?') is empty" in bertcli("answer", "-m", reader, "-i", file).error
    file.write_text(f"{rows}no\n")
    for more in ([], ["--format", "jsonl"]):
        result = bertcli("answer", "-m", reader, "-i", file, "--keep-going", *more)
        assert result.status == 1
        assert "2 of 3 texts could not be used" in result.err
    empty, good, unread = result.records
    assert list(empty) == list(unread) == ["index", "question", "context", "error"]
    assert (empty["question"], unread["question"]) == ("Who?", None)
    assert good["answers"]


@pytest.mark.parametrize(
    ("line", "status", "message"),
    [
        ("'Who?' --context x", 2, "there is no bundled model for answer"),
        ("-m READER 'Who?'", 2, "--context: give the text that holds the answer"),
        ("-m READER 'Who?' -i asked.jsonl", 2, "--input: give questions or --input, not both"),
        ("-m bert-mini-mlm 'Who?' --context x", 1, "-m deepset/bert-base-cased-squad2"),
        ("-m READER 'Who?' --context x --context-column y", 2, "give --context or --context-column"),
    ],
)
def test_answer_refuses_in_a_line(line: str, status: int, message: str, reader: Path) -> None:
    result = bertcli("answer", *shlex.split(line.replace("READER", str(reader))))
    assert (result.status, result.out) == (status, "")
    assert message in result.said
