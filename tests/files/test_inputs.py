"""Several files, patterns and endings: one input, in order."""

import gzip
import json
import os
from pathlib import Path

import pytest
from helpers.lines import write_lines
from helpers.reading import from_files, refusal, texts
from helpers.terminal import bertcli

from bertcli.errors import BertcliError

WORDS = ["one", "", "dr–é 😀", "four"]
CONTENT = {
    "txt": "".join(f"{word}\n" for word in WORDS),
    "jsonl": "".join(json.dumps({"text": word, "id": i}) + "\n" for i, word in enumerate(WORDS)),
    "csv": "id,text\n" + "".join(f"{i},{word}\n" for i, word in enumerate(WORDS)),
    "tsv": "id\ttext\n" + "".join(f"{i}\t{word}\n" for i, word in enumerate(WORDS)),
}


@pytest.mark.parametrize("name", ["t.md", "t.json", "t.gz", "t.md.gz", "t.txt.bz2"])
def test_inputs_of_other_endings_are_refused(name: str) -> None:
    with pytest.raises(BertcliError, match=r"\.txt, .*, \.fasta, \.fa \(perhaps with \.gz\) or \.parquet"):
        from_files([name])


def test_inputs_of_several_files_are_one(tmp_path: Path) -> None:
    files = []
    for ending, content in CONTENT.items():
        files.append(tmp_path / f"part.{ending}")
        files[-1].write_text(content, encoding="utf-8")
    assert texts(*files) == 4 * WORDS
    assert texts(files[0], files[0]) == 2 * WORDS
    rows = list(from_files([str(file) for file in files]))
    assert [row.location for row in rows[3:6]] == [f"{files[0]}, line 4", f"{files[1]}, line 1", f"{files[1]}, line 2"]


def test_inputs_of_several_files_have_columns_where_one_has(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"said": "one"}\n')
    (tmp_path / "b.txt").write_text("two\n")
    found = bertcli("tokenize", "-i", f"{tmp_path}/?.*", "--column", "said", "--format", "jsonl")
    assert [record["text"] for record in found.records] == ["one", "two"]


def test_inputs_of_a_pattern_are_its_files_in_order(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    (tmp_path / "folder.txt").mkdir()
    for name in ("b.txt", "a.txt", "c10.txt", "c9.txt", "x.csv", "deep/z.txt"):
        (tmp_path / name).write_text(f"{name}\n", encoding="utf-8")
    found = from_files([f"{tmp_path}/*.txt"])
    assert [Path(file).name for file in found.files or ()] == ["a.txt", "b.txt", "c10.txt", "c9.txt"]
    assert [row.text for row in found] == ["a.txt", "b.txt", "c10.txt", "c9.txt"]
    assert texts(f"{tmp_path}/**/[az].txt") == ["a.txt", "deep/z.txt"]
    assert refusal(f"{tmp_path}/*.jsonl") == "No file matches *.jsonl."


def test_inputs_that_look_like_a_pattern_are_names_where_they_exist(tmp_path: Path) -> None:
    (tmp_path / "[a].txt").write_text("itself\n", encoding="utf-8")
    (tmp_path / "a.txt").write_text("other\n", encoding="utf-8")
    assert texts(tmp_path / "[a].txt") == ["itself"]


def test_inputs_are_known_where_they_can_be_read_again(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one\n", encoding="utf-8")
    assert from_files([str(tmp_path / "a.txt")]).files == (str(tmp_path / "a.txt"),)
    assert from_files([str(tmp_path / "a.txt"), "-"]).files is None
    os.mkfifo(tmp_path / "pipe.txt")
    assert from_files([str(tmp_path / "pipe.txt")]).files is None


def test_inputs_share_that_has_been_read_grows_to_one(tmp_path: Path) -> None:
    write_lines(tmp_path / "a.txt", range(200))
    (tmp_path / "b.jsonl.gz").write_bytes(gzip.compress(b"".join(b'{"text": "%d"}\n' % i for i in range(20_000))))
    rows = from_files([str(tmp_path / "a.txt"), str(tmp_path / "b.jsonl.gz")])
    shares = [rows.share_read() for _ in rows]
    known = [share for share in shares if share is not None]
    assert known == sorted(shares, key=lambda share: share or 0)
    assert 0 < known[0] < 0.01
    assert known[-1] == 1
    assert from_files(["-"]).share_read() is None
