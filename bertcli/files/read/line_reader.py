"""Read the lines of a file, a gzip or a pipe as they arrive: UTF-8, ended by \\n or \\r\\n only."""

import gzip
import os
import select
import stat
import sys
import zlib
from collections import deque
from collections.abc import Generator, Iterator
from contextlib import nullcontext
from typing import BinaryIO, NamedTuple, cast

from bertcli.errors import BertcliError
from bertcli.files.texts import STANDARD_INPUT

CHUNK = 1 << 18  # bytes
LONGEST_LINE = 1 << 25  # bytes of a line: a longer one is not text, and a file without lines must not fill the memory
PAUSE = 0.02  # seconds without input after which a pipe counts as waiting
BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class Line(NamedTuple):
    """A line without its end, and that end: "\\n", "\\r\\n", or "" at the end of the file.

    location: file and line number, for messages. error: set for a line that is not UTF-8; its text has replacement
    characters instead of the bad bytes.
    """

    location: str
    text: str
    end: str
    error: str | None = None


class LineFile:
    """An iterable of the lines of a file (`-`: standard input; ….gz: unpacked).

    `regular` is true for a file on disk, which can be read again, unlike a pipe. A final newline does not begin another
    line; a byte-order mark is dropped. Errors: BertcliError naming a file that cannot be read (at once if it is
    missing), the line at which a gzip is damaged, or a line of more than LONGEST_LINE bytes.
    """

    def __init__(self, file: str) -> None:
        self.name = "standard input" if file == STANDARD_INPUT else file
        self._file = file
        self._stream: BinaryIO | None = None
        self._ready: deque[bytes] = deque()
        self._packed = file.lower().endswith(".gz")
        self._used = 0  # bytes of the file that have been read
        self._size = 0
        self._number = 0  # of the line given last
        if file != STANDARD_INPUT:
            check_readable(file)
        self.regular = file != STANDARD_INPUT and os.path.isfile(file)

    def waiting(self) -> bool:
        """True if the writer of a pipe has paused, so that the caller can compute meanwhile."""
        # Closed: the last sequence of a FASTA file is given out after the end of the file.
        if self._ready or self._stream is None or self._stream.closed or not _may_pause(self._stream):
            return False
        try:
            return not select.select([self._stream], [], [], PAUSE)[0]
        # Windows cannot poll pipes; select takes file descriptors up to 1,023 only.
        except (OSError, ValueError):
            return False

    def share_read(self) -> float | None:
        """The share of the file that has been read, 0 to 1; None if its size is unknown."""
        return min(1.0, self._used / self._size) if self._size else None

    def __iter__(self) -> Generator[Line, None, None]:
        self._stream = self._open()
        self._used = self._number = 0
        self._size = os.path.getsize(self._file) if self.regular else 0
        with nullcontext() if self._file == STANDARD_INPUT else self._stream:
            for raw in self._raw_lines(self._stream):
                self._number += 1
                self._used += 0 if self._packed else len(raw)
                if self._number == 1 and raw == BYTE_ORDER_MARK:
                    return
                yield self._line(raw.removeprefix(BYTE_ORDER_MARK) if self._number == 1 else raw)

    def _line(self, raw: bytes) -> Line:
        end = next((end for end in ("\r\n", "\n") if raw.endswith(end.encode())), "")
        body, location = raw[: len(raw) - len(end)], f"{self.name}, line {self._number}"
        try:
            return Line(location, body.decode("utf-8"), end)
        except UnicodeDecodeError as error:
            why = f"not UTF-8 (byte {error.start + 1} is 0x{raw[error.start]:02x}): save the file as UTF-8."
            return Line(location, body.decode("utf-8", "replace"), end, f"{location}: {why}")

    def _raw_lines(self, stream: BinaryIO) -> Iterator[bytes]:
        parts: list[bytes] = []  # of a line whose end has not arrived yet
        size = 0
        while chunk := self._read(stream):
            *lines, rest = chunk.split(b"\n")
            if lines:
                self._ready.append(b"".join([*parts, lines[0], b"\n"]))
                self._ready.extend(line + b"\n" for line in lines[1:])
                parts, size = [], 0
            parts.append(rest)
            size += len(rest)
            while self._ready:
                yield self._ready.popleft()
            if size > LONGEST_LINE:
                raise self._broken(f"more than {LONGEST_LINE:,} bytes without a line end, so this is not text.")
        if last := b"".join(parts):
            yield last

    def _read(self, stream: BinaryIO) -> bytes:
        try:
            if isinstance(stream, gzip.GzipFile):
                chunk = stream.read1(CHUNK)  # returns what was unpacked before an error
                self._used = os.lseek(stream.fileno(), 0, os.SEEK_CUR) if self._size else 0
                return chunk
            while (chunk := stream.read(CHUNK)) is None:  # a non-blocking pipe without data
                select.select([stream], [], [])
            return chunk
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            why = "it ends before its data do" if isinstance(error, EOFError) else error
            raise self._broken(f"the gzip is damaged here ({why}): fetch or make it again.") from None
        except OSError as error:
            raise _unreadable(self.name, error) from None

    def _broken(self, why: str) -> BertcliError:
        return BertcliError(f"{self.name}, line {self._number + 1}: {why}")

    def _open(self) -> BinaryIO:
        if self._file == STANDARD_INPUT:
            if sys.stdin is None:
                raise BertcliError("Standard input is closed: give a text or a file.")
            return getattr(sys.stdin.buffer, "raw", sys.stdin.buffer)
        try:
            if not self._packed:
                return open(self._file, "rb", buffering=0)  # returns what is available, without filling a buffer
            stream = cast(BinaryIO, gzip.GzipFile(self._file, "rb"))
        except OSError as error:
            raise _unreadable(self.name, error) from None
        if not _may_pause(stream) and os.fstat(stream.fileno()).st_size == 0:
            stream.close()
            raise self._broken("the gzip is damaged here (it is empty): fetch or make it again.")
        return stream


def unpacked_size(file: str, most: int) -> int:
    """Count the bytes of a file, of a gzip those that it unpacks to. Counting stops beyond `most`.

    Of a gzip that is damaged, those before the damage. Errors: BertcliError for a file that cannot be read.
    """
    check_readable(file)
    if not file.lower().endswith(".gz"):
        return os.path.getsize(file)
    size = 0
    try:
        with gzip.GzipFile(file, "rb") as stream:
            while size <= most and (chunk := stream.read1(CHUNK)):
                size += len(chunk)
    except (EOFError, zlib.error, gzip.BadGzipFile):
        # Reading it says at which line it is damaged.
        return size
    except OSError as error:
        raise _unreadable(file, error) from None
    return size


def check_readable(file: str) -> None:
    """Raise BertcliError naming a file that is missing, a folder, or unreadable."""
    try:
        if stat.S_ISDIR(os.stat(file).st_mode):
            raise BertcliError(f"Cannot read {file}: it is a folder.")
    except (OSError, ValueError) as error:  # ValueError: a NUL in the name
        raise _unreadable(file, error) from None
    if not os.access(file, os.R_OK):
        raise BertcliError(f"Cannot read {file}: permission denied.")


def _unreadable(name: str, error: Exception) -> BertcliError:
    return BertcliError(f"Cannot read {name}: {getattr(error, 'strerror', None) or error}.")


def _may_pause(stream: BinaryIO) -> bool:
    """True for pipes and terminals, False for files and in-memory streams."""
    try:
        return not stat.S_ISREG(os.fstat(stream.fileno()).st_mode)
    except OSError:  # io.UnsupportedOperation too
        return False
