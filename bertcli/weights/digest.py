"""Digest weights in memory, with settings, to a key: that of a cached graph, and of the model of a classifier."""

import hashlib
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from bertcli.engine.threads import thread_count
from bertcli.tracing.dispatch import Array


def key_of(parameters: Mapping[str, Array], *settings: object) -> str:
    """Digest weights and settings to a key: equal only if all of them are."""

    def digest(array: Array) -> bytes:
        return hashlib.sha256(np.ascontiguousarray(array).data).digest()

    whole = hashlib.sha256(repr(settings).encode())
    with ThreadPoolExecutor(thread_count()) as pool:
        for (path, array), part in zip(parameters.items(), pool.map(digest, parameters.values()), strict=True):
            whole.update(f"{path} {array.shape} ".encode() + part)
    return whole.hexdigest()
