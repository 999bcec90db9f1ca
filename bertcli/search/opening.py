"""A file of vectors by its ending."""

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
    """What `bertcli encode -o` wrote, and files like it: an array "embeddings", or the only one there is.

    Nothing is allocated by a file's word. Errors: BertcliError for one that is missing, damaged, or holds no vectors.
    """
    ending = Path(file).suffix.lower()
    if ending not in OPENERS:
        raise BertcliError(f"{file}: a file of vectors ends in {', '.join(OPENERS)}.")
    if not Path(file).exists():
        raise BertcliError(f"{file} is missing: give a file of vectors that is there, such as encode -o writes.")
    return OPENERS[ending](Path(file))
