"""Files of texts, one on each line."""

from collections.abc import Iterable
from pathlib import Path


def write_lines(file: Path, lines: Iterable[object]) -> None:
    file.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
