"""What every command that writes a file says on standard error."""

from pathlib import Path

import pytest

from bertcli.report.written import say_written


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
