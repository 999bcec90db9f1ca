"""What must be the same for a run to be resumed: input, model, options."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

Fingerprint = dict[str, Any]
MODEL_FILES = (".json", ".txt", ".safetensors", ".model")
FOLDERS_DEEP = 2  # a checkpoint's own folder, and those of sentence-transformers modules in it


def digest(files: Iterable[Path]) -> str:
    """One hash of the contents of files, in this order. Errors: OSError."""
    whole = hashlib.blake2b(digest_size=16)
    for path in files:
        with path.open("rb") as file:
            whole.update(hashlib.file_digest(file, "blake2b").digest())
    return whole.hexdigest()


def model_files(folder: Path) -> list[Path]:
    """The files of a checkpoint that may affect its results."""
    patterns = ("/".join(["*"] * depth) for depth in range(1, FOLDERS_DEEP + 1))
    found = (path for pattern in patterns for path in folder.glob(pattern))
    return sorted(path for path in found if path.suffix in MODEL_FILES and path.is_file())


def difference(key: str, old: object, new: object) -> str:
    """The message about two fingerprints that differ."""
    if key in ("input", "model"):
        return f"the {key} has changed"
    return f"{key} was {_value(old)} and is now {_value(new)}"


def _value(value: object) -> str:
    return "not given" if value is None else str(value)
