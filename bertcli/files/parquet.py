"""Read and write tables with pyarrow (the extra `bertcli[parquet]`, imported when needed): texts and vectors.

The types of columns come from the task's record, not from their values, so the files of all runs have equal schemas.
"""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np

from bertcli.errors import BertcliError, first_line, quoted
from bertcli.files.read.line_reader import LONGEST_LINE, check_readable
from bertcli.files.read.row_columns import OWN_PAIR, RowColumns, unusable
from bertcli.files.read.rows import InputFile
from bertcli.files.read.vector_reader import NOTES, READABLE_DTYPES, WHOLE, AnyNumbers, StoredVectors, no_vectors
from bertcli.files.texts import Text
from bertcli.files.write.resumable_output import LENGTHS, LINES, ResumableOutput
from bertcli.folder.files import open_regular

ROWS_READ = 1024  # together
PREFIXED_READ = 16  # together, of texts in the encoding PREFIXED: a long text may come out of few bytes
ROWS_WRITTEN = 4096  # in a row group: 12 MB with 768 float32 numbers each
MOST_PACKED = 200  # times that a column longer than a text may be packed
MOST_NUMBERS = 1 << 20  # in a row's list
BUFFER = 1 << 20  # bytes of a column read at a time: a whole row group might not fit in memory
PREFIXED = "DELTA_BYTE_ARRAY"  # an encoding that pyarrow does not read as a dictionary
ARROW_TYPES: dict[type, str] = {str: "string", int: "int64", float: "float64"}  # of values in Python

Value = str | int | float | None


def pyarrow(file: str) -> tuple[Any, Any]:
    """Import pyarrow and pyarrow.parquet. Errors: BertcliError naming the file that needs them, if they are missing."""
    try:
        return import_module("pyarrow"), import_module("pyarrow.parquet")
    except ImportError:
        raise BertcliError(f"{file}: Parquet needs pyarrow: pip install 'bertcli[parquet]'.") from None


class ParquetTable:
    """An open Parquet file.

    Memory: columns of texts are read as dictionaries, so a text that occurs often is in memory once. In columns whose
    encoding stores a text as its difference from the one before, only PREFIXED_READ rows are read together.
    schema: Arrow's. row_count: the number of rows.
    """

    def __init__(self, file: Any) -> None:
        self._file = file
        self._parquet = import_module("pyarrow.parquet")
        self._table = self._parquet.ParquetFile(file, pre_buffer=False)
        self.schema = self._table.schema_arrow
        self.row_count = self._table.metadata.num_rows

    def batches(self, most: int, names: Sequence[str] | None = None, texts: bool = False) -> Iterator[Any]:
        """Yield the rows as record batches of limited size.

        names: the columns to read, all if None. texts: these columns are texts, and may be read as dictionaries.
        """
        table = self._table
        self._check_sizes(names)
        if texts and names is not None:
            prefixed = {*names} & self._prefixed()
            most = PREFIXED_READ if prefixed else most
            # Lists of words are no dictionaries.
            flat = {name for name in names if not hasattr(self.schema.field(name).type, "value_field")}
            options = {"buffer_size": BUFFER, "read_dictionary": flat - prefixed, "pre_buffer": False}
            table = self._parquet.ParquetFile(self._file, metadata=table.metadata, **options)
        yield from table.iter_batches(most, columns=names, use_threads=False)

    def _columns(self) -> Iterator[tuple[Any, int]]:
        """What the file says of each column of each group of rows, and how many rows these are."""
        metadata = self._table.metadata
        for group in map(metadata.row_group, range(metadata.num_row_groups)):
            yield from ((group.column(i), group.num_rows) for i in range(group.num_columns))

    def _prefixed(self) -> set[str]:
        """The columns with an encoding that stores a value as its difference from the one before."""
        return {column.path_in_schema for column, _ in self._columns() if PREFIXED in column.encodings}

    def _check_sizes(self, names: Sequence[str] | None) -> None:
        """Refuse columns that would fill the memory, before they are read. Errors: ValueError."""
        for column, rows in self._columns():
            name = column.path_in_schema.partition(".")[0]
            size, packed = column.total_uncompressed_size, column.total_compressed_size
            if names is not None and name not in names and column.path_in_schema not in names:
                continue
            if size > max(LONGEST_LINE, MOST_PACKED * packed) or size > LONGEST_LINE * max(rows, 1):
                raise ValueError(f"the column {quoted(name)} has {size:,} bytes in {packed:,}, for {rows:,} rows")
            if column.num_values > MOST_NUMBERS * max(rows, 1):
                raise ValueError(f"the column {quoted(name)} has {column.num_values:,} numbers in {rows:,} rows")


# ------------------------------------------------------------------------------------------------------ reading texts


def open_rows(file: str) -> InputFile:
    """Open a table as input, with the function that reads its texts."""
    rows = TableRows(file)
    return InputFile(rows, rows.texts)


class TableRows:
    """The rows of a table in a file. Errors: BertcliError if it cannot be opened (at once), or pyarrow is missing."""

    regular = True  # pyarrow reads the end of such a file first, so it cannot be a pipe

    def __init__(self, file: str) -> None:
        self.name = file
        self._row = self._rows = 0
        check_readable(file)

    def waiting(self) -> bool:
        return False

    def share_read(self) -> float | None:
        """The share of rows that has been read, 0 to 1; None before the file is open."""
        return self._row / self._rows if self._rows else None

    def texts(self, columns: RowColumns) -> Iterator[Text]:
        """Yield a Text for each row, numbered from 1; for null, or text that is not UTF-8, one with an error.

        A text of more than LONGEST_LINE bytes is a row with an error. Errors: BertcliError for a file that is damaged
        or not Parquet, and for a column that is missing or not text.
        """
        arrow, _ = pyarrow(self.name)
        with ExitStack() as stack:
            try:
                file = stack.enter_context(open(self.name, "rb"))
                table = ParquetTable(file)
                columns = columns.in_row(table.schema.names)
                _check_columns(table.schema, columns, self.name, arrow.types)
                names = table.schema.names if columns.whole else [field.name for field in columns.needed]
                if columns.own_pair and OWN_PAIR in table.schema.names and OWN_PAIR not in names:
                    names.append(OWN_PAIR)
                self._row, self._rows = 0, table.row_count
                for batch in table.batches(ROWS_READ, list(dict.fromkeys(names)), texts=True):
                    for values in zip(*(map(value_of, batch.column(name)) for name in names), strict=True):
                        self._row += 1
                        yield self._text(columns, dict(zip(names, values, strict=True)))
            except (arrow.ArrowException, OSError, ValueError) as error:
                raise BertcliError(f"{self.name} cannot be read as Parquet: {first_line(error)}.") from None

    def _text(self, columns: RowColumns, values: dict[str, Any]) -> Text:
        location = f"{self.name}, row {self._row}"
        size = max(len(value) if isinstance(value, str | bytes) else 0 for value in values.values())
        if size > LONGEST_LINE:
            return unusable(
                location, f"{size:,} letters in a field, more than the {LONGEST_LINE:,} that a text may have."
            )
        return columns.row(location, values)


def _check_columns(schema: Any, columns: RowColumns, file: str, types: Any) -> None:
    for field in columns.needed:
        if schema.names.count(field.name) != 1:
            raise BertcliError(f"{file}: {field.lacking(schema.names)}")
        arrow_type = schema.field(field.name).type
        arrow_type = arrow_type.value_type if types.is_dictionary(arrow_type) else arrow_type
        is_list = types.is_list(arrow_type) or types.is_large_list(arrow_type)
        if is_list and field.accepts == "a text":
            # Words.
            arrow_type = arrow_type.value_type
        textual = types.is_string(arrow_type) or types.is_large_string(arrow_type) or types.is_string_view(arrow_type)
        number = types.is_integer(arrow_type) or types.is_floating(arrow_type) or types.is_boolean(arrow_type)
        if not textual and not (number and field.accepts != "a text") and field.accepts != "anything":
            raise BertcliError(
                f"{file}: the column {quoted(field.name)} is of type {arrow_type}, which is not {field.accepts} "
                f"(see {field.option})."
            )


def value_of(scalar: Any) -> Any:
    """Convert a scalar of Arrow to Python; a string that is not UTF-8 becomes bytes, a list of such None."""
    try:
        return scalar.as_py()
    except UnicodeDecodeError:
        if isinstance(getattr(scalar, "values", None), Iterable):
            return None
        return getattr(scalar, "value", scalar).as_buffer().to_pybytes()


def write_replaced(
    source: str,
    columns: RowColumns,
    texts: Iterator[str | None],
    stream: IO[bytes],
) -> Sequence[str]:
    """Write a table again with other texts in a column; rows whose text is None are left out. The names of columns."""
    arrow, _ = pyarrow(source)
    with open(source, "rb") as file:
        table = ParquetTable(file)
        of_text = columns.in_row(table.schema.names).text
        assert of_text is not None
        column = of_text.name
        place = table.schema.get_field_index(column)
        replaced_type = table.schema.field(place).type
        if arrow.types.is_dictionary(replaced_type) or arrow.types.is_list(replaced_type):
            replaced_type = replaced_type.value_type
        schema = table.schema.set(place, arrow.field(column, replaced_type))

        def tables() -> Iterator[Any]:
            for batch in table.batches(ROWS_READ):
                values = [next(texts) for _ in range(len(batch))]
                replaced = [*batch.columns]
                replaced[place] = arrow.array(values, replaced_type)
                whole = arrow.Table.from_arrays(replaced, schema=schema)
                yield whole.filter(arrow.array([value is not None for value in values]))

        _write(stream, arrow, schema, tables())
        return list(table.schema.names)


# ---------------------------------------------------------------------------------------------------- reading vectors


def open_vectors(path: Path) -> StoredVectors:
    """Open the columns of whole numbers, and of lists that all have one length; a null list counts as zeros."""
    arrow, _ = pyarrow(str(path))
    types = {getattr(arrow, dtype.name)(): dtype for dtype in (*READABLE_DTYPES, WHOLE)}

    @contextmanager
    def opened() -> Iterator[ParquetTable]:
        try:
            with open_regular(path) as file:
                yield ParquetTable(file)
        except (arrow.ArrowException, OSError, ValueError) as error:
            raise no_vectors(path, f"cannot be read as Parquet ({first_line(error)})") from None

    def blocks(name: str, count: int) -> Iterator[AnyNumbers]:
        with opened() as table:
            arrow_type = table.schema.field(name).type
            listed = hasattr(arrow_type, "value_field")
            dtype = types.get(arrow_type.value_type if listed else arrow_type)
            if dtype is None:
                allowed = ", ".join(map(str, READABLE_DTYPES))
                raise no_vectors(path, f"holds a column {quoted(name)} of {arrow_type}, not lists of {allowed}")
            width = _width(table, name) if listed else 0
            for batch in table.batches(count, [name]):
                column = batch.column(name)
                yield _rows(path, column, width, dtype) if listed else column.to_numpy(zero_copy_only=False)

    with opened() as table:
        names, metadata = table.schema.names, table.schema.metadata or {}
    notes = {name: metadata[name.encode()].decode(errors="replace") for name in NOTES if name.encode() in metadata}
    arrays = {name: partial(blocks, name) for name, count in Counter(names).items() if count == 1}
    return StoredVectors(path, arrays, "embedding", notes).checked()


def _rows(path: Path, lists: Any, width: int, dtype: np.dtype[Any]) -> AnyNumbers:
    if lists.flatten().null_count:
        raise no_vectors(path, "has vectors with nulls in them")
    if set(lists.value_lengths().to_pylist()) - {width, None}:
        raise no_vectors(path, f"has vectors of different lengths; the first has {width} numbers")
    vectors = np.zeros((len(lists), width), dtype)
    valid = lists.is_valid().to_numpy(zero_copy_only=False)
    vectors[valid] = lists.flatten().to_numpy(zero_copy_only=False).reshape(-1, width)
    return vectors


def _width(table: ParquetTable, name: str) -> int:
    """Return the length of the first vector that is not null; 0 if there is none."""
    for batch in table.batches(1024, [name]):
        for length in batch.column(name).value_lengths().to_pylist():
            if length is not None:
                return int(length)
    return 0


# ------------------------------------------------------------------------------------------- writing texts and vectors


class VectorColumn(NamedTuple):
    """A column of vectors: its array in the segments, the NumPy type such as "<f4", and the numbers of each vector.

    size: None for lists of different lengths, 0 for single numbers. nulls: a vector may be null.
    """

    name: str
    array: str
    dtype: str
    size: int | None = 0
    nulls: bool = False


def write_vectors(stream: IO[bytes], segments: ResumableOutput, form: Any) -> None:
    """Write texts and their vectors; form: a `VectorForm`."""
    write_rows(stream, segments, form.columns, form.vector_columns, form.notes)


def write_rows(
    stream: IO[bytes],
    segments: ResumableOutput,
    columns: Mapping[str, type],
    vectors: Sequence[VectorColumn] = (),
    notes: Mapping[str, str] | None = None,
) -> None:
    """Write the rows in segments as a table: JSON lines with a value for each of `columns`, and arrays of vectors.

    A column's type is str, int or float; any value may be null. Vectors of different lengths need an array "lengths".
    In a row with an error, vectors are null. notes: the file's metadata.
    """
    arrow, _ = pyarrow(segments.file)
    schema = _schema(arrow, columns, vectors).with_metadata(notes)
    array_names = [vector.array for vector in vectors]
    if any(vector.size is None for vector in vectors):
        array_names.append(LENGTHS)

    def tables() -> Iterator[Any]:
        for lines, *blocks in zip(segments.byte_blocks(LINES), *map(segments.rows, array_names), strict=True):
            rows = list(map(json.loads, lines.splitlines()))
            values_of_columns: list[list[Any]] = []
            for name, value_type in columns.items():
                values = [row[name] for row in rows]
                values_of_columns.append(list(map(_text, values)) if value_type is str else values)
            for vector, block in zip(vectors, blocks, strict=False):
                if vector.size is None:
                    # The last of the blocks is LENGTHS.
                    block = np.split(block, np.cumsum(blocks[-1])[:-1])
                with_nulls = [None if row.get("error") else value for row, value in zip(rows, block, strict=True)]
                values_of_columns.append(with_nulls)
            typed = zip(values_of_columns, schema.types, strict=True)
            yield arrow.table([arrow.array(values, arrow_type) for values, arrow_type in typed], schema)

    _write(stream, arrow, schema, tables())


def _write(stream: IO[bytes], arrow: Any, schema: Any, tables: Iterable[Any]) -> None:
    """Write tables in row groups of ROWS_WRITTEN rows, however the tables are cut."""
    with import_module("pyarrow.parquet").ParquetWriter(stream, schema, use_dictionary=False) as writer:
        pending = schema.empty_table()
        for table in tables:
            pending = arrow.concat_tables([pending, table])
            while len(pending) >= ROWS_WRITTEN:
                writer.write_table(pending[:ROWS_WRITTEN].combine_chunks())
                pending = pending[ROWS_WRITTEN:]
        if len(pending):
            writer.write_table(pending.combine_chunks())


def _schema(arrow: Any, columns: Mapping[str, type], vectors: Sequence[VectorColumn]) -> Any:
    fields = [(name, getattr(arrow, ARROW_TYPES[value_type])()) for name, value_type in columns.items()]
    for vector in vectors:
        arrow_type = getattr(arrow, np.dtype(vector.dtype).name)()
        if vector.size is None or (vector.size and vector.nulls):
            # Also of vectors of one length: pyarrow before 26 cannot read fixed-size lists with nulls.
            arrow_type = arrow.list_(arrow_type)
        elif vector.size:
            arrow_type = arrow.list_(arrow_type, vector.size)
        fields.append((vector.name, arrow_type))
    return arrow.schema(fields)


def _text(value: Value) -> str | None:
    """Convert a value for a column of texts; half a surrogate pair, as a label may have, is escaped."""
    return None if value is None else str(value).encode("utf-8", "backslashreplace").decode()
