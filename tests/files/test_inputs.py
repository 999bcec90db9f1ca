"""Several files, patterns and endings: one input, in order."""

import gzip
import json
import os
from pathlib import Path

import pytest
from conftest import Made
from helpers.reading import from_files, refusal, texts, texts_of
from helpers.terminal import bertcli, wrong_usage

from bertcli.errors import BertcliError

WORDS = ["one", "", "dr–é 😀", "four"]
CONTENT = {
    "txt": "".join(f"{word}\n" for word in WORDS),
    "jsonl": "".join(json.dumps({"text": word, "id": i}) + "\n" for i, word in enumerate(WORDS)),
    "csv": "id,text\n" + "".join(f"{i},{word}\n" for i, word in enumerate(WORDS)),
    "tsv": "id\ttext\n" + "".join(f"{i}\t{word}\n" for i, word in enumerate(WORDS)),
}
SEQUENCES = ">p1 first\nMKTAY\nIAKQR\n>p2\nMEKV\n"


@pytest.mark.parametrize("name", ["t.md", "t.json", "t.gz", "t.md.gz", "t.txt.bz2"])
def test_inputs_of_other_endings_are_refused(name: str) -> None:
    with pytest.raises(BertcliError, match=r"\.txt, .*, \.fasta, \.fa \(perhaps with \.gz\) or \.parquet"):
        from_files([name])


def test_inputs_may_end_in_upper_case(tmp_path: Path) -> None:
    assert texts_of(tmp_path, "T.TXT", "a\n") == ["a"]


def test_inputs_of_several_files_are_one(tmp_path: Path) -> None:
    files = []
    for ending, content in CONTENT.items():
        files.append(tmp_path / f"part.{ending}")
        files[-1].write_text(content, encoding="utf-8")
    assert texts(*files) == 4 * WORDS
    assert texts(files[0], files[0]) == 2 * WORDS
    rows = list(from_files([str(file) for file in files]))
    assert [row.location for row in rows[3:6]] == [f"{files[0]}, line 4", f"{files[1]}, line 1", f"{files[1]}, line 2"]


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


def test_inputs_are_looked_for_before_any_is_read(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one\n", encoding="utf-8")
    with pytest.raises(BertcliError, match=r"Cannot read .*gone\.txt: No such file"):
        from_files([str(tmp_path / "a.txt"), str(tmp_path / "gone.txt")])


def test_inputs_are_known_where_they_can_be_read_again(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one\n", encoding="utf-8")
    assert from_files([str(tmp_path / "a.txt")]).files == (str(tmp_path / "a.txt"),)
    assert from_files([str(tmp_path / "a.txt"), "-"]).files is None
    os.mkfifo(tmp_path / "pipe.txt")
    assert from_files([str(tmp_path / "pipe.txt")]).files is None


def test_inputs_share_that_has_been_read_grows_to_one(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("".join(f"{i}\n" for i in range(1000)), encoding="utf-8")
    (tmp_path / "b.jsonl.gz").write_bytes(gzip.compress(b"".join(b'{"text": "%d"}\n' % i for i in range(100_000))))
    rows = from_files([str(tmp_path / "a.txt"), str(tmp_path / "b.jsonl.gz")])
    shares = [rows.share_read() for _ in rows]
    known = [share for share in shares if share is not None]
    assert known == sorted(shares, key=lambda share: share or 0)
    assert 0 < known[0] < 0.01
    assert known[-1] == 1
    assert from_files(["-"]).share_read() is None


def test_inputs_of_a_command_may_be_several(made: Made, tmp_path: Path) -> None:
    for name in ("a.jsonl", "b.jsonl"):
        (tmp_path / name).write_text(json.dumps({"said": name}) + "\n", encoding="utf-8")
    last = tmp_path / "c.txt.gz"
    last.write_bytes(gzip.compress(b"c\n"))
    result = bertcli(
        "encode", "-m", made(), "-i", f"{tmp_path}/?.jsonl", "-i", last, "--column", "said", "--format", "jsonl"
    )
    assert [(record["index"], record["text"]) for record in result.records] == [
        (0, "a.jsonl"),
        (1, "b.jsonl"),
        (2, "c"),
    ]
    shorter = bertcli("encode", "-m", made(), "-i", f"{tmp_path}/?.json*", "--column", "said", "--format", "jsonl")
    assert len(shorter.records) == 2
    assert "No file matches" in bertcli("encode", "-m", made(), "-i", f"{tmp_path}/*.csv").error
    wrong_usage("encode", "-i", last, "--column", "said", why="--column: this needs named fields")


@pytest.mark.parametrize("ending", ["jsonl", "csv", "tsv"])
def test_inputs_from_a_pipe_have_the_fields_that_are_asked_for(ending: str, made: Made) -> None:
    content, how = CONTENT[ending].replace("text", "body"), ("--column", "body")
    for command in (["tokenize"], ["encode", "-m", made(), "--id-column", "id"]):
        for source in ([], ["-i", "-"]):
            result = bertcli(*command, *source, *how, "--format", "jsonl", stdin=content)
            assert [record["text"] for record in result.records] == WORDS
    assert [str(record["id"]) for record in result.records] == ["0", "1", "2", "3"]
    found = bertcli("classify", *how, "--pair-column", "gone", "--format", "jsonl", stdin=content)
    assert "standard input, line 1: there is no " in found.error
    wrong_usage("tokenize", *how, "tea", why="--column: this needs named fields")
    wrong_usage("tokenize", "-i", "some.txt", *how, why="--column: this needs named fields")


def test_inputs_of_a_command_may_be_sequences(tmp_path: Path) -> None:
    for name in ("p.fasta", "p.fa"):
        (tmp_path / name).write_text(SEQUENCES, encoding="utf-8")
        (tmp_path / f"{name}.gz").write_bytes(gzip.compress(SEQUENCES.encode()))
    wanted = [("p1", "MKTAYIAKQR"), ("p2", "MEKV")]
    for source in ("p.fasta", "p.fa", "p.fasta.gz", "p.fa.gz"):
        result = bertcli("encode", "-i", tmp_path / source, "--format", "jsonl")
        assert [(record["id"], record["text"]) for record in result.records] == wanted
