"""What `encode` gives, in a file: arrays of vectors, or a Parquet table of texts and vectors.

There is a row for every text of the input (with --chunk, for every chunk), in its order. A text that could not be used
has zeros for its row (nothing, where there is a row a token, or the vectors are sparse; null in Parquet), and
FILE.errors.jsonl (in Parquet the column "error") says why.

    one a text        embeddings [text, width], and of int8 scales [text]
    one a token       embeddings [token, width]; offsets [text + 1]: text i has the rows offsets[i] to offsets[i + 1]
    sparse            data, indices, indptr as in the CSR form of scipy.sparse, which can load the .npz
    chunks            also index (of the text), chunk (its number), start, end (its characters in the text)

They may be quantized, each vector on its own, so a stream gives the same result as one array:

    float16           the nearest value: relative error at most 2⁻¹¹ (absolute error at most 2⁻²⁵ below 2⁻¹⁴)
    int8              x ≈ scale · q with scale = max|x| / 127: off by at most scale / 2 in every number (and 2⁻¹⁴³ where
                      float32 has few digits for the scale); cosines need no scale
    binary            one bit per number, 1 where x > 0; eight in a byte, the first in its highest bit (`np.packbits`,
                      called ubinary in sentence-transformers); zeros fill the last byte
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bertcli.errors import BertcliError
from bertcli.files.arrays import ArrayFile, Rows, Stored
from bertcli.files.draft import ERRORS, Draft
from bertcli.files.inputs import PARQUET
from bertcli.files.parquet import ParquetFile
from bertcli.files.records import RecordWriter

if TYPE_CHECKING:
    from bertcli.tasks.encode import Block
    from bertcli.tasks.sparse import SparseBlock

TYPES = {"float32": "<f4", "float16": "<f2", "int8": "|i1", "binary": "|u1"}
LEVELS = 127  # of int8 on either side of 0: −128 is not used, so −x is stored as the negated bytes of x
ORIGIN = ("index", "chunk", "start", "end")  # what a chunk is called in a file
Arrays = dict[str, NDArray[Any]]


class Quantized(NamedTuple):
    """`values` [row, width], or (binary) uint8 [row, ⌈width / 8⌉]; `scales` float32 [row] for int8, else None."""

    values: NDArray[Any]
    scales: NDArray[np.float32] | None = None


def quantize(vectors: NDArray[np.floating[Any]], dtype: str) -> Quantized:
    """Vectors [row, width] as `dtype`; BertcliError for numbers beyond float16's 65504 and for an unknown dtype."""
    if dtype == "float32":
        return Quantized(np.asarray(vectors, np.float32))
    if dtype == "float16":
        with np.errstate(over="ignore"):
            halves = vectors.astype(np.float16)
        if not np.isfinite(halves).all():
            raise BertcliError(
                "A vector has numbers that float16 cannot hold (above 65504): use another dtype (--dtype)."
            )
        return Quantized(halves)
    if dtype == "binary":
        return Quantized(np.packbits(vectors > 0, axis=1))
    if dtype == "int8":
        largest = np.abs(vectors.astype(np.float64)).max(axis=1, keepdims=True, initial=0)
        steps = vectors * (LEVELS / np.where(largest > 0, largest, 1))
        return Quantized(np.rint(steps).astype(np.int8), (largest[:, 0] / LEVELS).astype(np.float32))
    raise BertcliError(f"There is no dtype '{dtype}'; choose from {', '.join(TYPES)}.")


def stored_width(width: int, dtype: str) -> int:
    """How many numbers, or (binary) bytes, a vector of this width takes."""
    return -(-width // 8) if dtype == "binary" else width


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

    def rows(self, block: Block | SparseBlock, before: int) -> Arrays:
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


def _order(block: Block | SparseBlock) -> tuple[list[int], list[tuple[int, int, int, int]]]:
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

    def append(self, block: Block | SparseBlock) -> None:
        self._file.append(self._form.rows(block, self._file.rows()[0]))
        for failure in block.failures:
            self._errors.write(failure.record())

    def finish(self) -> None:
        shape = np.array([self._file.rows()[-1] - 1, self._form.width], "<i8")
        more = [Stored("shape", "<i8", (2,), [shape.tobytes()]), Stored("format", "|S3", (), [b"csr"])]
        self._file.finish(more if self._form.sparse else ())


class VectorTable:
    """Vectors in .parquet, with columns id (the text's own, else its number), text, and perhaps text_pair and error."""

    def __init__(self, draft: Draft, form: VectorForm) -> None:
        self._form = form
        origin = ORIGIN if form.chunked else ()
        names = ["id", *origin, "text", *["text_pair"] * form.paired, *["error"] * form.keep_going]
        numbers = dict.fromkeys([*origin, *["id"] * (not form.own_ids)], int)
        self._file = ParquetFile(draft, names, numbers, form.arrays(PARQUET))

    def append(self, block: Block | SparseBlock) -> None:
        places, origins = _order(block)
        rows: list[dict[str, Any]] = [{**dict(zip(ORIGIN, origin, strict=True)), "id": origin[0]} for origin in origins]
        for place, item in zip(places, block.items, strict=True):
            rows[place] |= {"text": item.shown, "text_pair": item.text.pair, "error": None}
            rows[place] |= {} if item.text.id is None else {"id": item.text.id}
        at = {origin[0]: place for place, origin in enumerate(origins)}
        for failure in block.failures:
            rows[at[failure.index]] |= {"text": None, "text_pair": None, "error": failure.error}
            rows[at[failure.index]] |= {"id": failure.text.id} if self._form.own_ids else {}
        self._file.append(rows, self._form.rows(block, self._file.rows()[0] if self._form.ends else 0))

    def finish(self) -> None:
        self._file.finish()
