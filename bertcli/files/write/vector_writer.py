"""Write the vectors of `encode`: as arrays, or as a Parquet table of texts and vectors.

There is a row for every text of the input (with --chunk, for every chunk), in its order. A text that could not be used
has a row of zeros, in Parquet null. It has no rows where each token has one, and no numbers where vectors are sparse.
FILE.errors.jsonl, in Parquet the column "error", says why.

    one a text        embeddings [text, width], and of int8 scales [text]
    one a token       embeddings [token, width]; offsets [text + 1]: text i has the rows offsets[i] to offsets[i + 1]
    sparse            data, indices, indptr as in the CSR form of scipy.sparse, which can load the .npz
    how they are made model: its name and a digest of its weights; settings: JSON; texts in .npz, metadata in
                      .safetensors and Parquet, and v.npy.settings.json beside a .npy file, which holds one array
    chunks            also index (of the text), chunk (its number), start, end (its characters in the text)

They may be quantized, each vector on its own, so a stream gives the same result as one array:

    float16           the nearest value: relative error at most 2⁻¹¹ (absolute error at most 2⁻²⁵ below 2⁻¹⁴)
    int8              x ≈ scale · q with scale = max|x| / 127: off by at most scale / 2 in every number (and 2⁻¹⁴³ where
                      float32 has few digits for the scale); cosines need no scale
    binary            one bit per number, 1 where x > 0; eight in a byte, the first in its highest bit (`np.packbits`,
                      called ubinary in sentence-transformers); zeros fill the last byte
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bertcli.errors import BertcliError
from bertcli.files.arrays import FileArray, ends_of
from bertcli.files.files_beside import names_beside
from bertcli.files.formats import ERRORS, SETTINGS_FILE, SINGLE, VECTOR_TABLES, Stream, writer_of
from bertcli.files.read.vector_reader import ORIGIN, SETTINGS
from bertcli.files.texts import Failure, Item
from bertcli.files.write.resumable_output import LENGTHS, LINES, ResumableOutput
from bertcli.report.tables import in_cell
from bertcli.report.terminal import as_json

if TYPE_CHECKING:
    from bertcli.files.parquet import VectorColumn

WRITTEN_AS = {"float32": "<f4", "float16": "<f2", "int8": "|i1", "binary": "|u1"}
IDS = "ids"  # the array of texts' ids
IN_METADATA = (".safetensors",)  # texts, as JSON
LEVELS = 127  # of int8 on either side of 0: −128 is not used, so −x is stored as the negated bytes of x
COLUMNS = {"embeddings": "embedding", "scales": "scale", "data": "values"}  # what a row of a table has


class Quantized(NamedTuple):
    """`values` [row, width], or (binary) uint8 [row, ⌈width / 8⌉]; `scales` float32 [row] for int8, else None."""

    values: NDArray[Any]
    scales: NDArray[np.float32] | None = None


def quantize(vectors: NDArray[np.floating[Any]], dtype: str) -> Quantized:
    """Convert vectors [row, width] to `dtype`; errors: BertcliError for other dtypes, values beyond 65504 (float16)."""
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
    raise BertcliError(f"There is no dtype '{dtype}'; choose from {', '.join(WRITTEN_AS)}.")


def stored_width(width: int, dtype: str) -> int:
    """Count the numbers that a vector of this width is stored as; for binary, the bytes."""
    return -(-width // 8) if dtype == "binary" else width


@dataclass(frozen=True, eq=False, repr=False)
class VectorForm:
    """The form of vectors in a file, one a text: width, one of WRITTEN_AS, format.

    notes: NOTES on how they were made. own_ids, kept, keep_going: the columns of a Parquet table depend on whether
    texts have ids, what is kept of their rows, and whether they may fail.
    """

    width: int
    dtype: str = "float32"
    chunked: bool = False
    own_ids: bool = False
    kept: Sequence[str] = ()
    keep_going: bool = False
    ending: str = ".npy"
    notes: Mapping[str, str] = field(default_factory=dict)
    # The array with the end of each text's rows or entries; None with one vector a text.
    ends: ClassVar[str | None] = None
    # Of a row of a table, where an array has no width; None: as many as the row has.
    numbers_a_row: ClassVar[int | None] = 0

    @property
    def beside(self) -> bytes | None:
        """The content of FILE.settings.json for a format without room for notes: a JSON object; else None."""
        if not self.notes or SETTINGS_FILE not in self.names_beside:
            return None
        settings = json.loads(self.notes[SETTINGS])  # a text of JSON in the other formats, an object here
        return json.dumps({**self.notes, SETTINGS: settings}).encode()

    @property
    def names_beside(self) -> tuple[str, ...]:
        """What stands beside a file, since its format has no room for it."""
        return names_beside(self.ending)

    def arrays(self, items: Sequence[Item], failures: Sequence[Failure], vectors: Any) -> dict[str, Any]:
        """Convert consecutive texts to the arrays of a segment: the rows of their vectors in order, scales, origins.

        vectors: one a text [text, width], a list of [token, width], or of sparse ones with `indices` and `values`.
        """
        entries: list[Item | Failure] = [*items, *failures]
        entries.sort(key=attrgetter("index"))  # chunks of a text keep their order
        used = np.array([isinstance(entry, Item) for entry in entries], bool)
        values, lengths = self._values(vectors)
        arrays: dict[str, Any] = {}
        if self.chunked:
            origins = np.array([_origin(entry) for entry in entries], np.int64).reshape(-1, len(ORIGIN))
            arrays = dict(zip(ORIGIN, origins.T, strict=True))
        if self.ends:
            arrays |= values | {LENGTHS: _with_zeros(np.array(lengths, np.int64), used)}
        else:
            arrays |= {name: _with_zeros(array, used) for name, array in values.items()}
        if self.ending in VECTOR_TABLES:
            return arrays | {LINES: b"".join(json.dumps(self._row(entry)).encode() + b"\n" for entry in entries)}
        if self.has_ids:
            arrays |= {LINES: b"".join(json.dumps(entry.text.id).encode() + b"\n" for entry in entries)}
        return arrays | {ERRORS: b"".join(as_json(failure.record()) + b"\n" for failure in failures)}

    def write(self, stream: Stream, segments: ResumableOutput) -> None:
        """Write the whole file."""
        if self.ending in VECTOR_TABLES:
            writer_of(self.ending, "vectors")(stream, segments, self)
        else:
            writer_of(self.ending, "array", "arrays")(stream, [*self.stored(segments)])

    def failures_shown(self, file: str) -> str:
        """Say for the user where the texts are listed that could not be used."""
        if ERRORS not in self.names_beside:
            return "their vectors are null, and column error says why"
        return f"their vectors are zeros, and {file}.{ERRORS} says why"

    @property
    def has_ids(self) -> bool:
        """True if texts have ids of the input, and the file has room for them beside arrays."""
        return self.own_ids and self.ending not in (*SINGLE, *VECTOR_TABLES)

    @property
    def columns(self) -> dict[str, type]:
        """The columns of a table beside the vectors, with their types."""
        columns: dict[str, type] = {"id": str if self.own_ids else int}
        if self.chunked:
            columns |= dict.fromkeys(ORIGIN, int)
        columns["text"] = str
        if self.keep_going:
            columns["error"] = str
        return {**columns, **dict.fromkeys(self.kept, str)}

    @property
    def vector_columns(self) -> list["VectorColumn"]:
        """The columns of numbers in a table."""
        from bertcli.files.parquet import VectorColumn

        columns = []
        for name, (dtype, row_shape) in self._numbers.items():
            width = row_shape[0] if row_shape else self.numbers_a_row
            columns.append(VectorColumn(COLUMNS.get(name, name), name, dtype, width, nulls=self.keep_going))
        return columns

    @property
    def _numbers(self) -> dict[str, tuple[str, tuple[int, ...]]]:
        """The arrays of numbers: name -> type, and the shape of a row."""
        numbers: dict[str, tuple[str, tuple[int, ...]]] = {}
        numbers["embeddings"] = WRITTEN_AS[self.dtype], (stored_width(self.width, self.dtype),)
        has_room_for_scales = SETTINGS_FILE not in self.names_beside
        if self.dtype == "int8" and has_room_for_scales:
            numbers["scales"] = "<f4", ()
        return numbers

    def stored(self, segments: ResumableOutput) -> Iterator[FileArray]:
        """Yield the arrays of the file from the segments."""
        arrays = self._numbers
        if self.chunked:
            arrays |= dict.fromkeys(ORIGIN, ("<i8", ()))
        for name, (dtype, row_shape) in arrays.items():
            yield FileArray(name, dtype, (segments.row_count(name), *row_shape), segments.rows(name))
        if self.ends:
            count = segments.row_count(LENGTHS)
            yield FileArray(self.ends, "<i8", (count + 1,), ends_of(segments.rows(LENGTHS)))
            yield from self._after_ends(count)
        if self.has_ids:
            ids = [_written(json.loads(line)) for line in segments.lines()]
            yield FileArray.text(IDS, json.dumps(ids)) if self.ending in IN_METADATA else FileArray.of_texts(IDS, ids)
        if SETTINGS_FILE not in self.names_beside:
            yield from (FileArray.text(name, text) for name, text in self.notes.items())

    def _values(self, vectors: Any) -> tuple[dict[str, NDArray[Any]], list[int]]:
        """Join the numbers of texts end to end; also return the number of rows or entries of each text."""
        values, scales = quantize(self._joined(vectors), self.dtype)
        arrays = {"embeddings": values} if scales is None else {"embeddings": values, "scales": scales}
        return arrays, [len(vector) for vector in vectors]

    def _joined(self, vectors: Any) -> NDArray[Any]:
        """The rows of the vectors of texts."""
        return np.asarray(vectors)

    def _after_ends(self, count: int) -> Iterator[FileArray]:
        """Yield the arrays that follow those of the ends of `count` texts."""
        yield from ()

    def _row(self, entry: Item | Failure) -> dict[str, Any]:
        """Make the row of a table beside the numbers: id (from the input, or the text's number), text and so on."""
        row: dict[str, Any] = dict(zip(ORIGIN, _origin(entry), strict=True))
        row["id"] = entry.text.id if self.own_ids else entry.index
        row |= {name: in_cell(entry.text.kept.get(name)) for name in self.kept}
        if isinstance(entry, Failure):
            return row | {"text": None, "error": entry.error}
        return row | {"text": entry.chunk_text, "error": None}


class TokenForm(VectorForm):
    """The form of vectors in a file, one a token."""

    ends = "offsets"

    def _joined(self, vectors: Any) -> NDArray[Any]:
        return np.concatenate([np.empty((0, self.width), np.float32), *vectors])


class SparseForm(VectorForm):
    """The form of sparse vectors in a file: of the `width` numbers of each only those that are not 0."""

    ends = "indptr"
    numbers_a_row = None

    @property
    def _numbers(self) -> dict[str, tuple[str, tuple[int, ...]]]:
        return {"indices": ("<i4", ()), "data": ("<f4", ())}

    def _values(self, vectors: Any) -> tuple[dict[str, NDArray[Any]], list[int]]:
        data = np.concatenate([np.empty(0, np.float32), *(vector.values for vector in vectors)])
        indices = np.concatenate([np.empty(0, np.int32), *(vector.indices for vector in vectors)])
        return {"data": data, "indices": indices}, [len(vector.indices) for vector in vectors]

    def _after_ends(self, count: int) -> Iterator[FileArray]:
        yield FileArray("shape", "<i8", (2,), [np.array([count, self.width])])
        yield FileArray("format", "|S3", (), [np.array(b"csr")])


def _written(id: str | int | None) -> str:
    """An id as an array of texts has it: "" for a row without one."""
    return "" if id is None else str(id)


def _origin(entry: Item | Failure) -> tuple[int, int, int, int]:
    """Return the ORIGIN of a text or of a part of one; that of a whole text is its index and three zeros."""
    chunk = entry.chunk if isinstance(entry, Item) else None
    return (entry.index, *(chunk or (0, 0, 0)))


def _with_zeros(rows: NDArray[Any], used: NDArray[np.bool_]) -> NDArray[Any]:
    """Give every text a row: the next one of `rows` where `used` [text] is true, else zeros."""
    whole = np.zeros((len(used), *rows.shape[1:]), rows.dtype)
    whole[used] = rows
    return whole
