"""Digest weights: in memory to a key (of a cached graph, of a classifier's model), in files to a fingerprint."""

import hashlib
import os
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

from bertcli.engine.threads import thread_count
from bertcli.folder.files import TENSOR_ENDINGS
from bertcli.tracing.dispatch import Array

BLOCKS, BLOCK = 64, 1 << 14  # of a file of weights, so many blocks of so many bytes are part of a fingerprint


def key_of(parameters: Mapping[str, Array], *settings: object) -> str:
    """Digest weights and settings to a key: equal only if all of them are."""

    def digest(array: Array) -> bytes:
        return hashlib.sha256(np.ascontiguousarray(array).data).digest()

    whole = hashlib.sha256(repr(settings).encode())
    with ThreadPoolExecutor(thread_count()) as pool:
        for (path, array), part in zip(parameters.items(), pool.map(digest, parameters.values()), strict=True):
            whole.update(f"{path} {array.shape} ".encode() + part)
    return whole.hexdigest()


def fingerprint(name: str, files: Iterable[Path]) -> str:
    """A model's name, and a digest of its weights: the size of each file and BLOCKS evenly spread parts of it.

    files: those that were read to open the model, in an order that is always the same.
    """
    weights = hashlib.blake2b(digest_size=8)
    for path in files:
        if path.suffix in TENSOR_ENDINGS:
            with path.open("rb") as file:
                size = os.fstat(file.fileno()).st_size
                weights.update(size.to_bytes(8, "little"))
                for number in range(BLOCKS):
                    file.seek(size * number // BLOCKS)
                    weights.update(file.read(BLOCK))
    # Of a folder the name as it was given: its whole path would say where it lay, and the target of a link is another.
    given = Path(os.path.abspath(os.path.expanduser(name)))
    named = given.name if given.is_dir() else name
    return f"{named.encode('utf-8', 'backslashreplace').decode()} {weights.hexdigest()}"
