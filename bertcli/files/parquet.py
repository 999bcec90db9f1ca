"""Parquet, by pyarrow (the extra `bertcli[parquet]`, imported only when needed): texts from it, and vectors into it."""

from __future__ import annotations

import gzip
import json
import shutil
import tempfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from importlib import import_module
from itertools import islice
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from bertcli.errors import BertcliError, shown
from bertcli.files.arrays import Arrays, Collected, Rows
from bertcli.files.draft import TEXTS, Draft
from bertcli.files.lines import LONGEST, check_readable
from bertcli.files.rows import Wanted, no_column, unusable
from bertcli.files.texts import Text

ENDING = ".parquet"
ROWS_READ = 1024  # together
ROWS_WRITTEN = 4096  # in a row group: 12 MB with 768 float32 numbers each
BUFFER = 1 << 20  # bytes of a column read at a time: a whole row group might not fit in memory
UNPACKED, RATIO = 1 << 26, 1000  # bytes that a column of a row group may unpack to from less than a RATIOth
NAMES = {"embeddings": "embedding", "scales": "scale", "data": "values"}  # what a row of a table has
TYPES = {"<f4": "float32", "<f2": "float16", "|i1": "int8", "|u1": "uint8", "<i8": "int64", "<i4": "int32"}

Row = dict[str, str | int | None]


def pyarrow(file: str) -> tuple[Any, Any]:
    """The modules pyarrow and pyarrow.parquet; if they are missing, BertcliError naming the file that needs them."""
    try:
        return import_module("pyarrow"), import_module("pyarrow.parquet")
    except ImportError:
        raise BertcliError(f"{file}: Parquet needs pyarrow: pip install 'bertcli[parquet]'.") from None


def first_line(error: Exception) -> str:
    """pyarrow's error message, without the lines about where in its source it arose."""
    return (str(error).splitlines() or [type(error).__name__])[0].rstrip(".")


# ------------------------------------------------------------------------------------------------------ reading texts


class ParquetRows:
    """The rows of a Parquet file. Errors: BertcliError if it cannot be opened (at once), or pyarrow is missing."""

    regular = True  # a Parquet file is read from its end, so it cannot be a pipe

    def __init__(self, file: str) -> None:
        self.name = file
        self._row = self._rows = 0
        check_readable(file)

    def waiting(self) -> bool:
        return False

    def share(self) -> float | None:
        """The share of rows that has been read, 0 to 1; None before the file is open."""
        return self._row / self._rows if self._rows else None

    def texts(self, wanted: Wanted) -> Iterator[Text]:
        """One Text per row, `place` counting from 1; for null, or text that is not UTF-8, a Text with an error.

        Memory: dictionaries stay dictionaries, so a text that is referred to often is there once; a text of more than
        LONGEST bytes is a row with an error; a column that is as good as empty but unpacks to much is refused. Errors:
        BertcliError for such a file, one that is damaged or not Parquet, and for a column that is missing or not text.
        """
        arrow, parquet = pyarrow(self.name)
        with ExitStack() as stack:
            try:
                file = stack.enter_context(_seekable(self.name))
                names = [field.name for field in wanted.fields]
                metadata, schema = parquet.read_metadata(file), parquet.read_schema(file)
                _check_columns(schema, wanted, self.name, arrow.types)
                check_sizes(self.name, metadata, names)
                self._row, self._rows = 0, metadata.num_rows
                options = {"pre_buffer": False, "buffer_size": BUFFER, "read_dictionary": names}
                opened = parquet.ParquetFile(file, metadata=metadata, **options)
                stack.callback(opened.close)
                for batch in opened.iter_batches(ROWS_READ, columns=list(dict.fromkeys(names)), use_threads=False):
                    for values in zip(*(map(_value, batch.column(name)) for name in names), strict=True):
                        self._row += 1
                        yield self._text(wanted, values)
            except (arrow.ArrowException, OSError, EOFError, zlib.error) as error:
                raise BertcliError(f"{self.name} cannot be read as Parquet: {first_line(error)}.") from None

    def _text(self, wanted: Wanted, values: Sequence[Any]) -> Text:
        place = f"{self.name}, row {self._row}"
        size = max(len(value) if isinstance(value, str | bytes) else 0 for value in values)
        if size > LONGEST:
            return unusable(place, f"{size:,} letters in a field, more than the {LONGEST:,} that a text may have.")
        return wanted.row(place, values)


def check_sizes(file: str, metadata: Any, names: Sequence[str]) -> None:
    """Refuse a column that unpacks to UNPACKED bytes or more from a thousandth: neither texts nor vectors do.

    These are the sizes that the file states; one that states others is damaged, or lies, and may take more memory.
    """
    for group in map(metadata.row_group, range(metadata.num_row_groups)):
        for column in map(group.column, range(group.num_columns)):
            path, packed, unpacked = column.path_in_schema, column.total_compressed_size, column.total_uncompressed_size
            wanted = any(path == name or path.startswith(f"{name}.") for name in names)
            if wanted and unpacked > max(UNPACKED, RATIO * packed):
                raise BertcliError(
                    f"{file}: the column {shown(path)} unpacks to {unpacked:,} bytes from {packed:,}, which is not "
                    "data but a trap: do not use this file."
                )


def _seekable(file: str) -> IO[bytes]:
    """The file itself, or a gzip unpacked into a temporary file: Parquet is read from its end."""
    if not file.lower().endswith(".gz"):
        return open(file, "rb")
    unpacked = tempfile.TemporaryFile()  # noqa: SIM115 closed by the caller, like the other
    with gzip.open(file) as packed:
        shutil.copyfileobj(packed, unpacked, BUFFER)
    unpacked.seek(0)
    return unpacked


def _check_columns(schema: Any, wanted: Wanted, file: str, types: Any) -> None:
    for field in wanted.fields:
        if schema.names.count(field.name) != 1:
            raise no_column(file, field, schema.names)
        kind = schema.field(field.name).type
        kind = kind.value_type if types.is_dictionary(kind) else kind
        textual = types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind)
        number = types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind)
        if not textual and not (number and field.numbers):
            raise BertcliError(
                f"{file}: the column {shown(field.name)} is of type {kind}, which is not {field.kind} "
                f"(see {field.option})."
            )


def _value(scalar: Any) -> Any:
    """A Python value; of a string that is not UTF-8 its bytes."""
    try:
        return scalar.as_py()
    except UnicodeDecodeError:
        return getattr(scalar, "value", scalar).as_buffer().to_pybytes()


# ------------------------------------------------------------------------------------------- writing texts and vectors


class ParquetFile:
    """Columns of text, given as rows, next to arrays; null where a text could not be used.

    texts: names of the text columns, each a string or (if all values are whole numbers) an int64. arrays: numbers, or
    lists, of one size [rows, size] or listed. A writer of Parquet cannot be resumed once it has died, so rows are kept
    in parts and become Parquet at the end.
    """

    def __init__(self, draft: Draft, arrays: Sequence[Rows], texts: Sequence[str]) -> None:
        self._arrow, self._parquet = pyarrow(draft.file)
        self._draft = draft
        self._names = texts
        self._main, self._rows = draft.part(), draft.part(TEXTS)
        self._collected = Collected(draft, arrays)
        self._ends = arrays[-1].name if any(array.listed for array in arrays) else None
        self._columns = [array for array in arrays if array.name != self._ends]

    def append(self, arrays: Arrays, rows: Sequence[Row]) -> None:
        """Append rows of text, and as many rows of each array."""
        for row in rows:
            self._rows.write(json.dumps(row).encode() + b"\n")
        self._collected.append(arrays)

    def rows(self) -> list[int]:
        """How many rows each array has so far."""
        return self._collected.rows()

    def finish(self) -> None:
        """Write the file and give it its name."""
        schema = self._schema()
        sink = self._arrow.PythonFile(self._main, "w")
        with self._parquet.ParquetWriter(sink, schema, use_dictionary=False) as writer:
            lines, before = self._lines(), 0
            for arrays in self._collected.blocks(ROWS_WRITTEN):
                rows = list(islice(lines, len(arrays[self._collected.arrays[-1].name])))
                if self._ends:
                    arrays[self._ends], before = np.diff(arrays[self._ends], prepend=before), arrays[self._ends][-1]
                writer.write_table(self._table(schema, rows, arrays))
        self._draft.publish()

    def _schema(self) -> Any:
        arrow, fields = self._arrow, []
        for name in self._names:
            kinds = {_kind(row[name]) for row in self._lines()} - {None}
            fields.append((name, arrow.int64() if kinds == {int} else arrow.string()))
        nulls = "error" in self._names and any(row["error"] for row in self._lines())
        for array in self._columns:
            kind = getattr(arrow, TYPES[array.dtype])()
            if array.row or array.listed:  # pyarrow before 26 cannot read fixed-size lists with nulls
                kind = arrow.list_(kind) if nulls or array.listed else arrow.list_(kind, *array.row)
            fields.append((NAMES.get(array.name, array.name), kind))
        return arrow.schema(fields)

    def _table(self, schema: Any, rows: list[Row], arrays: dict[str, NDArray[Any]]) -> Any:
        arrow = self._arrow
        missing = np.array([bool(row.get("error")) for row in rows])
        columns = []
        for name in self._names:
            kind, values = schema.field(name).type, [row[name] for row in rows]
            columns.append(arrow.array([v if v is None or kind == arrow.int64() else str(v) for v in values], kind))
        for array in self._columns:
            kind, numbers = schema.field(NAMES.get(array.name, array.name)).type, arrays[array.name]
            if array.listed:
                columns.append(self._lists(kind, numbers, arrays[str(self._ends)], missing))
            elif array.row:
                lengths = np.where(missing, 0, numbers.shape[1])
                columns.append(self._lists(kind, numbers[~missing].reshape(-1), lengths, missing))
            else:
                columns.append(arrow.array(numbers, kind, mask=missing))
        return arrow.table(columns, schema)

    def _lists(self, kind: Any, flat: NDArray[Any], lengths: NDArray[Any], missing: NDArray[np.bool_]) -> Any:
        """Lists of these lengths: all of one size or, if the type allows any size, null for missing rows."""
        arrow = self._arrow
        items = arrow.array(flat, kind.value_type)
        if arrow.types.is_fixed_size_list(kind):
            return arrow.FixedSizeListArray.from_arrays(items, type=kind)
        offsets = np.concatenate([np.zeros(1, np.int32), np.cumsum(lengths, dtype=np.int32)])
        return arrow.ListArray.from_arrays(offsets, items, type=kind, mask=arrow.array(missing))

    def _lines(self) -> Iterator[Row]:
        rest = b""
        for chunk in self._rows.chunks():
            *lines, rest = (rest + chunk).split(b"\n")
            yield from map(json.loads, lines)


def _kind(value: str | int | None) -> type | None:
    """int for a value that fits an int64, str for one written as text, None for null."""
    if value is None:
        return None
    return int if isinstance(value, int) and -(1 << 63) <= value < 1 << 63 else str
