"""Texts in the columns of Parquet files, read by pyarrow a few rows at a time: the extra `bertcli[parquet]`."""

from __future__ import annotations

import gzip
import shutil
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import ExitStack
from typing import IO, Any

from bertcli.arrow import first_line, pyarrow
from bertcli.errors import BertcliError
from bertcli.inputs.texts import Text
from bertcli.inputs.wanted import Wanted
from bertcli.lines import check_readable
from bertcli.untrusted import shown

ROWS = 1024  # read together
BUFFER = 1 << 20  # bytes of a column read at a time: a whole row group might not fit in memory


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

        Errors: BertcliError for a file that is damaged or not Parquet, and for a column that is missing or not text.
        """
        arrow, parquet = pyarrow(self.name)
        names = wanted.names
        with ExitStack() as stack:
            try:
                file = stack.enter_context(_seekable(self.name))
                opened = parquet.ParquetFile(file, pre_buffer=False, buffer_size=BUFFER)
                stack.callback(opened.close)
                _check_columns(opened.schema_arrow, wanted, self.name, arrow.types)
                self._row, self._rows = 0, opened.metadata.num_rows
                for batch in opened.iter_batches(ROWS, columns=list(dict.fromkeys(names)), use_threads=False):
                    for values in zip(*(_values(batch.column(name)) for name in names), strict=True):
                        self._row += 1
                        yield wanted.text(f"{self.name}, row {self._row}", values)
            except (arrow.ArrowException, OSError, EOFError, zlib.error) as error:
                raise BertcliError(f"{self.name} cannot be read as Parquet: {first_line(error)}.") from None


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
    for name in wanted.names:
        if schema.names.count(name) != 1:
            wrong = "more than one column" if name in schema.names else "no column"
            known = ", ".join(map(shown, schema.names[:20])) or "none"
            see = wanted.option(name)
            raise BertcliError(f"{file}: there is {wrong} {shown(name)}; columns are {known} (see {see}).")
        kind = schema.field(name).type
        kind = kind.value_type if types.is_dictionary(kind) else kind
        textual = types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind)
        number = types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind)
        if not textual and not (number and "number" in wanted.kinds(name)):
            raise BertcliError(
                f"{file}: the column {shown(name)} is of type {kind}, which is not {wanted.kinds(name)} "
                f"(see {wanted.option(name)})."
            )


def _values(column: Any) -> list[Any]:
    """The column as Python values; a string that is not UTF-8 as its bytes."""
    try:
        values: list[Any] = column.to_pylist()
    except UnicodeDecodeError:
        values = [_value(scalar) for scalar in column]
    return values


def _value(scalar: Any) -> Any:
    try:
        return scalar.as_py()
    except UnicodeDecodeError:
        return scalar.as_buffer().to_pybytes()
