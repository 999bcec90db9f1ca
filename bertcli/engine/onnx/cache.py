"""Graphs that were made once and are opened in place afterwards: a folder for each, under one that may be deleted."""

from __future__ import annotations

import hashlib
import logging
import os
import shutil
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory, mkdtemp

import numpy as np

from bertcli.engine.array import Array
from bertcli.engine.onnx.session import Session
from bertcli.engine.threads import thread_count
from bertcli.errors import BertcliError

logger = logging.getLogger("bertcli")

VARIABLE = "BERTCLI_CACHE"  # of the environment: another place for the cache
NAME = "model.onnx"
ABANDONED = 24 * 3600  # seconds after which what a killed process left unfinished is removed
Make = Callable[[Path], None]  # writes a graph's file, and others beside it


def cache_folder() -> Path:
    """Where graphs are kept: $BERTCLI_CACHE, else bertcli in the user's folder for caches."""
    named = os.environ.get(VARIABLE)
    if named:
        return Path(named).expanduser()
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "bertcli"


def key_of(parameters: Mapping[str, Array], *settings: object) -> str:
    """A name for the graph of these weights, made with these settings: equal only if all of them are."""

    def digest(array: Array) -> bytes:
        return hashlib.sha256(np.ascontiguousarray(array).data).digest()

    whole = hashlib.sha256(repr(settings).encode())
    with ThreadPoolExecutor(thread_count()) as pool:
        for path, array, found in zip(
            parameters, parameters.values(), pool.map(digest, parameters.values()), strict=True
        ):
            whole.update(f"{path} {array.shape} ".encode() + found)
    return whole.hexdigest()


def open_cached(key: str, make: Make, device: str) -> Session:
    """The graph of this key, made if it is not there; again if what is there cannot be opened.

    Safe with several processes: a graph is made under another name and renamed, and the first one stays. If the cache
    cannot be written, that is said, and the graph is made for this process alone. Errors: BertcliError.
    """
    place = cache_folder() / "onnx" / key
    if place.is_dir():
        try:
            return Session(place / NAME, device)
        except BertcliError:
            logger.info("the graph in %s could not be opened and is made again.", place)
    try:
        _replace(place, make)
    except OSError as error:
        reason = error.strerror or error
        logger.warning("no graph can be kept in %s (%s): it is made anew each time; see %s.", place, reason, VARIABLE)
        with TemporaryDirectory(prefix="bertcli.", ignore_cleanup_errors=True) as folder:
            make(Path(folder) / NAME)
            return Session(Path(folder) / NAME, device)
    return Session(place / NAME, device)


def _replace(place: Path, make: Make) -> None:
    """Make a graph beside its place and move it there, unless a usable one has come there in the meantime."""
    place.parent.mkdir(parents=True, exist_ok=True)
    _remove_abandoned(place.parent)
    before = place.stat().st_ino if place.exists() else None
    draft = Path(mkdtemp(prefix=".", dir=place.parent))
    try:
        make(draft / NAME)
        for part in draft.iterdir():
            with part.open("rb") as written:
                os.fsync(written.fileno())
        if before is not None and place.exists() and place.stat().st_ino == before:
            os.rename(place, draft / "damaged")
        with suppress(OSError):  # another process was faster
            os.rename(draft, place)
        if not place.is_dir():
            raise OSError(f"{place} cannot be made")
        shutil.rmtree(place / "damaged", ignore_errors=True)
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def _remove_abandoned(folder: Path) -> None:
    for draft in folder.glob(".*"):
        with suppress(OSError):
            if time.time() - draft.stat().st_mtime > ABANDONED:
                shutil.rmtree(draft)
