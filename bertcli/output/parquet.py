"""Vectors with their texts in a Parquet file, written by pyarrow: the extra `bertcli[parquet]`.

Writing Parquet cannot be resumed once the writer has died, so rows are kept in parts and become Parquet at the end.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bertcli.arrow import pyarrow
from bertcli.output.draft import Draft
from bertcli.output.part import Part
from bertcli.output.vectors import Column

ENDING = ".parquet"
ROWS = 4096  # in a row group: 12 MB with 768 float32 numbers each
NAMES = {"embeddings": "embedding", "scales": "scale"}  # singular: a table's row has one of each
ARROW_TYPES = {"<f4": "float32", "<f2": "float16", "|i1": "int8", "|u1": "uint8"}

Row = Mapping[str, str | int | None]


class ParquetFile:
    """Columns of text, given as rows, next to arrays; null where a text could not be used.

    texts: names of the text columns, each a string or (if all values are whole numbers) an int64.
    """

    def __init__(self, draft: Draft, columns: Sequence[Column], texts: Sequence[str]) -> None:
        self._arrow, self._parquet = pyarrow(draft.file)
        self._draft = draft
        self._columns = columns
        self._names = texts
        self._rows = draft.part("texts")
        self._parts = [draft.part(), *(draft.part(column.name) for column in columns[1:])]

    def append(self, arrays: Mapping[str, NDArray[Any]], rows: Sequence[Row]) -> None:
        """Append rows of text, and as many rows of each array."""
        with self._draft.failures():
            for row in rows:
                self._rows.write(json.dumps(row).encode() + b"\n")
            for column, part in zip(self._columns, self._parts, strict=True):
                part.write(np.ascontiguousarray(arrays[column.name], dtype=column.dtype).tobytes())

    def finish(self) -> dict[str, str]:
        """Write the file; the result is for `Draft.publish`."""
        whole = self._draft.part("whole")
        with self._draft.failures():
            whole.cut(0)
            schema = self._schema()
            with self._parquet.ParquetWriter(_Sink(whole), schema, use_dictionary=False) as writer:
                for rows, arrays in self._groups():
                    writer.write_table(self._table(schema, rows, arrays))
        return {"whole": ""}

    def _schema(self) -> Any:
        arrow, fields = self._arrow, []
        for name in self._names:
            kinds = {_kind(row[name]) for row in self._lines()} - {None}
            fields.append((name, arrow.int64() if kinds == {int} else arrow.string()))
        nulls = "error" in self._names and any(row["error"] for row in self._lines())
        for column in self._columns:
            kind = getattr(arrow, ARROW_TYPES[column.dtype])()
            if column.width is not None:  # pyarrow before 26 cannot read fixed-size lists with nulls
                kind = arrow.list_(kind) if nulls else arrow.list_(kind, column.width)
            fields.append((NAMES[column.name], kind))
        return arrow.schema(fields)

    def _table(self, schema: Any, rows: list[dict[str, Any]], arrays: list[NDArray[Any]]) -> Any:
        arrow = self._arrow
        missing = np.array([bool(row.get("error")) for row in rows])
        found = []
        for field in schema:
            if field.name in self._names:
                numbers = field.type == arrow.int64()
                values = [row[field.name] for row in rows]
                found.append(arrow.array([v if numbers or v is None else str(v) for v in values], field.type))
                continue
            array = arrays[[NAMES[column.name] for column in self._columns].index(field.name)]
            found.append(
                arrow.array(array, field.type, mask=missing)
                if array.ndim == 1
                else self._lists(field.type, array, missing)
            )
        return arrow.table(found, schema)

    def _lists(self, kind: Any, array: NDArray[Any], missing: NDArray[np.bool_]) -> Any:
        """The rows of an array as lists: of fixed size or, if the type allows any size, null for missing rows."""
        arrow = self._arrow
        flat = arrow.array(array[~missing].reshape(-1), kind.value_type)
        if arrow.types.is_fixed_size_list(kind):
            return arrow.FixedSizeListArray.from_arrays(flat, type=kind)
        ends = np.cumsum(np.where(missing, 0, array.shape[1]), dtype=np.int32)
        offsets = np.concatenate([np.zeros(1, np.int32), ends])
        return arrow.ListArray.from_arrays(offsets, flat, type=kind, mask=arrow.array(missing))

    def _groups(self) -> Iterator[tuple[list[dict[str, Any]], list[NDArray[Any]]]]:
        blocks = [
            part.chunks(0, ROWS * column.row_bytes) for column, part in zip(self._columns, self._parts, strict=True)
        ]
        lines = self._lines()
        for chunks in zip(*blocks, strict=True):
            arrays = [
                np.frombuffer(chunk, column.dtype).reshape(column.shape(len(chunk) // column.row_bytes))
                for chunk, column in zip(chunks, self._columns, strict=True)
            ]
            yield [next(lines) for _ in range(len(arrays[0]))], arrays

    def _lines(self) -> Iterator[dict[str, Any]]:
        rest = b""
        for chunk in self._rows.chunks():
            *lines, rest = (rest + chunk).split(b"\n")
            yield from map(json.loads, lines)


def _kind(value: str | int | None) -> type | None:
    """int for a value that fits an int64, str for one written as text, None for null."""
    if value is None:
        return None
    return int if isinstance(value, int) and -(1 << 63) <= value < 1 << 63 else str


class _Sink:
    """A part with the file interface that pyarrow needs."""

    closed = False
    mode = "wb"

    def __init__(self, part: Part) -> None:
        self._part = part

    def write(self, data: Any) -> int:
        return self._part.write(bytes(data))

    def tell(self) -> int:
        return self._part.size

    def flush(self) -> None:
        self._part.flush()

    def close(self) -> None:
        self._part.flush()

    def readable(self) -> bool:
        return False

    def writable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return False
