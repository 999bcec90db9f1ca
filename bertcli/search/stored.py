"""A file of vectors, once it is open."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from numpy.typing import NDArray

from bertcli.errors import BertcliError

NAME = "embeddings"  # of the array, if a file has several
OFFSETS = "offsets"  # an array stored with token vectors: where each text begins
TYPES = ("float16", "float32", "float64", "int8", "uint8")
Chunk = NDArray[Any]


class Stored(NamedTuple):
    """Vectors [rows, width]; `binary`: a row is `width` bytes of bits. `chunks(n)` gives n rows at a time."""

    file: Path
    rows: int
    width: int
    binary: bool
    chunks: Callable[[int], Iterator[Chunk]]
    columns: tuple[str, ...] = ()  # besides the vectors


def mapped(file: Path, vectors: Chunk) -> Stored:
    """Vectors in memory, or in a memory-mapped file."""

    def chunks(count: int) -> Iterator[Chunk]:
        for begin in range(0, len(vectors), count):
            yield vectors[begin : begin + count]

    rows, width = vectors.shape
    return Stored(file, rows, width, vectors.dtype.name == "uint8", chunks)


def no_vectors(path: Path, what: str) -> BertcliError:
    """The error for a file that cannot be searched."""
    return BertcliError(f"{path} {what}: it is not a usable file of vectors.")
