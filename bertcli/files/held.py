"""What files may hold, and what can be done with it; `kinds.py` has each kind of file by its ending."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, NamedTuple, Protocol

from bertcli.errors import BertcliError

if TYPE_CHECKING:
    from bertcli.files.rows import Wanted
    from bertcli.files.shards import Shards
    from bertcli.files.stored import StoredVectors
    from bertcli.files.texts import Text

Stream = IO[bytes]


class Source(Protocol):
    """Where rows come from: its name, whether it can be read again, whether the next row waits, what has been read."""

    name: str
    regular: bool

    def waiting(self) -> bool: ...

    def share(self) -> float | None: ...


class InputFile(NamedTuple):
    """A file or pipe, and what reads the texts in it."""

    rows: Source
    texts: "Callable[[Wanted], Iterator[Text]]"


class Format:
    """A kind of file."""

    def join(self, stream: Stream, files: Sequence[str]) -> None:
        """Write one file of those that the shards of a run have written, in their order."""
        raise NotImplementedError


class TextFile(Format):
    """A file of texts. named: they stand under names; streams: it may also be packed (.gz), or a pipe."""

    named = streams = True

    def open_texts(self, file: str) -> InputFile:
        """Open a file or (`-`) standard input."""
        raise NotImplementedError


class Records(Format):
    """A file of records as they are."""

    def write_records(self, stream: Stream, lines: Iterable[bytes]) -> None:
        """Write records, each a line of JSON."""
        raise NotImplementedError


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


def pyarrow(file: str) -> tuple[Any, Any]:
    """The modules pyarrow and pyarrow.parquet; if they are missing, BertcliError naming the file that needs them."""
    try:
        return import_module("pyarrow"), import_module("pyarrow.parquet")
    except ImportError:
        raise BertcliError(f"{file}: Parquet needs pyarrow: pip install 'bertcli[parquet]'.") from None
