"""Digest files: those of texts and models, which --resume compares, and those whose digests an evaluation notes."""

import hashlib
from collections.abc import Iterable
from pathlib import Path


def digest(files: Iterable[Path]) -> str:
    """Hash the contents of files, in this order. Errors: OSError."""
    whole = hashlib.blake2b(digest_size=16)
    for path in files:
        with path.open("rb") as file:
            whole.update(hashlib.file_digest(file, "blake2b").digest())
    return whole.hexdigest()
