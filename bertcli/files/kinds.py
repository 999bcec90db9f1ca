"""The kinds of files by their endings: how what each holds is read, written and joined from parts.

Whoever reads or writes files asks them; what does the work is imported when there is work. A kind of file is added by a
class here that says how, and by its ending in KINDS and in `formats.py`.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from bertcli.files.arrays import Readers, Stored
    from bertcli.files.lines import LineFile
    from bertcli.files.parquet import ParquetRows
    from bertcli.files.rows import Wanted
    from bertcli.files.shards import Shards
    from bertcli.files.stored import StoredVectors
    from bertcli.files.texts import Text

Stream = IO[bytes]


class InputFile(NamedTuple):
    """A file or pipe, and what reads the texts in it."""

    rows: "LineFile | ParquetRows"
    texts: "Callable[[Wanted], Iterator[Text]]"


# ------------------------------------------------------------------------------------------------ what a file may hold


class Format:
    """A kind of file. header: its first line is above the rows of all parts."""

    header = False

    def check_installed(self, file: str) -> None:
        """BertcliError naming the file if a package is missing that this kind of file needs."""

    def join(self, stream: Stream, files: Sequence[str]) -> None:
        """Write one file of those that the shards of a run have written, in their order."""
        from bertcli.files.joined import join_lines

        join_lines(stream, files, self.header)


class TextFile(Format):
    """A file of texts. fields: they stand under names; streams: it may also be packed (.gz), or a pipe."""

    fields = True
    streams = True

    def open_texts(self, file: str) -> InputFile:
        """Open a file or (`-`) standard input."""
        from bertcli.files.lines import LineFile

        lines = LineFile(file)
        return InputFile(lines, partial(self.parser(), lines))

    def parser(self) -> "Callable[[LineFile, Wanted], Iterator[Text]]":
        """What gives the texts in lines."""
        raise NotImplementedError


class Records(Format):
    """A file of records as they are."""

    def write_records(self, stream: Stream, lines: Iterable[bytes]) -> None:
        """Write records, each a line of JSON."""
        stream.writelines(lines)


class Rows(Format):
    """A file of the rows of a table."""

    def write_rows(self, stream: Stream, shards: "Shards", columns: Mapping[str, Any]) -> None:
        """Write the rows in shards, each a line of JSON; a column is int, float or, where its values say it, None."""
        raise NotImplementedError


class Vectors(Format):
    """A file of the vectors that `encode` writes."""

    def open_vectors(self, path: Path) -> "StoredVectors":
        """The vectors of whole texts, and what the file says of them. Errors: BertcliError."""
        raise NotImplementedError


class Arrays(Vectors):
    """A file of arrays. several: it may hold more than one, and texts beside them."""

    several = True

    def write_arrays(self, stream: Stream, arrays: "Sequence[Stored]") -> None:
        """Write arrays from beginning to end."""
        raise NotImplementedError

    def open_arrays(self, path: Path) -> "Readers":
        """What reads each array. Errors of many kinds, here or when it is read, where the file is damaged."""
        raise NotImplementedError

    def open_vectors(self, path: Path) -> "StoredVectors":
        from bertcli.files.stored import in_arrays

        return in_arrays(path, self.open_arrays)

    def join(self, stream: Stream, files: Sequence[str]) -> None:
        from bertcli.files.arrays import joined

        self.write_arrays(stream, joined([self.open_arrays(Path(file)) for file in files]))


# -------------------------------------------------------------------------------------------------- the kinds of files


class Lines(TextFile):
    """Every line is a text."""

    fields = False

    def parser(self) -> "Callable[[LineFile, Wanted], Iterator[Text]]":
        from bertcli.files.rows import text_lines

        return text_lines


class Fasta(TextFile):
    """Sequences of letters below headers."""

    fields = False

    def parser(self) -> "Callable[[LineFile, Wanted], Iterator[Text]]":
        from bertcli.files.rows import sequences

        return sequences


class Json(Records):
    """One array of records."""

    def write_records(self, stream: Stream, lines: Iterable[bytes]) -> None:
        from bertcli.files.records import write_array

        write_array(stream, lines)

    def join(self, stream: Stream, files: Sequence[str]) -> None:
        from bertcli.files.joined import array_lines

        self.write_records(stream, array_lines(files))


class JsonLines(TextFile, Records):
    """A record on every line."""

    def parser(self) -> "Callable[[LineFile, Wanted], Iterator[Text]]":
        from bertcli.files.rows import json_lines

        return json_lines


class CommaSeparated(TextFile, Rows):
    """Rows below a header, by the rules of CSV."""

    header = True
    delimiter = ","

    def parser(self) -> "Callable[[LineFile, Wanted], Iterator[Text]]":
        from bertcli.files.rows import comma_separated

        return comma_separated

    def write_rows(self, stream: Stream, shards: "Shards", columns: Mapping[str, Any]) -> None:
        from bertcli.files.joined import write_separated

        write_separated(stream, shards.lines(), columns, self.delimiter)


class TabSeparated(CommaSeparated):
    """The same with tabs; read a line a row, and written with quotes where a cell holds a tab, quote or line end."""

    delimiter = "\t"

    def parser(self) -> "Callable[[LineFile, Wanted], Iterator[Text]]":
        from bertcli.files.rows import tab_separated

        return tab_separated


class Npy(Arrays):
    """NumPy's file of one array."""

    several = False

    def write_arrays(self, stream: Stream, arrays: "Sequence[Stored]") -> None:
        from bertcli.files.arrays import write_npy

        write_npy(stream, arrays)

    def open_arrays(self, path: Path) -> "Readers":
        from bertcli.files.arrays import open_npy

        return open_npy(path)


class Npz(Arrays):
    """NumPy's file of named arrays."""

    def write_arrays(self, stream: Stream, arrays: "Sequence[Stored]") -> None:
        from bertcli.files.arrays import write_npz

        write_npz(stream, arrays)

    def open_arrays(self, path: Path) -> "Readers":
        from bertcli.files.arrays import open_npz

        return open_npz(path)


class Safetensors(Arrays):
    """Named arrays, and texts in its metadata."""

    def write_arrays(self, stream: Stream, arrays: "Sequence[Stored]") -> None:
        from bertcli.files.arrays import write_safetensors

        write_safetensors(stream, arrays)

    def open_arrays(self, path: Path) -> "Readers":
        from bertcli.files.arrays import open_safetensors

        return open_safetensors(path)


class Parquet(TextFile, Rows, Vectors):
    """A table, whose columns may hold vectors beside texts."""

    streams = False

    def check_installed(self, file: str) -> None:
        from bertcli.files.parquet import pyarrow

        pyarrow(file)

    def open_texts(self, file: str) -> InputFile:
        from bertcli.files.parquet import ParquetRows

        rows = ParquetRows(file)
        return InputFile(rows, rows.texts)

    def write_rows(self, stream: Stream, shards: "Shards", columns: Mapping[str, Any]) -> None:
        from bertcli.files.parquet import write_parquet

        write_parquet(stream, shards, columns)

    def open_vectors(self, path: Path) -> "StoredVectors":
        from bertcli.files.stored import in_parquet

        return in_parquet(path)

    def join(self, stream: Stream, files: Sequence[str]) -> None:
        from bertcli.files.parquet import concatenated

        concatenated(stream, files)


FASTA = Fasta()
KINDS: dict[str, Format] = {
    ".txt": Lines(),
    ".json": Json(),
    ".jsonl": JsonLines(),
    ".csv": CommaSeparated(),
    ".tsv": TabSeparated(),
    ".fasta": FASTA,
    ".fa": FASTA,
    ".npy": Npy(),
    ".npz": Npz(),
    ".safetensors": Safetensors(),
    ".parquet": Parquet(),
}
