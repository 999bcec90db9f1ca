"""Read the vectors in a file, a block of rows at a time, and the file's notes on how they were made.

Arrays are mapped, except those of .npz files, which are read into memory; Parquet is streamed.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache, partial
from itertools import repeat
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from bertcli.errors import BertcliError, first_line, quoted
from bertcli.files.formats import SETTINGS_FILE
from bertcli.folder.files import read_object

T = TypeVar("T")
MODEL, SETTINGS = NOTES = ("model", "settings")  # the keys of a file's notes on its vectors
ORIGIN = ("index", "chunk", "start", "end")  # of a chunk: its text, its number, its characters
SCALES = ("scales", "scale")  # of int8 rows, in arrays and in a table
ENDS = "offsets"  # an array stored with vectors of tokens: where each text ends
READABLE_DTYPES: list[np.dtype[Any]] = [np.dtype(name) for name in ("float16", "float32", "int8", "uint8")]
WHOLE = np.dtype(np.int64)  # of ORIGIN
# Settings that a query's vector needs.
SETTING_TYPES = {"pooling": str, "layer": list, "normalize": bool, "truncate_dim": int}
AnyNumbers = NDArray[Any]
Readers = Mapping[str, Callable[[], AnyNumbers]]
Blocks = Callable[[int], Iterator[AnyNumbers]]  # reads an array, so many rows at a time


class StoredVectors(NamedTuple):
    """The arrays or columns of a file by name; one of them holds vectors."""

    file: Path
    arrays: Mapping[str, Blocks]
    name: str
    notes: Mapping[str, str] = {}  # by NOTES: the model and the settings that made them

    @property
    def settings(self) -> dict[str, Any] | None:
        """The settings of `encode` that made the vectors; None if the file has no notes."""
        if SETTINGS not in self.notes:
            return None
        noted: object = None
        with suppress(ValueError, RecursionError):
            noted = json.loads(self.notes[SETTINGS])
        if not isinstance(noted, dict) or any(
            type(noted.get(name)) is not value_type for name, value_type in SETTING_TYPES.items()
        ):
            raise no_vectors(self.file, "says how its vectors were made in a way that cannot be read")
        return noted

    def blocks(self, count: int) -> Iterator[AnyNumbers]:
        """Yield the vectors [row, width], `count` rows at a time; uint8 rows hold bits, eight in a byte."""
        for block in self.arrays[self.name](count):
            if block.ndim != 2:
                shape = quoted(block.shape[1:])
                raise no_vectors(self.file, f"holds rows of the shape {shape}, not rows of numbers one after another")
            _check_type(self.file, block.dtype, READABLE_DTYPES)
            yield block

    def scaled(self, count: int) -> Iterator[AnyNumbers]:
        """Yield the vectors with int8 rows multiplied by their scales. Errors: BertcliError if a row has no scale."""
        name = next((name for name in SCALES if name in self.arrays), None)
        scales = self.arrays[name](count) if name else repeat(np.empty(0))
        for block, scale in zip(self.blocks(count), scales, strict=False):
            if block.dtype == np.int8:
                if scale.shape != (len(block),):
                    why = "has int8 rows without their scales (a .npy file holds none), so only cosines can be told"
                    raise no_vectors(self.file, why)
                block = block * scale[:, None]
            yield block

    def origins(self, rows: Sequence[int], count: int) -> list[dict[str, int]] | None:
        """Return the text and the part (ORIGIN) of some of `count` rows; None if every row is a whole text."""
        if not count or not set(ORIGIN) <= set(self.arrays):
            return None
        numbers = {name: np.concatenate([*self.arrays[name](count)]) for name in ORIGIN}
        if any(array.shape != (count,) or array.dtype != WHOLE for array in numbers.values()):
            raise no_vectors(self.file, f"has other arrays {', '.join(ORIGIN)} than a whole number for each vector")
        return [{name: int(numbers[name][row]) for name in ORIGIN} for row in rows]

    def checked(self) -> "StoredVectors":
        """Return self. Errors: BertcliError if these are not vectors of whole texts, or the first row is unreadable."""
        if ENDS in self.arrays:
            raise no_vectors(self.file, "holds a row for each token, not for each text")
        names = {*self.arrays}
        if self.name not in names and ({"indices", "indptr"} <= names or {"indices", "values"} <= names):
            raise BertcliError(
                f"{self.file} holds sparse vectors, and only files of dense ones are searched: "
                "search the texts themselves (search --sparse -i TEXTS)."
            )
        if self.name not in self.arrays:
            raise no_vectors(self.file, f"has no {self.name} but {quoted([*self.arrays])}")
        next(self.blocks(1), None)
        return self


def no_vectors(path: Path, what: str) -> BertcliError:
    """Make the error for a file that cannot be searched."""
    return BertcliError(f"{path} {what}: it is not a usable file of vectors.")


def _check_type(path: Path, dtype: np.dtype[Any], types: Sequence[np.dtype[Any]]) -> None:
    if dtype not in types:
        readable = ", ".join(map(str, READABLE_DTYPES))
        raise no_vectors(path, f"holds numbers of the type {quoted(dtype.str)}, not of {readable}")


def _read(path: Path, read: Callable[[], T]) -> T:
    try:
        return read()
    except BertcliError:
        raise
    except Exception as error:  # a header is a Python literal, and Python's parser has many ways to fail
        raise no_vectors(path, f"cannot be read ({first_line(error):.200})") from None


def in_arrays(path: Path, open_arrays: Callable[[Path], Readers]) -> StoredVectors:
    """Find the vectors among the arrays of a file; each array is read once."""
    readers = {
        name: cache(partial(_read, path, read)) for name, read in _read(path, partial(open_arrays, path)).items()
    }
    texts = {name: readers[name]() for name in NOTES if name in readers}
    notes = {name: str(text) for name, text in texts.items() if text.dtype.kind == "U" and not text.ndim}
    if (beside := Path(f"{path}.{SETTINGS_FILE}")).exists():
        notes |= {
            name: json.dumps(value) if name == SETTINGS else str(value) for name, value in read_object(beside).items()
        }
    arrays = {name: partial(_blocks, path, read) for name, read in readers.items()}
    return StoredVectors(path, arrays, "embeddings", notes).checked()


def _blocks(path: Path, read: Callable[[], AnyNumbers], count: int) -> Iterator[AnyNumbers]:
    array = read()
    if not array.ndim:
        raise no_vectors(path, "holds an array (), not rows of numbers one after another")
    _check_type(path, array.dtype, (*READABLE_DTYPES, WHOLE))
    return in_memory(array, count)


def in_memory(array: AnyNumbers, count: int) -> Iterator[AnyNumbers]:
    """Yield blocks of rows of an array, in memory or mapped; for an array without rows, one empty block."""
    return (array[begin : begin + count] for begin in range(0, max(1, len(array)), count))
