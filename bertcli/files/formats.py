"""The table of file formats: a class for each, with its endings, and how it is read and written.

To add a format, add a class here and in FORMATS. arrays.py, parquet.py, `read/` and `write/` do the work; they are
imported late, because `--help` only needs the endings.
"""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Literal, Protocol, TypeVar

from bertcli import extensions
from bertcli.errors import BertcliError
from bertcli.files.files_beside import check_beside

if TYPE_CHECKING:
    from bertcli.files.arrays import FileArray
    from bertcli.files.parquet import ColumnFile
    from bertcli.files.read.rows import InputFile
    from bertcli.files.read.vector_reader import Readers, StoredVectors
    from bertcli.files.write.resumable_output import ResumableOutput

Stream = IO[bytes]
Content = Literal["texts", "records", "rows", "array", "arrays", "vectors"]  # array: one; vectors: a column of rows


class VectorSource(Protocol):
    """Vectors to write, implemented by `VectorForm`.

    stored: as arrays. vector_columns: as columns of a table, beside `columns` of texts. notes: the file's metadata.
    """

    @property
    def notes(self) -> Mapping[str, str]: ...

    @property
    def columns(self) -> Mapping[str, type]: ...

    @property
    def vector_columns(self) -> Sequence[Any]: ...

    def stored(self, segments: "ResumableOutput") -> "Iterator[FileArray]": ...


class Format:
    """Base class of all formats.

    endings  endings of files' names, in lower case
    holds    what a file may contain
    """

    endings: tuple[str, ...]
    holds: tuple[Content, ...]

    def check(self, file: str) -> None:
        """Raise BertcliError if the package that reads and writes this format is missing."""


class TextFormat(Format):
    """A format of input texts.

    named: a row has named fields. gives_ids: each text has an id without --id-column. streams: may be a pipe, or .gz.
    """

    named = streams = True
    gives_ids = False

    def open_texts(self, file: str) -> "InputFile":
        """Open a file or (`-`) standard input."""
        raise NotImplementedError


class RecordFormat(Format):
    """A format that holds records as JSON."""

    def write_records(self, stream: Stream, lines: Iterable[bytes]) -> None:
        """Write records, each a line of JSON."""
        raise NotImplementedError


class RowFormat(Format):
    """A format that holds the rows of a record's table."""

    def write_rows(self, stream: Stream, segments: "ResumableOutput", columns: Mapping[str, type]) -> None:
        """Write the rows in segments, each a line of JSON; a column holds str, int or float."""
        raise NotImplementedError


class VectorFormat(Format):
    """A format that holds the vectors of `encode`. in_table: a row holds the text and its vector."""

    in_table = False

    def write_vectors(self, stream: Stream, segments: "ResumableOutput", form: VectorSource) -> None:
        """Write the vectors in segments."""
        raise NotImplementedError

    def open_vectors(self, path: Path) -> "StoredVectors":
        """Open the vectors of whole texts, and the file's notes on them. Errors: BertcliError."""
        raise NotImplementedError


# --------------------------------------------------------------------------------------------------- files of lines


class LineFormat(TextFormat):
    """A format of texts in lines. reader: the name of the function in read/rows.py that reads them."""

    reader: str

    def open_texts(self, file: str) -> "InputFile":
        from bertcli.files.read.rows import open_lines

        return open_lines(file, self.reader)


class Txt(LineFormat):
    """A text on every line."""

    endings, holds = (".txt",), ("texts",)
    reader, named = "text_lines", False


class Fasta(LineFormat):
    """Sequences below headers."""

    endings, holds = (".fasta", ".fa"), ("texts",)
    reader, named, gives_ids = "sequences", False, True


class Json(RecordFormat):
    """One array of records, one a line."""

    endings, holds = (".json",), ("records",)

    def write_records(self, stream: Stream, lines: Iterable[bytes]) -> None:
        from bertcli.files.write.json_and_csv import write_array

        write_array(stream, lines)


class JsonLines(LineFormat, RecordFormat):
    """A record on every line."""

    endings, holds = (".jsonl",), ("texts", "records")
    reader = "json_lines"

    def write_records(self, stream: Stream, lines: Iterable[bytes]) -> None:
        stream.writelines(lines)


class Csv(LineFormat, RowFormat):
    """Rows below a header, by the rules of CSV: a cell that holds the delimiter, a quote or a line end is quoted."""

    endings, holds = (".csv",), ("texts", "rows")
    reader, delimiter = "comma_separated", ","

    def write_rows(self, stream: Stream, segments: "ResumableOutput", columns: Mapping[str, type]) -> None:
        from bertcli.files.write.json_and_csv import write_separated

        write_separated(stream, segments.lines(), [*columns], self.delimiter)


class Tsv(Csv):
    """Rows as CSV's, with tabs between the cells."""

    endings, reader, delimiter = (".tsv",), "tab_separated", "\t"


# ---------------------------------------------------------------------------------------------------------- arrays


class MarkdownTable(RowFormat):
    """A table in Markdown, to be read by people: floats are rounded, as in a terminal."""

    endings, holds = (".md",), ("rows",)

    def write_rows(self, stream: Stream, segments: "ResumableOutput", columns: Mapping[str, type]) -> None:
        from bertcli.files.write.json_and_csv import write_markdown

        write_markdown(stream, segments.lines(), columns)


class ArrayFormat(VectorFormat):
    """A format that holds arrays."""

    def write_arrays(self, stream: Stream, arrays: "Sequence[FileArray]") -> None:
        """Write arrays from beginning to end, as their rows come."""
        raise NotImplementedError

    def open_arrays(self, path: Path) -> "Readers":
        """Return functions that read each array of a file, by name."""
        raise NotImplementedError

    def write_vectors(self, stream: Stream, segments: "ResumableOutput", form: VectorSource) -> None:
        self.write_arrays(stream, list(form.stored(segments)))

    def open_vectors(self, path: Path) -> "StoredVectors":
        from bertcli.files.read.vector_reader import in_arrays

        return in_arrays(path, self.open_arrays)


class Npy(ArrayFormat):
    """One array of NumPy."""

    endings, holds = (".npy",), ("array",)

    def write_arrays(self, stream: Stream, arrays: "Sequence[FileArray]") -> None:
        from bertcli.files.arrays import write_npy

        write_npy(stream, arrays)

    def open_arrays(self, path: Path) -> "Readers":
        from bertcli.files.arrays import open_npy

        return open_npy(path)


class Npz(ArrayFormat):
    """Several arrays of NumPy in a zip."""

    endings, holds = (".npz",), ("arrays",)

    def write_arrays(self, stream: Stream, arrays: "Sequence[FileArray]") -> None:
        from bertcli.files.arrays import write_npz

        write_npz(stream, arrays)

    def open_arrays(self, path: Path) -> "Readers":
        from bertcli.files.arrays import open_npz

        return open_npz(path)


class Safetensors(ArrayFormat):
    """Several arrays, and texts in the metadata."""

    endings, holds = (".safetensors",), ("arrays",)

    def write_arrays(self, stream: Stream, arrays: "Sequence[FileArray]") -> None:
        from bertcli.files.arrays import write_safetensors

        write_safetensors(stream, arrays)

    def open_arrays(self, path: Path) -> "Readers":
        from bertcli.files.arrays import open_safetensors

        return open_safetensors(path)


# ---------------------------------------------------------------------------------------------------- Arrow's tables


class Parquet(TextFormat, RowFormat, VectorFormat):
    """A table by pyarrow, whose columns may hold vectors beside texts.

    Another format of pyarrow's would be a subclass with its own `table` and `writer`.
    """

    endings, holds = (".parquet",), ("texts", "rows", "vectors")
    streams = False
    in_table = True

    def table(self, file: Any) -> "ColumnFile":
        """Wrap an open file for reading."""
        from bertcli.files.parquet import ParquetTable

        return ParquetTable(file)

    def writer(self, stream: Stream, schema: Any) -> Any:
        """Return pyarrow's writer for this schema: a context manager with `write_table`."""
        from bertcli.files.parquet import parquet_writer

        return parquet_writer(stream, schema)

    def check(self, file: str) -> None:
        from bertcli.files.parquet import pyarrow

        pyarrow(file)

    def open_texts(self, file: str) -> "InputFile":
        from bertcli.files.parquet import open_rows

        return open_rows(file, self.table)

    def write_rows(self, stream: Stream, segments: "ResumableOutput", columns: Mapping[str, type]) -> None:
        from bertcli.files.parquet import write_table

        write_table(stream, segments, columns, self.writer)

    def write_vectors(self, stream: Stream, segments: "ResumableOutput", form: VectorSource) -> None:
        from bertcli.files.parquet import write_table

        write_table(stream, segments, form.columns, self.writer, form.vector_columns, form.notes)

    def open_vectors(self, path: Path) -> "StoredVectors":
        from bertcli.files.parquet import open_vectors

        return open_vectors(path, self.table)

    def write_replaced(self, stream: Stream, source: str, column: str, texts: "Iterator[str | None]") -> Sequence[str]:
        """Write a table again with other texts in a column; the names of its columns."""
        from bertcli.files.parquet import write_replaced

        return write_replaced(source, column, texts, stream, self.table, self.writer)


FORMATS: tuple[Format, ...] = (
    Txt(), Json(), JsonLines(), Csv(), Tsv(), MarkdownTable(), Fasta(), Npy(), Npz(), Safetensors(), Parquet(),
)  # fmt: skip
BY_ENDING = {ending: format for format in FORMATS for ending in format.endings}
F = TypeVar("F", bound=Format)


def known_format(ending: str) -> Format | None:
    """The format of an ending, of the house or of a plugin; None if nobody has it."""
    if ending in BY_ENDING:
        return BY_ENDING[ending]
    of_plugins = extensions.plugin_parts("formats", "FORMATS", tuple, _no_formats)
    return next((format for formats in of_plugins for format in formats if ending in format.endings), None)


def _no_formats(module: str, formats: tuple[Any, ...]) -> str | None:
    fit = all(isinstance(format, Format) for format in formats)
    return None if fit else f"FORMATS of {module} are no objects of classes of formats"


def endings_with(*contents: Content) -> tuple[str, ...]:
    """List the endings of the formats that may hold any of these contents, in their order."""
    return tuple(ending for what in contents for ending, format in BY_ENDING.items() if what in format.holds)


PAGE, FIGURES = ".html", (".pdf", ".svg", ".png")
LINES = ".txt"  # of results that are a text each
RECORDS = endings_with("records")
TABLES = endings_with("records", "rows")  # of records that have rows in a table
SINGLE, SEVERAL = endings_with("array"), endings_with("arrays")
ARRAYS = SINGLE + SEVERAL
VECTOR_TABLES = endings_with("vectors")


def ending_of(file: str) -> str:
    """Return the ending of a file's name, in lower case."""
    return Path(file).suffix.lower()


def holds_records(file: str) -> bool:
    """True if a file with this ending holds records."""
    format = known_format(ending_of(file))
    return format is not None and "records" in format.holds


def format_of(file: str, holding: type[F]) -> F:
    """Return the format of a file by its ending; callers have checked that it is an instance of `holding`."""
    format = known_format(ending_of(file))
    assert isinstance(format, holding)
    return format


def check_output(file: str | None, allowed: tuple[str, ...]) -> None:
    """Raise BertcliError for an output file with another ending, or one that cannot be written; None passes."""
    if file is None:
        return
    ending = ending_of(file)
    brought = None if ending in BY_ENDING or ending in (PAGE, *FIGURES) else known_format(ending)
    fits = brought is not None and "records" in brought.holds and {*RECORDS} <= {*allowed}
    if ending not in allowed and not fits:
        single = ending in SINGLE and not {*SEVERAL}.isdisjoint(allowed)
        why = f" A {ending} file holds one array, but this result has several." if single else ""
        choices = f"one of {', '.join(allowed)}" if len(allowed) > 1 else allowed[0]
        raise BertcliError(f"Cannot write {file}: the ending must be {choices}.{why}")
    path = Path(os.path.realpath(file))
    if not path.parent.is_dir():
        raise BertcliError(f"Cannot write {file}: there is no folder {path.parent}.")
    if path.exists() and not path.is_file():
        raise BertcliError(f"Cannot write {file}: something of that name exists that is not a file.")
    if path.exists() and not os.access(path, os.W_OK):
        raise BertcliError(f"Cannot write {file}: it already exists and is write-protected.")
    if not os.access(path.parent, os.W_OK):
        raise BertcliError(f"Cannot write {file}: the folder {path.parent} is not writable.")
    check_beside(file)
    format = known_format(ending) if ending not in (PAGE, *FIGURES) else None
    if format is not None:
        format.check(file)
