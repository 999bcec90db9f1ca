"""Reading texts, writing results, searching in stored vectors.

Here stand the kinds of files by their endings: what each holds, and which function of this folder reads or writes it.
"""

import os
from importlib import import_module
from pathlib import Path
from typing import Any, Literal, NamedTuple

from bertcli.errors import BertcliError


class Format(NamedTuple):
    """Functions and classes as "module.name", imported when they are needed; "" for what the format cannot do."""

    texts: str = ""  # reads texts
    records: str = ""  # writes records as they are
    rows: str = ""  # writes the rows of a table of records
    arrays: str = ""  # writes arrays
    vectors: str = ""  # opens stored vectors


FORMATS = {
    ".txt": Format(texts="rows.text_lines"),
    ".json": Format(records="records.write_array"),
    ".jsonl": Format(texts="rows.json_lines", records="forms.write_lines"),
    ".csv": Format(texts="rows.comma_separated", rows="forms.write_csv"),
    ".tsv": Format(texts="rows.tab_separated"),
    ".fasta": Format(texts="rows.sequences"),
    ".fa": Format(texts="rows.sequences"),
    ".npy": Format(arrays="arrays.write_npy", vectors="arrays.open_npy"),
    ".npz": Format(arrays="arrays.write_npz", vectors="arrays.open_npz"),
    ".safetensors": Format(arrays="arrays.write_safetensors", vectors="arrays.open_safetensors"),
    ".parquet": Format(texts="parquet.ParquetRows", rows="parquet.write_parquet", vectors="search.open_parquet"),
}
Held = Literal["texts", "records", "rows", "arrays", "vectors"]


def endings(what: Held) -> tuple[str, ...]:
    """The endings of files that may hold this."""
    return tuple(ending for ending, format in FORMATS.items() if getattr(format, what))


PARQUET = ".parquet"
PAGE = ".html"
RECORDS = endings("records")
TABLES = (*RECORDS, *endings("rows"))  # of records that have rows in a table
ARRAYS = endings("arrays")
SEVERAL = ARRAYS[1:]  # a .npy file holds one array


def loaded(ending: str, what: Held) -> Any:
    """The function or class for files of this ending."""
    module, name = getattr(FORMATS[ending], what).split(".")
    return getattr(import_module(f"bertcli.files.{module}"), name)


def ending_of(file: str) -> str:
    """The ending of a file's name, in lower case."""
    return Path(file).suffix.lower()


def check_output(file: str, endings: tuple[str, ...]) -> str:
    """The ending of an output file in lower case; BertcliError if it is not one of `endings` or cannot be written."""
    ending = ending_of(file)
    if ending not in endings:
        several = ending == ".npy" and ".npz" in endings
        why = " A .npy file holds one array, but this result has several." if several else ""
        wanted = f"one of {', '.join(endings)}" if len(endings) > 1 else endings[0]
        raise BertcliError(f"Cannot write {file}: the ending must be {wanted}.{why}")
    path = Path(os.path.realpath(file))
    if not path.parent.is_dir():
        raise BertcliError(f"Cannot write {file}: there is no folder {path.parent}.")
    if path.exists() and not path.is_file():
        raise BertcliError(f"Cannot write {file}: something of that name exists that is not a file.")
    if path.exists() and not os.access(path, os.W_OK):
        raise BertcliError(f"Cannot write {file}: it already exists and is write-protected.")
    if not os.access(path.parent, os.W_OK):
        raise BertcliError(f"Cannot write {file}: the folder {path.parent} is not writable.")
    return ending
