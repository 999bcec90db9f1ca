"""Report written files on standard error, and keep the command line that pages show in their frame."""

import os
import sys
from contextlib import suppress
from contextvars import ContextVar
from pathlib import Path

from bertcli.report.terminal import visible

# The command line that runs, for pages to show; "" where no command runs, or one whose words are nobody's business.
COMMAND: ContextVar[str] = ContextVar("command", default="")


def say_written(path: str | Path) -> None:
    """Print `Wrote report.html (12 kB).` on standard error: of a folder the size of all files in it."""
    path = Path(path)
    files = [file for file in path.rglob("*") if file.is_file()] if path.is_dir() else [path]
    size = sum(os.path.getsize(file) for file in files)
    # A closed standard error is no reason to fail: the file is there.
    with suppress(OSError):
        print(f"Wrote {visible(str(path))} ({size_on_disk(size)}).", file=sys.stderr, flush=True)


def size_on_disk(count: int) -> str:
    """`512 bytes`, `12 kB`, `3.4 MB`, `1.2 GB`: powers of ten, as file managers show them."""
    if count < 1000:
        return f"{count} byte{'' if count == 1 else 's'}"
    if count < 999_500:
        return f"{count / 1e3:.0f} kB"
    if count < 999_950_000:
        return f"{count / 1e6:.1f} MB"
    return f"{count / 1e9:.1f} GB"
