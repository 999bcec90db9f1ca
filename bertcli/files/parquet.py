"""Parquet, by pyarrow (the extra `bertcli[parquet]`, imported when needed): texts and vectors, read and written."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from bertcli.errors import BertcliError, first_line, shown
from bertcli.files.held import InputFile, Rows, Stream, TextFile, Vectors, pyarrow
from bertcli.files.lines import LONGEST, check_readable
from bertcli.files.rows import Wanted, unusable
from bertcli.files.shards import LENGTHS, LINES, Shards
from bertcli.files.stored import NOTES, TYPES, WHOLE, Numbers, StoredVectors, no_vectors
from bertcli.files.texts import Text
from bertcli.folder.files import open_regular

ROWS_READ, PREFIXED_READ = 1024, 16  # together; of texts that may share their beginnings
ROWS_WRITTEN = 4096  # in a row group: 12 MB with 768 float32 numbers each
BUFFER = 1 << 20  # bytes of a column read at a time: a whole row group might not fit in memory
UNPACKED, RATIO = 1 << 26, 1000  # bytes that a column of a row group may unpack to from less than a RATIOth
PREFIXED = "DELTA_BYTE_ARRAY"  # an encoding that pyarrow does not read as a dictionary
OF_NUMBERS: dict[type, str] = {bool: "bool_", int: "int64", float: "float64"}  # of numbers in Python

Value = str | int | float | None


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
                file = stack.enter_context(open(self.name, "rb"))
                metadata, schema = parquet.read_metadata(file), parquet.read_schema(file)
                names = schema.names if wanted.whole else [field.name for field in wanted.fields]
                _check_columns(schema, wanted, self.name, arrow.types)
                check_sizes(self.name, metadata, names)
                self._row, self._rows = 0, metadata.num_rows
                prefixed = {column.path_in_schema for column in _columns(metadata) if PREFIXED in column.encodings}
                options = {"pre_buffer": False, "buffer_size": BUFFER, "read_dictionary": {*names} - prefixed}
                table = parquet.ParquetFile(file, metadata=metadata, **options)
                stack.callback(table.close)
                batch_size = PREFIXED_READ if prefixed & {*names} else ROWS_READ
                for batch in table.iter_batches(batch_size, columns=list(dict.fromkeys(names)), use_threads=False):
                    for values in zip(*(map(value_of, batch.column(name)) for name in names), strict=True):
                        self._row += 1
                        yield self._text(wanted, dict(zip(names, values, strict=True)))
            except (arrow.ArrowException, OSError, ValueError) as error:
                raise BertcliError(f"{self.name} cannot be read as Parquet: {first_line(error)}.") from None

    def _text(self, wanted: Wanted, values: dict[str, Any]) -> Text:
        place = f"{self.name}, row {self._row}"
        size = max(len(value) if isinstance(value, str | bytes) else 0 for value in values.values())
        if size > LONGEST:
            return unusable(place, f"{size:,} letters in a field, more than the {LONGEST:,} that a text may have.")
        return wanted.row(place, values)


def check_sizes(name: str, metadata: Any, columns: Sequence[str]) -> None:
    """Refuse a column that unpacks to UNPACKED bytes or more from a thousandth, or a list of as many numbers.

    Neither texts nor vectors do. The sizes are those that the file states. Every writer of Parquet states them truly;
    a forged file can still have a page of up to 2 GB unpacked. Errors: BertcliError.
    """
    for column in _columns(metadata):
        path, packed, unpacked = column.path_in_schema, column.total_compressed_size, column.total_uncompressed_size
        listed = path.startswith(tuple(f"{name}." for name in columns))
        if listed:
            unpacked = max(unpacked, 8 * column.num_values)
        if (listed or path in columns) and unpacked > max(UNPACKED, RATIO * packed):
            raise BertcliError(
                f"{name}: the column {shown(path)} unpacks to {unpacked:,} bytes from {packed:,}, a decompression "
                "bomb: do not use this file."
            )


def _columns(metadata: Any) -> Iterator[Any]:
    """What a file states of each column of each row group."""
    for group in map(metadata.row_group, range(metadata.num_row_groups)):
        yield from map(group.column, range(group.num_columns))


def _check_columns(schema: Any, wanted: Wanted, file: str, types: Any) -> None:
    for field in wanted.fields:
        if schema.names.count(field.name) != 1:
            raise BertcliError(f"{file}: {field.lacking(schema.names)}")
        kind = schema.field(field.name).type
        kind = kind.value_type if types.is_dictionary(kind) else kind
        textual = types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind)
        number = types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind)
        if not textual and not (number and field.kind != "a text"):
            raise BertcliError(
                f"{file}: the column {shown(field.name)} is of type {kind}, which is not {field.kind} "
                f"(see {field.option})."
            )


def value_of(scalar: Any) -> Any:
    """A Python value; of a string that is not UTF-8 its bytes."""
    try:
        return scalar.as_py()
    except UnicodeDecodeError:
        return getattr(scalar, "value", scalar).as_buffer().to_pybytes()


# ---------------------------------------------------------------------------------------------------- reading vectors


def in_parquet(path: Path) -> StoredVectors:
    """Columns of whole numbers, or of lists that all have one length; a list that is null counts as zeros."""
    arrow, parquet = pyarrow(str(path))
    types = {getattr(arrow, dtype.name)(): dtype for dtype in (*TYPES, WHOLE)}

    @contextmanager
    def opened() -> Iterator[Any]:
        try:
            with open_regular(path) as file, parquet.ParquetFile(file, pre_buffer=False) as table:
                yield table
        except (arrow.ArrowException, OSError, ValueError) as error:
            raise no_vectors(path, f"cannot be read as Parquet ({first_line(error)})") from None

    def blocks(name: str, count: int) -> Iterator[Numbers]:
        with opened() as table:
            kind = table.schema_arrow.field(name).type
            listed = hasattr(kind, "value_field")
            dtype = types.get(kind.value_type if listed else kind)
            if dtype is None:
                allowed = ", ".join(map(str, TYPES))
                raise no_vectors(path, f"holds a column {shown(name)} of {kind}, not lists of {allowed}")
            check_sizes(str(path), table.metadata, [name])
            width = _width(table, name) if listed else 0
            for batch in table.iter_batches(count, columns=[name], use_threads=False):
                column = batch.column(name)
                yield _rows(path, column, width, dtype) if listed else column.to_numpy(zero_copy_only=False)

    with opened() as table:
        names, metadata = table.schema_arrow.names, table.schema_arrow.metadata or {}
    notes = {name: metadata[name.encode()].decode(errors="replace") for name in NOTES if name.encode() in metadata}
    arrays = {name: partial(blocks, name) for name in names if names.count(name) == 1}
    return StoredVectors(path, arrays, "embedding", notes).checked()


def _rows(path: Path, lists: Any, width: int, dtype: np.dtype[Any]) -> Numbers:
    if lists.flatten().null_count:
        raise no_vectors(path, "has vectors with nulls in them")
    if set(lists.value_lengths().to_pylist()) - {width, None}:
        raise no_vectors(path, f"has vectors of different lengths; the first has {width} numbers")
    vectors = np.zeros((len(lists), width), dtype)
    valid = lists.is_valid().to_numpy(zero_copy_only=False)
    vectors[valid] = lists.flatten().to_numpy(zero_copy_only=False).reshape(-1, width)
    return vectors


def _width(columns: Any, name: str) -> int:
    """The length of the first vector that is not null; 0 if there is none."""
    for batch in columns.iter_batches(1024, columns=[name], use_threads=False):
        for length in batch.column(name).value_lengths().to_pylist():
            if length is not None:
                return int(length)
    return 0


# ------------------------------------------------------------------------------------------- writing texts and vectors


class Column(NamedTuple):
    """A column of vectors: the array that holds them, of a NumPy type such as "<f4", and how many numbers each has.

    size: None for lists of different lengths, 0 for single numbers.
    """

    name: str
    array: str
    dtype: str
    size: int | None = 0


def write_parquet(
    stream: Stream,
    shards: Shards,
    columns: Mapping[str, Any],
    vectors: Sequence[Column] = (),
    notes: Mapping[str, str] | None = None,
) -> None:
    """A table of what shards hold: lines, each a row in JSON with a value for each of the columns, beside arrays.

    Each column has one type of Parquet, string where its values have several; a column may be said to hold int or
    float, even where there are no rows to tell. Vectors of different lengths need an array "lengths". Vectors
    are null in a row with an error. notes: the file's metadata.
    """
    arrow, _ = pyarrow(shards.file)
    schema = _schema(arrow, shards, columns, vectors).with_metadata(notes)
    array_names = [vector.array for vector in vectors]
    if any(vector.size is None for vector in vectors):
        array_names.append(LENGTHS)

    def tables() -> Iterator[Any]:
        for lines, *blocks in zip(shards.byte_blocks(LINES), *map(shards.rows, array_names), strict=True):
            rows = list(map(json.loads, lines.splitlines()))
            cells = [[row[name] for row in rows] for name in columns]
            for i, kind in enumerate(schema.types[: len(columns)]):
                cells[i] = list(map(_text, cells[i])) if kind == arrow.string() else cells[i]
            for vector, block in zip(vectors, blocks, strict=False):
                of_rows = block if vector.size is not None else np.split(block, np.cumsum(blocks[-1])[:-1])
                cells.append([None if row.get("error") else value for row, value in zip(rows, of_rows, strict=True)])
            arrays = [arrow.array(values, kind) for values, kind in zip(cells, schema.types, strict=True)]
            yield arrow.table(arrays, schema)

    _write(stream, arrow, schema, tables())


def concatenated(stream: Stream, files: Sequence[str]) -> None:
    """Write the rows of files of one run one after another, as if they had been written together."""
    arrow, parquet = pyarrow(files[0])
    with ExitStack() as stack:
        tables = [stack.enter_context(parquet.ParquetFile(file, pre_buffer=False)) for file in files]
        first = tables[0].schema_arrow
        schema = arrow.schema([(name, _common_type(arrow, tables, name)) for name in first.names], first.metadata)
        batches = (batch for table in tables for batch in table.iter_batches(ROWS_WRITTEN, use_threads=False))
        _write(stream, arrow, schema, (arrow.Table.from_batches([batch]).cast(schema) for batch in batches))


def _write(stream: Stream, arrow: Any, schema: Any, tables: Iterable[Any]) -> None:
    """Tables one after another, in groups of ROWS_WRITTEN rows however they are cut."""
    with arrow.parquet.ParquetWriter(stream, schema, use_dictionary=False) as writer:
        pending = schema.empty_table()
        for table in tables:
            pending = arrow.concat_tables([pending, table])
            while len(pending) >= ROWS_WRITTEN:
                writer.write_table(pending[:ROWS_WRITTEN].combine_chunks())
                pending = pending[ROWS_WRITTEN:]
        if len(pending):
            writer.write_table(pending.combine_chunks())


def _common_type(arrow: Any, tables: Sequence[Any], name: str) -> Any:
    """The type of a column in the file of all; the column of a shard without rows, or with nulls only, says nothing."""
    kinds = []
    for table in tables:
        kind = table.schema_arrow.field(name).type
        groups = [column.statistics for column in _columns(table.metadata) if column.path_in_schema == name]
        values = any(statistics is None or statistics.num_values for statistics in groups)  # those not null
        if table.metadata.num_rows and (values or kind != arrow.string()):
            kinds.append(kind)
    if not kinds:
        return tables[0].schema_arrow.field(name).type
    if any(arrow.types.is_list(kind) for kind in kinds):
        return arrow.list_(kinds[0].value_type)
    if arrow.types.is_fixed_size_list(kinds[0]):
        return arrow.list_(kinds[0].value_type, kinds[0].list_size)
    return _common(arrow, {*kinds})


def _schema(arrow: Any, shards: Shards, columns: Mapping[str, Any], vectors: Sequence[Column]) -> Any:
    kinds: dict[str, set[type | None]] = {name: {kind} for name, kind in columns.items()}
    for row in map(json.loads, shards.lines()):
        for name in columns:
            kinds[name].add(_kind(row[name]))
    fields = []
    for name, found in kinds.items():
        types = {getattr(arrow, OF_NUMBERS.get(kind, "string"))() for kind in found if kind is not None}
        fields.append((name, _common(arrow, types)))
    nulls = str in kinds.get("error", ())
    for vector in vectors:
        kind = getattr(arrow, np.dtype(vector.dtype).name)()
        if vector.size != 0:  # pyarrow before 26 cannot read fixed-size lists with nulls
            kind = arrow.list_(kind) if nulls or vector.size is None else arrow.list_(kind, vector.size)
        fields.append((vector.name, kind))
    return arrow.schema(fields)


def _kind(value: Value) -> type | None:
    """The type that holds a value; text holds whole numbers that do not fit an int64."""
    if isinstance(value, int) and not -(1 << 63) <= value < 1 << 63:
        return str
    return None if value is None else type(value)


def _common(arrow: Any, kinds: set[Any]) -> Any:
    """The type of Parquet that holds values of all these types; text holds any."""
    if len(kinds) == 1:
        return next(iter(kinds))
    return arrow.float64() if kinds == {arrow.int64(), arrow.float64()} else arrow.string()


def _text(value: Value) -> str | None:
    """A value in a column of texts; half a surrogate pair, as a label may have, is escaped."""
    return None if value is None else str(value).encode("utf-8", "backslashreplace").decode()


# ------------------------------------------------------------------------------------------------------------ the kind


class Parquet(TextFile, Rows, Vectors):
    """A table, whose columns may hold vectors beside texts."""

    streams = False

    def open_texts(self, file: str) -> InputFile:
        rows = ParquetRows(file)
        return InputFile(rows, rows.texts)

    def write_rows(self, stream: Stream, shards: Shards, columns: Mapping[str, Any]) -> None:
        write_parquet(stream, shards, columns)

    def open_vectors(self, path: Path) -> StoredVectors:
        return in_parquet(path)

    def join(self, stream: Stream, files: Sequence[str]) -> None:
        concatenated(stream, files)
