"""What `encode` gives, in a file: arrays of vectors, or a Parquet table of texts and vectors.

There is a row for every text of the input (with --chunk, for every chunk), in its order. A text that could not be used
has zeros for its row (nothing, where there is a row a token, or the vectors are sparse; null in Parquet), and
FILE.errors.jsonl (in Parquet the column "error") says why.

    one a text        embeddings [text, width], and of int8 scales [text]
    one a token       embeddings [token, width]; offsets [text + 1]: text i has the rows offsets[i] to offsets[i + 1]
    sparse            data, indices, indptr as in the CSR form of scipy.sparse, which can load the .npz
    chunks            also index (of the text), chunk (its number), start, end (its characters in the text)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from bertcli.files.arrays import ArrayFile, Rows, Stored
from bertcli.files.draft import ERRORS, Draft
from bertcli.files.parquet import ENDING as PARQUET
from bertcli.files.parquet import ParquetFile, Row
from bertcli.files.quantize import quantize, stored_width
from bertcli.files.records import RecordWriter
from bertcli.files.texts import Chunk, Failure, Text

TYPES = {"float32": "<f4", "float16": "<f2", "int8": "|i1", "binary": "|u1"}
ORIGIN = ("index", "chunk", "start", "end")  # what a chunk is called in a file
Arrays = dict[str, NDArray[Any]]


class Used(Protocol):
    """A text, or (`chunk`) a part of one, that has vectors: its number in the input, and what is `shown` of it."""

    @property
    def index(self) -> int: ...
    @property
    def text(self) -> Text: ...
    @property
    def chunk(self) -> Chunk | None: ...
    @property
    def shown(self) -> str: ...


class Sparse(Protocol):
    """The entries of a vector that are not 0, in ascending order."""

    @property
    def indices(self) -> NDArray[np.int32]: ...
    @property
    def values(self) -> NDArray[np.float32]: ...


class Block(Protocol):
    """Consecutive texts: those with vectors, and the others.

    vectors: an array [text, width], or for each text one [token, width], or (sparse) a Sparse.
    """

    @property
    def items(self) -> Sequence[Used]: ...
    @property
    def vectors(self) -> NDArray[Any] | Sequence[NDArray[Any]] | Sequence[Sparse]: ...
    @property
    def failures(self) -> Sequence[Failure]: ...


@dataclass(frozen=True)
class VectorForm:
    """How vectors are stored: how many numbers, as which of TYPES, and how many a text (see above).

    paired, own_ids, keep_going: of a Parquet table, whether texts come in pairs, with ids, and may fail.
    """

    width: int
    dtype: str = "float32"
    ragged: bool = False  # one a token
    sparse: bool = False
    chunked: bool = False
    paired: bool = False
    own_ids: bool = False
    keep_going: bool = False

    @property
    def ends(self) -> str | None:
        """The array that says where each text's rows or entries end."""
        return "indptr" if self.sparse else "offsets" if self.ragged else None

    def arrays(self, ending: str) -> list[Rows]:
        """The arrays of a file; a .npy file holds only one."""
        listed = self.ends is not None
        if self.sparse:
            found = [Rows("indices", "<i4", (), listed), Rows("data", "<f4", (), listed)]
        else:
            found = [Rows("embeddings", TYPES[self.dtype], (stored_width(self.width, self.dtype),), listed)]
            found += [Rows("scales", "<f4", (), listed)] * (self.dtype == "int8" and ending != ".npy")
        found += [Rows(name, "<i8") for name in ORIGIN] * (self.chunked and ending != PARQUET)
        return [*found, *([Rows(self.ends, "<i8")] if self.ends else [])]

    def rows(self, block: Block, before: int) -> Arrays:
        """The rows of a block's texts in order; `before` them there are so many of one a token, or so many entries."""
        places, origins = _order(block)
        values, lengths = self._values(block.vectors)
        arrays = dict(zip(ORIGIN, np.array(origins, np.int64).reshape(-1, len(ORIGIN)).T, strict=True))
        if self.ends:
            arrays[self.ends] = before + np.cumsum(_spread(np.array(lengths, np.int64), places, len(origins)))
            return arrays | values
        return arrays | {name: _spread(array, places, len(origins)) for name, array in values.items()}

    def _values(self, vectors: Any) -> tuple[Arrays, list[int]]:
        """The numbers of texts one after another, and how many rows or entries each text has."""
        if self.sparse:
            data = np.concatenate([np.empty(0, np.float32), *(vector.values for vector in vectors)])
            indices = np.concatenate([np.empty(0, np.int32), *(vector.indices for vector in vectors)])
            return {"data": data, "indices": indices}, [len(vector.indices) for vector in vectors]
        flat = np.concatenate([np.empty((0, self.width), np.float32), *vectors]) if self.ragged else np.asarray(vectors)
        values, scales = quantize(flat, self.dtype)
        return {"embeddings": values, **({} if scales is None else {"scales": scales})}, [len(v) for v in vectors]


def _order(block: Block) -> tuple[list[int], list[tuple[int, int, int, int]]]:
    """Which row each item of a block has, and what each row is: ORIGIN, zeros after the index of a whole text."""
    chunks = [item.chunk for item in block.items]
    parts = [(chunk.number, chunk.start, chunk.end) if chunk else (0, 0, 0) for chunk in chunks]
    used = [(item.index, *part) for item, part in zip(block.items, parts, strict=True)]
    origins = sorted([*used, *((failure.index, 0, 0, 0) for failure in block.failures)])
    place = {origin[:2]: row for row, origin in enumerate(origins)}
    return [place[origin[:2]] for origin in used], origins


def _spread(rows: NDArray[Any], places: list[int], count: int) -> NDArray[Any]:
    """Rows at their places among `count`, zeros elsewhere."""
    if len(rows) == count:
        return rows
    spread = np.zeros((count, *rows.shape[1:]), rows.dtype)
    spread[places] = rows
    return spread


def vector_file(draft: Draft, form: VectorForm) -> VectorFile | VectorTable:
    """The file for a draft's ending: `append(block)` for each block, and at the end `finish`, which publishes it."""
    return (VectorTable if _ending(draft.file) == PARQUET else VectorFile)(draft, form)


def failures_shown(file: str) -> str:
    """How the file of this name shows which texts could not be used."""
    if _ending(file) == PARQUET:
        return "their vectors are null, and column error says why"
    return f"their vectors are zeros, and {file}.{ERRORS} says why"


def _ending(file: str) -> str:
    return Path(file).suffix.lower()


class VectorFile:
    """Vectors in .npy, .npz or .safetensors."""

    def __init__(self, draft: Draft, form: VectorForm) -> None:
        self._form = form
        arrays = form.arrays(_ending(draft.file))
        self._file = ArrayFile(draft, arrays)
        self._errors = RecordWriter(draft.part(ERRORS), array=False)
        if form.ends and not self._file.rows()[-1]:
            none: Arrays = {array.name: np.empty((0, *array.row), array.dtype) for array in arrays}
            self._file.append({**none, form.ends: np.zeros(1, np.int64)})

    def append(self, block: Block) -> None:
        self._file.append(self._form.rows(block, self._file.rows()[0]))
        for failure in block.failures:
            self._errors.write(failure.record())

    def finish(self) -> None:
        more = []
        if self._form.sparse:
            shape = np.array([self._file.rows()[-1] - 1, self._form.width], "<i8")
            more = [Stored("shape", "<i8", (2,), [shape.tobytes()]), Stored("format", "|S3", (), [b"csr"])]
        self._file.finish(ERRORS, more=more)


class VectorTable:
    """Vectors in .parquet, with columns id (the text's own, else its number), text, and perhaps text_pair and error."""

    def __init__(self, draft: Draft, form: VectorForm) -> None:
        self._form = form
        origin = ORIGIN if form.chunked else ()
        names = ["id", *origin, "text", *["text_pair"] * form.paired, *["error"] * form.keep_going]
        self._file = ParquetFile(draft, form.arrays(PARQUET), names)

    def append(self, block: Block) -> None:
        places, origins = _order(block)
        rows: list[Row] = [{**dict(zip(ORIGIN, origin, strict=True)), "id": origin[0]} for origin in origins]
        for place, item in zip(places, block.items, strict=True):
            rows[place] |= {"text": item.shown, "text_pair": item.text.pair, "error": None}
            rows[place] |= {} if item.text.id is None else {"id": item.text.id}
        at = {origin[0]: place for place, origin in enumerate(origins)}
        for failure in block.failures:
            rows[at[failure.index]] |= {"text": None, "text_pair": None, "error": failure.error}
            rows[at[failure.index]] |= {"id": failure.text.id} if self._form.own_ids else {}
        self._file.append(self._form.rows(block, self._file.rows()[0] if self._form.ends else 0), rows)

    def finish(self) -> None:
        self._file.finish()
