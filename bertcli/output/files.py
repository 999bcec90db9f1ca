"""Output files: written beside their place and renamed when whole, so that nothing half-done is ever found there."""

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
    """The ending of an output file in lower case; BertcliError when it is not one of `endings`, or has no folder."""
    ending = Path(file).suffix.lower()
    if ending not in endings:
        several = ending == ".npy" and ".npz" in endings
        why = " A .npy file holds one array, and this result is several." if several else ""
        raise BertcliError(f"Cannot write {file}: the ending must be one of {', '.join(endings)}.{why}")
    path = Path(os.path.realpath(file))
    if not path.parent.is_dir():
        raise BertcliError(f"Cannot write {file}: there is no folder {path.parent}.")
    if path.exists() and not path.is_file():
        raise BertcliError(f"Cannot write {file}: there is something of that name which is not a file.")
    if path.exists() and not os.access(path, os.W_OK):
        raise BertcliError(f"Cannot write {file}: it is there already, and protected from being written.")
    if not os.access(path.parent, os.W_OK):
        raise BertcliError(f"Cannot write {file}: the folder {path.parent} is not writable.")
    return ending


class OutputFile:
    """A binary file that turns the disk's failures into BertcliErrors which name the file."""

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
        """Wait until the bytes are on the disk."""
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
    """What to say when the disk refuses."""
    return BertcliError(f"Cannot write {name}: {error.strerror or error}; nothing there was changed.")


class Replacement:
    """`with Replacement(file) as output:` — an OutputFile that takes the place of `file` when the block ends well.

    On an error, Ctrl-C included, it is removed and what was there before stays. Opening it needs the folder to exist.
    """

    def __init__(self, file: str) -> None:
        self._name = file
        self._path = Path(os.path.realpath(file))  # a link is followed, not replaced
        self._temporary = self._path.with_name(f".{self._path.name}.{token_hex(8)}.part")

    def __enter__(self) -> OutputFile:
        try:
            mode = self._mode_of_old_file()
            self._stream = self._temporary.open("xb+")  # never a file, or a link, that somebody has put there
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
            with suppress(OSError):  # what a full disk did not take yet
                self._stream.close()
            with suppress(OSError):
                self._temporary.unlink(missing_ok=True)

    def _mode_of_old_file(self) -> int | None:
        """Permissions of the file to be replaced."""
        try:
            return stat.S_IMODE(self._path.stat().st_mode)
        except FileNotFoundError:
            return None
