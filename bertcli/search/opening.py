"""Opens a file of vectors according to its ending."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from bertcli.errors import BertcliError
from bertcli.search.numpy_files import numpy_file, zip_file
from bertcli.search.stored import Stored
from bertcli.search.tables import parquet_file, safetensors_file

OPENERS: dict[str, Callable[[Path], Stored]] = {
    ".npy": numpy_file,
    ".npz": zip_file,
    ".safetensors": safetensors_file,
    ".parquet": parquet_file,
}


def open_vectors(file: str) -> Stored:
    """Open a file written by `bertcli encode -o`, or one like it: its array "embeddings", or its only array.

    No size stated in a file is trusted for an allocation. Errors: BertcliError for a file that is missing, damaged, or
    holds no vectors.
    """
    ending = Path(file).suffix.lower()
    if ending not in OPENERS:
        raise BertcliError(f"{file}: a file of vectors ends in {', '.join(OPENERS)}.")
    if not Path(file).exists():
        raise BertcliError(f"{file} is missing: give an existing file of vectors, such as encode -o writes.")
    return OPENERS[ending](Path(file))
