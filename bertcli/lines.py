"""Lines of a file or pipe: UTF-8, ended by \\n or \\r\\n only, read as they come."""

from __future__ import annotations

import os
import select
import stat
import sys
from collections import deque
from collections.abc import Iterator
from contextlib import nullcontext
from typing import BinaryIO, NamedTuple

from bertcli.errors import BertcliError

STANDARD_INPUT = "-"
CHUNK = 1 << 18  # bytes
PAUSE = 0.02  # seconds without input after which a pipe counts as waiting
BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class Line(NamedTuple):
    """A line without its end, and what that end was: "\\n", "\\r\\n", or nothing at the end of the file."""

    number: int
    text: str
    end: str
    name: str

    @property
    def place(self) -> str:
        return f"{self.name}, line {self.number}"


class LineStream:
    """The lines of a file (`-`: standard input), and whether the next one is at hand.

    A final newline begins no further line; a byte-order mark is dropped. Errors: BertcliError naming the file that
    cannot be read (at once where it is missing), or the line that is not UTF-8.
    """

    def __init__(self, file: str) -> None:
        self.name = "standard input" if file == STANDARD_INPUT else file
        self._file = file
        self._stream: BinaryIO | None = None
        self._ready: deque[bytes] = deque()
        if file != STANDARD_INPUT:
            self._check()

    def waiting(self) -> bool:
        """True when whoever writes into the pipe or terminal has paused, so that a reader had better work meanwhile."""
        if self._ready or self._stream is None or not _may_pause(self._stream):
            return False
        try:
            return not select.select([self._stream], [], [], PAUSE)[0]
        except OSError:  # a system that cannot ask this of a pipe
            return False

    def __iter__(self) -> Iterator[Line]:
        self._stream = _standard_input() if self._file == STANDARD_INPUT else self._open()
        with nullcontext() if self._file == STANDARD_INPUT else self._stream:
            for number, raw in enumerate(self._raw_lines(self._stream), 1):
                if number == 1 and raw == BYTE_ORDER_MARK:
                    return
                yield self._line(number, raw.removeprefix(BYTE_ORDER_MARK) if number == 1 else raw)

    def _line(self, number: int, raw: bytes) -> Line:
        end = "\r\n" if raw.endswith(b"\r\n") else "\n" if raw.endswith(b"\n") else ""
        try:
            return Line(number, raw[: len(raw) - len(end)].decode("utf-8"), end, self.name)
        except UnicodeDecodeError as error:
            raise BertcliError(
                f"{self.name}, line {number}: not UTF-8 (byte {error.start + 1} is 0x{raw[error.start]:02x}): "
                "save the file as UTF-8."
            ) from None

    def _raw_lines(self, stream: BinaryIO) -> Iterator[bytes]:
        parts: list[bytes] = []  # of a line whose end has not come yet
        while chunk := self._read(stream):
            *lines, rest = chunk.split(b"\n")
            if lines:
                self._ready.append(b"".join([*parts, lines[0], b"\n"]))
                self._ready.extend(line + b"\n" for line in lines[1:])
                parts = []
            parts.append(rest)
            while self._ready:
                yield self._ready.popleft()
        if last := b"".join(parts):
            yield last

    def _read(self, stream: BinaryIO) -> bytes:
        try:
            while (chunk := stream.read(CHUNK)) is None:  # a pipe that someone set to answer at once
                select.select([stream], [], [])
            return chunk
        except OSError as error:
            raise self._unreadable(error) from None

    def _check(self) -> None:
        try:
            if stat.S_ISDIR(os.stat(self._file).st_mode):
                raise BertcliError(f"Cannot read {self.name}: it is a folder.")
        except (OSError, ValueError) as error:  # ValueError: a NUL in the name
            raise self._unreadable(error) from None
        if not os.access(self._file, os.R_OK):
            raise BertcliError(f"Cannot read {self.name}: permission denied.")

    def _open(self) -> BinaryIO:
        try:
            return open(self._file, "rb", buffering=0)  # what is at hand, without waiting for a full buffer
        except OSError as error:
            raise self._unreadable(error) from None

    def _unreadable(self, error: Exception) -> BertcliError:
        return BertcliError(f"Cannot read {self.name}: {getattr(error, 'strerror', None) or error}.")


def _standard_input() -> BinaryIO:
    if sys.stdin is None:
        raise BertcliError("Standard input is closed: give a text or a file.")
    buffer = sys.stdin.buffer
    return getattr(buffer, "raw", buffer)


def _may_pause(stream: BinaryIO) -> bool:
    """True for pipes and terminals, False for files and for what lies in memory."""
    try:
        return not stat.S_ISREG(os.fstat(stream.fileno()).st_mode)
    except OSError:  # io.UnsupportedOperation too
        return False
