"""The progress of an unfinished result: checksummed lines in a file that only one process at a time may hold."""

from __future__ import annotations

import errno
import json
import os
import zlib
from contextlib import suppress
from pathlib import Path
from typing import Any

from bertcli.errors import BertcliError

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

Entry = dict[str, Any]
ONLY_PART = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0)
LOCKED = (errno.EWOULDBLOCK, errno.EAGAIN, errno.EACCES, errno.EDEADLK)  # by another process
FAR = 1 << 40  # offset of the byte to lock on Windows, where a locked byte cannot be read


class Journal:
    """Entries (JSON objects), one per line after its CRC-32; locked until `close`, or until the process ends.

    Only complete lines count: after a crash during a write, the line before is the last. Errors: BertcliError naming
    the process that holds the journal, OSError.
    """

    def __init__(self, path: Path, target: str) -> None:
        self.path = path
        self._file = _locked(path, target)
        self.entries, self._end = _read(self._file)

    def append(self, entry: Entry, sync: bool = True) -> None:
        """Write an entry after the last complete one and (sync) wait until it is on disk."""
        data = _line(entry)
        os.ftruncate(self._file, self._end)
        os.lseek(self._file, self._end, os.SEEK_SET)
        put(self._file, data)
        if sync:
            os.fsync(self._file)
        self._end += len(data)
        self.entries.append(entry)

    def clear(self) -> None:
        """Forget all entries."""
        os.ftruncate(self._file, 0)
        self.entries, self._end = [], 0

    def find(self, key: str) -> Any:
        """The value of `key` in the last entry that has one."""
        return next((entry[key] for entry in reversed(self.entries) if key in entry), None)

    def close(self) -> None:
        """Release the journal to other processes."""
        if self._file >= 0:
            file, self._file = self._file, -1
            os.close(file)

    def remove(self) -> None:
        """Delete the file while it is still locked, and close it."""
        try:
            os.unlink(self.path)
            self.close()
        except PermissionError:  # Windows cannot delete an open file
            self.close()
            with suppress(OSError):
                os.unlink(self.path)


def _locked(path: Path, target: str) -> int:
    while True:
        file = os.open(path, os.O_RDWR | os.O_CREAT | ONLY_PART, 0o666)
        if not _lock(file):
            pid = next((entry["pid"] for entry in reversed(_read(file)[0]) if "pid" in entry), None)
            os.close(file)
            who = f"Process {pid}" if pid else "Another process"
            raise BertcliError(f"{who} is writing {target} right now: wait for it, or choose another --output.")
        if _is_at(path, file):
            return file
        os.close(file)  # the process that held it has just deleted it


def _lock(file: int) -> bool:
    """Lock the file; true if it is ours now. The system releases it when the process ends, however it ends."""
    try:
        if fcntl is not None:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        else:
            import msvcrt  # pragma: no cover

            os.lseek(file, FAR, os.SEEK_SET)  # type: ignore[unreachable, unused-ignore]
            msvcrt.locking(file, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined, unused-ignore]
    except OSError as error:
        return error.errno not in LOCKED  # other errors: a file system without locks
    return True


def _is_at(path: Path, file: int) -> bool:
    try:
        return os.path.samestat(os.stat(path), os.fstat(file))
    except FileNotFoundError:
        return False


def _line(entry: Entry) -> bytes:
    text = json.dumps(entry).encode()
    return b"%08x %s\n" % (zlib.crc32(text), text)


def _read(file: int) -> tuple[list[Entry], int]:
    """The entries before the first incomplete one, and how many bytes they take."""
    os.lseek(file, 0, os.SEEK_SET)
    data = b"".join(iter(lambda: os.read(file, 1 << 20), b""))
    entries: list[Entry] = []
    end = 0
    while (stop := data.find(b"\n", end) + 1) > 0:
        check, _, text = data[end : stop - 1].partition(b" ")
        if check != b"%08x" % zlib.crc32(text):
            break
        entries.append(json.loads(text))
        end = stop
    return entries, end


def put(file: int, data: bytes) -> None:
    """Write at the file's position until everything is written: one call may write only part."""
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(file, rest) :]
