"""The table of file formats: the endings of each, and for what it may hold, the function that reads or writes that.

To add a format, add its entry to FORMATS. arrays.py, parquet.py, `read/` and `write/` do the work; they are imported
late, because `--help` only needs the endings.
"""

from collections.abc import Callable
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import IO, Any, Literal, NamedTuple

Stream = IO[bytes]
ERRORS = "errors.jsonl"  # the texts that could not be used; also the name of this array in segments
SETTINGS_FILE = "settings.json"  # how the result was made
Content = Literal["texts", "records", "rows", "array", "arrays", "vectors", "stored"]


class Format(NamedTuple):
    """The endings of a format, in lower case, and a function for each content that its files may have.

    texts    file → InputFile: reads texts, of a file or (`-`) of standard input
    records  (stream, lines): writes records, each a line of JSON
    rows     (stream, segments, columns): writes the rows of a record's table; a column holds str, int or float
    array    (stream, arrays): writes one array, as its rows come; `arrays` several
    vectors  (stream, segments, form): writes vectors beside the texts that they are of
    stored   path → StoredVectors: opens the vectors of whole texts, and the file's notes on them
    named, gives_ids, streams: texts have named fields; have ids without --id-column; may come from a pipe, or a .gz
    beside   what it has no room for, so that it is written to a file beside: ERRORS, SETTINGS_FILE
    needs    file: raises BertcliError if the package that reads and writes this format is missing
    """

    endings: tuple[str, ...]
    texts: Callable[..., Any] | None = None
    records: Callable[..., None] | None = None
    rows: Callable[..., None] | None = None
    array: Callable[..., None] | None = None
    arrays: Callable[..., None] | None = None
    vectors: Callable[..., None] | None = None
    stored: Callable[[Path], Any] | None = None
    named: bool = True
    gives_ids: bool = False
    streams: bool = True
    beside: tuple[str, ...] = ()
    needs: Callable[[str], object] | None = None


def call(module: str, name: str, *arguments: Any, **named: Any) -> Any:
    """Call a function of a module in this folder, which is imported now."""
    return getattr(import_module(f"{__package__}.{module}"), name)(*arguments, **named)


open_lines = partial(call, "read.rows", "open_lines")
write_separated = partial(call, "write.json_and_csv", "write_separated")
in_arrays = partial(call, "read.vector_reader", "in_arrays")
FORMATS = (
    Format((".txt",), texts=partial(open_lines, reader="text_lines"), named=False),
    Format((".json",), records=partial(call, "write.json_and_csv", "write_array")),
    Format(
        (".jsonl",),
        texts=partial(open_lines, reader="json_lines"),
        records=partial(call, "write.json_and_csv", "write_lines"),
    ),
    Format(
        (".csv",),
        texts=partial(open_lines, reader="comma_separated"),
        rows=partial(write_separated, delimiter=","),
    ),
    Format(
        (".tsv",),
        texts=partial(open_lines, reader="tab_separated"),
        rows=partial(write_separated, delimiter="\t"),
    ),
    Format((".md",), rows=partial(call, "write.json_and_csv", "write_markdown")),
    Format((".fasta", ".fa"), texts=partial(open_lines, reader="sequences"), named=False, gives_ids=True),
    Format(
        (".npy",),
        array=partial(call, "arrays", "write_npy"),
        stored=partial(in_arrays, open_arrays=partial(call, "arrays", "open_npy")),
        beside=(ERRORS, SETTINGS_FILE),
    ),
    Format(
        (".npz",),
        arrays=partial(call, "arrays", "write_npz"),
        stored=partial(in_arrays, open_arrays=partial(call, "arrays", "open_npz")),
        beside=(ERRORS,),
    ),
    Format(
        (".safetensors",),
        arrays=partial(call, "arrays", "write_safetensors"),
        stored=partial(in_arrays, open_arrays=partial(call, "arrays", "open_safetensors")),
        beside=(ERRORS,),
    ),
    Format(
        (".parquet",),
        texts=partial(call, "parquet", "open_rows"),
        rows=partial(call, "parquet", "write_rows"),
        vectors=partial(call, "parquet", "write_vectors"),
        stored=partial(call, "parquet", "open_vectors"),
        streams=False,
        needs=partial(call, "parquet", "pyarrow"),
    ),
)
BY_ENDING = {ending: format for format in FORMATS for ending in format.endings}


def endings_with(*contents: Content) -> tuple[str, ...]:
    """List the endings of the formats that may hold any of these contents, in their order."""
    return tuple(ending for what in contents for ending, format in BY_ENDING.items() if getattr(format, what))


PAGE, FIGURES = ".html", (".pdf", ".svg", ".png")
LINES = ".txt"  # of results that are a text each
RECORDS = endings_with("records")
TABLES = endings_with("records", "rows")  # of records that have rows in a table
SINGLE, SEVERAL = endings_with("array"), endings_with("arrays")
ARRAYS = SINGLE + SEVERAL
# Files of lines whose texts have named fields.
LINES_OF_ROWS = tuple(
    ending for ending in endings_with("texts") if BY_ENDING[ending].named and BY_ENDING[ending].streams
)
VECTOR_TABLES = endings_with("vectors")


def ending_of(file: str) -> str:
    """Return the ending of a file's name, in lower case."""
    return Path(file).suffix.lower()


def writer_of(ending: str, *contents: Content) -> Callable[..., None]:
    """The function that writes the first of these contents that files of this ending may hold."""
    writers: list[Callable[..., None] | None] = [getattr(BY_ENDING[ending], content) for content in contents]
    return next(filter(None, writers))
