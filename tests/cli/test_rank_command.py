"""rank on the command line: where queries and documents come from, and what it prints, writes and refuses."""

import json
from pathlib import Path
from typing import Any

import pytest
from conftest import Made
from helpers.batches import compute_together
from helpers.json_files import read_json_lines, write_json_lines
from helpers.lines import write_lines
from helpers.terminal import bertcli, continued
from reference import task_cases as cases

import bertcli as library

DOCUMENTS = ["The house by the river sold tea.", "She walked all day.", "café"]


@pytest.fixture
def ranker(made: Made) -> Path:
    return made(**cases.RANKER)


@pytest.fixture
def pairs(tmp_path: Path) -> Path:
    file = tmp_path / "pairs.jsonl"
    rows = [{"query": f"query {i // 4}", "text": f"{DOCUMENTS[i % 3]} {i}"} for i in range(22)]
    write_json_lines(file, rows)
    return file


def test_rank_gives_the_records_of_the_library(ranker: Path, tmp_path: Path) -> None:
    expected = library.load(ranker).rank("hot tea", DOCUMENTS)
    arguments: list[str | Path] = ["rank", "-m", ranker, "hot tea"]
    assert bertcli(*arguments, *DOCUMENTS, "--format", "jsonl").records == expected
    assert bertcli(*arguments, "--format", "jsonl", stdin="\n".join(DOCUMENTS)).records == expected
    file = tmp_path / "documents.csv"
    file.write_text("passage\n" + "".join(f"{document}\n" for document in DOCUMENTS), encoding="utf-8")
    assert bertcli(*arguments, "-i", file, "--column", "passage", "--format", "jsonl").records == expected
    assert bertcli(*arguments, *DOCUMENTS, "--top-k", "1", "--format", "jsonl").records == expected[:1]
    table = bertcli(*arguments, *DOCUMENTS).out
    assert table.splitlines()[0].split() == ["corpus", "id", "score", "text"]
    assert table.splitlines()[2].split()[:2] == [str(expected[0]["corpus_id"]), f"{expected[0]['score']:.4f}"]


@pytest.mark.parametrize("from_file", [False, True])
def test_rank_progress_is_the_share_of_documents(
    from_file: bool, ranker: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shares = []

    def progress(items: Any, task: str, reached: Any) -> Any:
        for item in items:
            shares.append(reached(item))
            yield item

    monkeypatch.setattr("bertcli.report.progress.progress", progress)
    compute_together(20, monkeypatch)
    documents, file = [f"{word} tea" for word in DOCUMENTS * 9], tmp_path / "documents.txt"
    write_lines(file, documents)
    given: list[str | Path] = ["-i", file] if from_file else [*documents]
    output = tmp_path / "v.jsonl"
    arguments: list[str | Path] = ["rank", "-m", ranker, "tea", *given, "-o", output]
    assert bertcli(*arguments, terminal=True).status == 0
    assert len(shares) > 3
    assert shares[-1] == (27, 1.0)
    assert all(from_file or share == done / 27 for done, share in shares)
    assert all(share < 1 for done, share in shares if done < 27)  # however far ahead the file was read


def test_rank_reads_query_and_document_of_a_file_without_header(ranker: Path, tmp_path: Path) -> None:
    file = tmp_path / "pairs.csv"
    file.write_text("hot tea,the king\nhot tea,a cup\n", encoding="utf-8")
    asked = ("rank", "-m", ranker, "-i", file, "--no-header", "--query-column", "1", "--format", "json")
    said = bertcli("rank", "-m", ranker, "hot tea", "the king", "a cup", "--format", "json").json
    assert bertcli(*asked).json == said


def test_rank_goes_on_where_an_error_stopped_it(
    ranker: Path, pairs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rankings that were finished before a text that cannot be tokenized are kept."""
    compute_together(24, monkeypatch)
    for bound in ("SHORTEST_SEGMENT", "LONGEST_SEGMENT"):
        monkeypatch.setattr(f"bertcli.files.write.resumable_output.{bound}", 0.0)
    monkeypatch.setattr("bertcli.tokens.tokenizer.LONGEST", 1000)  # characters
    good = "".join(json.dumps({"query": f"query {i // 4}", "text": f"hot tea {i}"}) + "\n" for i in range(120))
    pairs.write_text(good, encoding="utf-8")
    expected = bertcli("rank", "-m", ranker, "-i", pairs, "--query-column", "query", "--format", "jsonl").records
    file = tmp_path / "ranked.jsonl"
    arguments: list[str | Path] = ["rank", "-m", ranker, "-i", pairs, "--query-column", "query", "-o", file]
    pairs.write_text(good + json.dumps({"query": "query 30", "text": "tea " * 300}) + "\n", encoding="utf-8")
    first = bertcli(*arguments, "--resume")
    assert "pairs.jsonl, line 121" in first.error
    assert "texts are done: repeat the command to continue." in first.err
    assert not file.exists()
    result = continued(*arguments, "--keep-going")
    assert result.status == 1
    *ranked, bad = read_json_lines(file)
    assert [record["corpus_id"] for record in ranked] == [record["corpus_id"] for record in expected]
    assert (bad["corpus_id"], "1,200 characters" in bad["error"]) == (120, True)


@pytest.mark.parametrize(
    ("line", "status", "message"),
    [
        ("tea x", 2, "there is no bundled model for rank"),
        ("-m RANKER", 2, "give the query, or the field that holds it"),
        ("-m RANKER tea -i PAIRS --query-column query", 2, "give the query or --query-column"),
        ("-m RANKER tea x -i PAIRS", 2, "give documents or --input, not both"),
        ("-m RANKER -i PAIRS --query-column q", 1, "(choose one with --query-column)"),
        ("-m RANKER -i PAIRS --query-column query --column q", 1, "(choose one with --column)"),
        ("-m RANKER tea", 2, "give a document, a file with --input"),
    ],
)
def test_rank_refuses_in_a_line(line: str, status: int, message: str, ranker: Path, pairs: Path) -> None:
    result = bertcli("rank", *line.replace("RANKER", str(ranker)).replace("PAIRS", str(pairs)).split())
    assert (result.status, result.out) == (status, "")
    assert message in result.said
