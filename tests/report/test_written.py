"""What every command that writes a file says on standard error."""

from pathlib import Path

import pytest
from helpers.terminal import bertcli

from bertcli.report.written import say_written

TEXT = "I loved every minute of it."
LABELLED = "text,label\n" + "".join(f"good film {i},yes\nbad film {i},no\n" for i in range(6))


@pytest.mark.parametrize(
    ("command", "name"),
    [
        (["explain", TEXT, "-o"], "out.html"),
        (["explain", TEXT, "-o"], "out.jsonl"),
        (["lens", "A cup of hot [MASK].", "-o"], "out.html"),
        (["heads", TEXT, "-o"], "out.html"),
        (["heads", TEXT, "-o"], "out.json"),
        (["patch", TEXT, "I hated every minute of it.", "-o"], "out.html"),
        (["diff", "bert-mini-mlm", "--versus", "bert-mini-mlm", TEXT, "-o"], "out.html"),
        (["probe", "-i", "labelled.csv", "-o"], "out.html"),
        (["trace", TEXT, "-o"], "out.html"),
        (["trace", TEXT, "--save"], "out.npz"),
        (["params", "--variant", "tiny", "--plot"], "out.mmd"),
        (["encode", TEXT, "-o"], "out.npy"),
        (["encode", TEXT, "-o"], "out.jsonl"),
        (["encode", TEXT, "--pooling", "none", "-o"], "out.npz"),
        (["classify", TEXT, "-o"], "out.csv"),
        (["fill-mask", "A cup of hot [MASK].", "-o"], "out.json"),
        (["score", TEXT, "-o"], "out.jsonl"),
        (["tokenize", TEXT, "-o"], "out.json"),
        (["neighbors", "king", "-o"], "out.json"),
        (["similarity", TEXT, "tea", "-o"], "out.json"),
        (["similarity", TEXT, "tea", "-o"], "out.npy"),
        (["search", "tea", "--in", "vectors.npy", "-o"], "out.csv"),
        (["merge", "sharded-*-of-00001.npy", "-o"], "out.npy"),
        (["export", "--no-check", "-o"], "out.onnx"),
    ],
    ids=lambda value: value if isinstance(value, str) else value[0],
)
def test_a_command_says_what_it_wrote(
    command: list[str], name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("labelled.csv").write_text(LABELLED, encoding="utf-8")
    bertcli("encode", "-i", "labelled.csv", "-o", "vectors.npy")
    bertcli("encode", "-i", "labelled.csv", "-o", "sharded.npy", "--shard", "0/1")
    done = bertcli(*command, name)
    assert done.status == 0, done.err
    size = Path(name).stat().st_size
    shown = f"{size} bytes" if size < 1000 else f"{size / 1e3:.0f} kB" if size < 999_500 else f"{size / 1e6:.1f} MB"
    assert [line for line in done.err.splitlines() if line.startswith("Wrote")] == [f"Wrote {name} ({shown})."]


@pytest.mark.parametrize(
    ("size", "shown"),
    [(1, "1 byte"), (999, "999 bytes"), (1499, "1 kB"), (999_499, "999 kB"), (999_500, "1.0 MB")],
)
def test_sizes_agree_with_their_nouns(
    size: int, shown: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "a.bin"
    file.write_bytes(bytes(size))
    say_written(file)
    assert capsys.readouterr().err == f"Wrote {file} ({shown}).\n"


def test_a_folder_has_the_size_of_its_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "deep").mkdir()
    (tmp_path / "a").write_bytes(bytes(1500))
    (tmp_path / "deep" / "b").write_bytes(bytes(1500))
    say_written(tmp_path)
    assert capsys.readouterr().err == f"Wrote {tmp_path} (3 kB).\n"
