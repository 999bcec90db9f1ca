"""What files hold, by their endings; `kinds.py` says how it is read and written, which `--help` has no need of."""

import os
from pathlib import Path
from typing import Literal

from bertcli.errors import BertcliError

Held = Literal["texts", "records", "rows", "array", "arrays", "vectors"]  # array: one; vectors: a column of rows
HELD: dict[str, tuple[Held, ...]] = {
    ".txt": ("texts",),
    ".json": ("records",),
    ".jsonl": ("texts", "records"),
    ".csv": ("texts", "rows"),
    ".tsv": ("texts", "rows"),
    ".fasta": ("texts",),
    ".fa": ("texts",),
    ".npy": ("array",),
    ".npz": ("arrays",),
    ".safetensors": ("arrays",),
    ".parquet": ("texts", "rows", "vectors"),
}


def endings(*held: Held) -> tuple[str, ...]:
    """The endings of files that may hold any of this, in its order."""
    return tuple(ending for what in held for ending in HELD if what in HELD[ending])


PAGE, PARQUET = ".html", ".parquet"
RECORDS = endings("records")
TABLES = endings("records", "rows")  # of records that have rows in a table
SINGLE, SEVERAL = endings("array"), endings("arrays")
ARRAYS = SINGLE + SEVERAL


def ending_of(file: str) -> str:
    """The ending of a file's name, in lower case."""
    return Path(file).suffix.lower()


def check_output(file: str | None, endings: tuple[str, ...]) -> None:
    """BertcliError for an output file, if there is one, whose ending is not one of these, or that cannot be written."""
    if file is None:
        return
    ending = ending_of(file)
    if ending not in endings:
        single = ending in SINGLE and not {*SEVERAL}.isdisjoint(endings)
        why = f" A {ending} file holds one array, but this result has several." if single else ""
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
    if ending == PARQUET:
        from bertcli.files.held import pyarrow

        pyarrow(file)
