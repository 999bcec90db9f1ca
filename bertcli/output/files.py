"""Output files: written next to their place and renamed when complete, so that no partial file is ever found there."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from secrets import token_hex
from types import TracebackType
from typing import BinaryIO

from bertcli.errors import BertcliError


def check_output(file: str, endings: tuple[str, ...]) -> str:
    """The ending of an output file in lower case; BertcliError if it is not one of `endings` or cannot be written."""
    ending = Path(file).suffix.lower()
    if ending not in endings:
        several = ending == ".npy" and ".npz" in endings
        why = " A .npy file holds one array, but this result has several." if several else ""
        raise BertcliError(f"Cannot write {file}: the ending must be one of {', '.join(endings)}.{why}")
    path = Path(os.path.realpath(file))
    if not path.parent.is_dir():
        raise BertcliError(f"Cannot write {file}: there is no folder {path.parent}.")
    if path.exists() and not path.is_file():
        raise BertcliError(f"Cannot write {file}: something of that name exists that is not a file.")
    if path.exists() and not os.access(path, os.W_OK):
        raise BertcliError(f"Cannot write {file}: it already exists and is write-protected.")
    if not os.access(path.parent, os.W_OK):
        raise BertcliError(f"Cannot write {file}: the folder {path.parent} is not writable.")
    return ending


class OutputFile:
    """A binary file that turns disk errors into BertcliErrors naming the file."""

    def __init__(self, stream: BinaryIO, name: str) -> None:
        self._stream = stream
        self._name = name

    def write(self, data: bytes | memoryview) -> int:
        with self._failures():
            return self._stream.write(data)

    def seek(self, offset: int) -> int:
        with self._failures():
            return self._stream.seek(offset)

    def tell(self) -> int:
        return self._stream.tell()

    def flush(self) -> None:
        with self._failures():
            self._stream.flush()

    def sync(self) -> None:
        """Wait until the bytes are on disk."""
        self.flush()
        with self._failures():
            os.fsync(self._stream.fileno())

    @contextmanager
    def _failures(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise cannot_write(self._name, error) from None


def cannot_write(name: str, error: OSError) -> BertcliError:
    """The error for a failed write."""
    return BertcliError(f"Cannot write {name}: {error.strerror or error}; nothing there was changed.")


class Replacement:
    """`with Replacement(file) as output:` — an OutputFile that replaces `file` when the block succeeds.

    On an error, including Ctrl-C, it is removed and the old file stays. The folder must exist.
    """

    def __init__(self, file: str) -> None:
        self._name = file
        self._path = Path(os.path.realpath(file))  # a link is followed, not replaced
        self._temporary = self._path.with_name(f".{self._path.name}.{token_hex(8)}.part")

    def __enter__(self) -> OutputFile:
        try:
            mode = self._mode_of_old_file()
            self._stream = self._temporary.open("xb+")  # fails if a file or link of that name exists
            if mode is not None:
                self._temporary.chmod(mode)
        except OSError as error:
            raise cannot_write(self._name, error) from None
        self._output = OutputFile(self._stream, self._name)
        return self._output

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if kind is None:
                self._output.sync()
                self._stream.close()
                self._temporary.replace(self._path)
        except OSError as failure:
            raise cannot_write(self._name, failure) from None
        finally:
            with suppress(OSError):  # flushing to a full disk
                self._stream.close()
            with suppress(OSError):
                self._temporary.unlink(missing_ok=True)

    def _mode_of_old_file(self) -> int | None:
        """Permissions of the file to be replaced."""
        try:
            return stat.S_IMODE(self._path.stat().st_mode)
        except FileNotFoundError:
            return None
