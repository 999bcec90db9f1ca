"""An unfinished file: bytes are appended, and it can be truncated to its last good size."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from pathlib import Path

from bertcli.output.journal import ONLY_PART, put

TOGETHER = 1 << 20  # bytes gathered before they are written


class Part:
    """A file that keeps its first `size` bytes and is appended to through a buffer. Errors: OSError."""

    def __init__(self, path: Path, size: int = 0, mode: int | None = None) -> None:
        self.path = path
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | ONLY_PART, 0o666)
        os.ftruncate(self._file, size)
        self._mode = mode
        if mode is not None:
            os.chmod(path, mode | 0o600)  # another run may have to open it
        self._written = size
        self._waiting: list[bytes] = []
        self._doubtful = False
        self.size = size

    def write(self, data: bytes) -> int:
        """Append; `size` includes what is still in memory."""
        self._waiting.append(data)
        self.size += len(data)
        if self.size - self._written >= TOGETHER:
            self.flush()
        return len(data)

    def flush(self) -> None:
        """Pass everything to the system; after a failure this may be tried again."""
        data = b"".join(self._waiting)
        if self._doubtful or self._written + len(data) != self.size:  # the latter after Ctrl-C during `write`
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        self._put(self._written, data)
        self._waiting = []
        self._written = self.size

    def sync(self) -> None:
        """Wait until everything is on disk."""
        self.flush()
        try:
            os.fsync(self._file)
        except OSError:  # some systems drop what they could not write, and report it only once
            self._doubtful = True
            raise

    def overwrite(self, offset: int, data: bytes) -> None:
        """Replace bytes at `offset`."""
        self.flush()
        self._put(offset, data)

    def cut(self, size: int) -> None:
        """Truncate to the first `size` bytes."""
        self.flush()
        os.ftruncate(self._file, size)
        self._written = self.size = size

    def chunks(self, start: int = 0, length: int = TOGETHER) -> Iterator[bytes]:
        """The file's contents from `start` on, `length` bytes at a time."""
        self.flush()
        for offset in range(start, self.size, length):
            os.lseek(self._file, offset, os.SEEK_SET)
            yield self._read(min(length, self.size - offset))

    def seal(self) -> None:
        """Save everything to disk, give the file its permissions and close it."""
        self.sync()
        if self._mode is not None:
            os.chmod(self.path, self._mode)
        self.close()

    def close(self) -> None:
        """Close the file; what is still in memory is dropped."""
        if self._file >= 0:
            file, self._file = self._file, -1
            os.close(file)

    def _put(self, offset: int, data: bytes) -> None:
        os.lseek(self._file, offset, os.SEEK_SET)
        put(self._file, data)

    def _read(self, count: int) -> bytes:
        parts = []
        while count and (part := os.read(self._file, count)):
            parts.append(part)
            count -= len(part)
        return b"".join(parts)


def mode_of(path: Path) -> int | None:
    """Permissions of a file; None if it does not exist."""
    try:
        return stat.S_IMODE(os.stat(path).st_mode)
    except FileNotFoundError:
        return None


def sync_folder(folder: Path) -> None:
    """Wait until the file names in a folder are on disk, where the system supports that."""
    if hasattr(os, "O_DIRECTORY"):
        file = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(file)
        finally:
            os.close(file)
