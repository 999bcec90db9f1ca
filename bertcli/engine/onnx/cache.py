"""Graphs that were made once and are opened in place afterwards, under a folder that may be deleted at any time.

Each model has a folder, named after where its weights lie and the precision; in it is a folder for each graph, named
after the weights, the settings and the versions. When a graph is made, what else lies there for an hour or longer is
removed: graphs of earlier weights or versions, and what a killed process left. The graphs of other models stay.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from tempfile import mkdtemp

import numpy as np

from bertcli.engine.onnx.session import Session
from bertcli.engine.seam import Array
from bertcli.engine.threads import thread_count
from bertcli.errors import BertcliError

VARIABLE = "BERTCLI_CACHE"  # of the environment: another place for the cache
NAME = "model.onnx"
OLD = 3600  # seconds after which another graph of the same model is removed
Make = Callable[[Path], None]  # writes a graph's file, and others beside it


def cache_folder() -> Path:
    """Where graphs are kept: onnx in $BERTCLI_CACHE, or in bertcli in the user's folder for caches."""
    named = os.environ.get(VARIABLE)
    if named:
        return Path(named).expanduser() / "onnx"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "bertcli" / "onnx"


def cache_size() -> int:
    """Bytes of all graphs that are kept."""
    return sum(file.stat().st_size for file in cache_folder().rglob("*") if file.is_file())


def key_of(parameters: Mapping[str, Array], *settings: object) -> str:
    """A name for the graph of these weights, made with these settings: equal only if all of them are."""

    def digest(array: Array) -> bytes:
        return hashlib.sha256(np.ascontiguousarray(array).data).digest()

    whole = hashlib.sha256(repr(settings).encode())
    with ThreadPoolExecutor(thread_count()) as pool:
        for (path, array), found in zip(parameters.items(), pool.map(digest, parameters.values()), strict=True):
            whole.update(f"{path} {array.shape} ".encode() + found)
    return whole.hexdigest()


def open_cached(model: str, key: str, make: Make, device: str) -> Session:
    """The graph of this key, made if it is not there.

    Safe with several processes: a graph is made under another name and renamed, and the first one stays. Errors:
    BertcliError, also for a cache that cannot be written.
    """
    place = cache_folder() / model / key
    try:
        if not place.is_dir():
            _keep(place, make)
    except OSError as error:
        raise BertcliError(
            f"ONNX Runtime's graph cannot be written to {place} ({error.strerror or error}): make room, or name "
            f"another folder for it ({VARIABLE})."
        ) from None
    return Session(place / NAME, device)


def _keep(place: Path, make: Make) -> None:
    """Make a graph beside its place and move it there, unless another process has put one there in the meantime."""
    place.parent.mkdir(parents=True, exist_ok=True)
    _remove_old(place.parent)
    draft = Path(mkdtemp(prefix=".", dir=place.parent))
    try:
        made = draft / "made"
        made.mkdir()
        make(made / NAME)
        for part in made.iterdir():
            with part.open("r+b") as written:
                os.fsync(written.fileno())
        try:
            os.rename(made, place)
        except OSError:
            if not place.is_dir():  # no other process was faster
                raise
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def _remove_old(folder: Path) -> None:
    for other in folder.iterdir() if not folder.is_symlink() else ():  # what it leads to may be anyone's
        with suppress(OSError):
            if time.time() - other.stat().st_mtime > OLD:
                shutil.rmtree(other)
