"""Parquet, by pyarrow (the extra `bertcli[parquet]`, imported only when needed): texts from it, and vectors into it."""

from __future__ import annotations

import gzip
import json
import shutil
import tempfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from importlib import import_module
from itertools import islice, repeat
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from bertcli.errors import BertcliError, first_line, shown
from bertcli.files.arrays import ArrayFile, Arrays, Rows
from bertcli.files.draft import TEXTS, Draft
from bertcli.files.lines import LONGEST, check_readable
from bertcli.files.rows import Wanted, unusable
from bertcli.files.texts import Text

ROWS_READ, PREFIXED_READ = 1024, 16  # together; of texts that may share their beginnings
ROWS_WRITTEN = 4096  # in a row group: 12 MB with 768 float32 numbers each
BUFFER = 1 << 20  # bytes of a column read at a time: a whole row group might not fit in memory
UNPACKED, RATIO = 1 << 26, 1000  # bytes that a column of a row group may unpack to from less than a RATIOth
NAMES = {"embeddings": "embedding", "scales": "scale", "data": "values"}  # what a row of a table has
TYPES = {"<f4": "float32", "<f2": "float16", "|i1": "int8", "|u1": "uint8", "<i8": "int64", "<i4": "int32"}

PREFIXED = "DELTA_BYTE_ARRAY"  # an encoding that pyarrow does not read as a dictionary
NONE = {"null"}  # the kinds of a column without values
KINDS: dict[object, str] = {bool: "bool_", int: "int64", float: "float64"}  # of numbers in Python

Value = str | int | float | None
Row = Mapping[str, Value]


def pyarrow(file: str) -> tuple[Any, Any]:
    """The modules pyarrow and pyarrow.parquet; if they are missing, BertcliError naming the file that needs them."""
    try:
        return import_module("pyarrow"), import_module("pyarrow.parquet")
    except ImportError:
        raise BertcliError(f"{file}: Parquet needs pyarrow: pip install 'bertcli[parquet]'.") from None


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

        Memory: dictionaries stay dictionaries, so a text that is referred to often is there once; where a text may
        share its beginning with the one before, only PREFIXED_READ are read together; a text of more than LONGEST bytes
        is a row with an error; see also `check_sizes`. Errors: BertcliError for a file that is damaged, a trap or not
        Parquet, and for a column that is missing or not text.
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
                prefixed = {one.path_in_schema for one in _columns(metadata) if PREFIXED in one.encodings}
                options = {"pre_buffer": False, "buffer_size": BUFFER, "read_dictionary": {*names} - prefixed}
                opened = parquet.ParquetFile(file, metadata=metadata, **options)
                stack.callback(opened.close)
                together = PREFIXED_READ if prefixed & {*names} else ROWS_READ
                for batch in opened.iter_batches(together, columns=list(dict.fromkeys(names)), use_threads=False):
                    for values in zip(*(map(_value, batch.column(name)) for name in names), strict=True):
                        self._row += 1
                        yield self._text(wanted, dict(zip(names, values, strict=True)))
            except (arrow.ArrowException, OSError, EOFError, ValueError, zlib.error) as error:
                raise BertcliError(f"{self.name} cannot be read as Parquet: {first_line(error)}.") from None

    def _text(self, wanted: Wanted, values: dict[str, Any]) -> Text:
        place = f"{self.name}, row {self._row}"
        size = max(len(value) if isinstance(value, str | bytes) else 0 for value in values.values())
        if size > LONGEST:
            return unusable(place, f"{size:,} letters in a field, more than the {LONGEST:,} that a text may have.")
        return wanted.row(place, values)


def check_sizes(name: str, metadata: Any, columns: Sequence[str]) -> None:
    """Refuse a column that unpacks to UNPACKED bytes or more from a thousandth, or a list of as many numbers.

    Neither texts nor vectors do. The sizes are those that the file states, as any writer of Parquet does truly; one
    that was forged can make a page of up to 2 GB be unpacked. Errors: BertcliError.
    """
    for column in _columns(metadata):
        path, packed = column.path_in_schema, column.total_compressed_size
        listed = any(path.startswith(f"{one}.") for one in columns)
        unpacked = max(column.total_uncompressed_size, 8 * column.num_values * listed)
        if (listed or path in columns) and unpacked > max(UNPACKED, RATIO * packed):
            raise BertcliError(
                f"{name}: the column {shown(path)} unpacks to {unpacked:,} bytes from {packed:,}, which is not data "
                "but a trap: do not use this file."
            )


def _columns(metadata: Any) -> Iterator[Any]:
    """What a file states of each column of each row group."""
    for group in map(metadata.row_group, range(metadata.num_row_groups)):
        yield from map(group.column, range(group.num_columns))


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
            raise BertcliError(f"{file}: {field.lacking(schema.names)}")
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
    """Columns of text or numbers, given as rows, next to arrays; null where a text could not be used.

    names: of the columns given as rows; each has one type of Parquet, string where its values have several. numbers:
    which of them hold int or float, even where there are no rows to tell. arrays: numbers, or lists, of one size
    [rows, size] or listed. A writer of Parquet cannot be resumed once it has died, so rows are kept in parts and become
    Parquet at the end.
    """

    def __init__(
        self, draft: Draft, names: Sequence[str], numbers: Mapping[str, object], arrays: Sequence[Rows] = ()
    ) -> None:
        self._arrow, self._parquet = pyarrow(draft.file)
        self._draft = draft
        self._names = names
        self._numbers = numbers
        self._rows = draft.part(TEXTS)
        self._store = ArrayFile(draft, arrays)
        self.rows = self._store.rows
        self._ends = arrays[-1].name if any(array.listed for array in arrays) else None
        self._columns = [array for array in arrays if array.name != self._ends]

    def append(self, rows: Sequence[Row], arrays: Arrays | None = None) -> None:
        """Append rows, and as many of each array."""
        for row in rows:
            self._rows.write(json.dumps(row).encode() + b"\n")
        self._store.append(arrays or {})

    def finish(self) -> None:
        """Write the file and give it its name."""
        schema = self._schema()
        with (
            self._draft.part().by_path() as path,
            open(path, "wb") as file,  # pyarrow takes only names that are UTF-8
            self._parquet.ParquetWriter(file, schema, use_dictionary=False) as writer,
        ):
            lines = self._lines()
            blocks = self._store.blocks(ROWS_WRITTEN) if self._columns else repeat({})
            for rows, arrays in zip(iter(lambda: list(islice(lines, ROWS_WRITTEN)), []), blocks, strict=False):
                writer.write_table(self._table(schema, rows, arrays))
        self._draft.publish()

    def _schema(self) -> Any:
        arrow = self._arrow
        kinds = {name: {KINDS.get(self._numbers.get(name), "null")} for name in self._names}
        for row in self._lines():
            for name in self._names:
                kinds[name].add(_kind(row[name]))
        fields = [(name, getattr(arrow, _common(kinds[name]))()) for name in self._names]
        nulls = "string" in kinds.get("error", ())
        for array in self._columns:
            kind = getattr(arrow, TYPES[array.dtype])()
            if array.row or array.listed:  # pyarrow before 26 cannot read fixed-size lists with nulls
                kind = arrow.list_(kind) if nulls or array.listed else arrow.list_(kind, *array.row)
            fields.append((NAMES.get(array.name, array.name), kind))
        return arrow.schema(fields)

    def _table(self, schema: Any, rows: list[Row], arrays: dict[str, NDArray[Any]]) -> Any:
        columns: list[list[Any]] = []
        for name in self._names:
            textual = schema.field(name).type == self._arrow.string()
            columns.append([_text(row[name]) if textual else row[name] for row in rows])
        for array in self._columns:
            cells: Any = arrays[array.name]
            if array.listed:
                ends = arrays[str(self._ends)]
                cells = np.split(cells, ends[:-1] - (ends[-1] - len(cells)))
            columns.append([None if row.get("error") else cell for row, cell in zip(rows, cells, strict=True)])
        return self._arrow.table([self._arrow.array(*one) for one in zip(columns, schema.types, strict=True)], schema)

    def _lines(self) -> Iterator[Row]:
        self._rows.flush()
        with self._rows.path.open("rb") as lines:
            yield from map(json.loads, lines)


def _text(value: Value) -> str | None:
    """A value in a column of texts; half a surrogate pair, as a label may have, is escaped."""
    return None if value is None else str(value).encode("utf-8", "backslashreplace").decode()


def _kind(value: Value) -> str:
    """The type of Parquet that holds a value; text holds whole numbers that do not fit an int64."""
    if value is None:
        return "null"
    if isinstance(value, int) and not -(1 << 63) <= value < 1 << 63:
        return "string"
    return KINDS.get(type(value), "string")


def _common(kinds: set[str]) -> str:
    """The type of Parquet that holds values of all these types."""
    found = kinds - NONE
    if found == {"int64", "float64"}:
        return "float64"
    return found.pop() if len(found) == 1 else "string"
