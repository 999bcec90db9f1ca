"""Graphs that were made once and are opened in place afterwards, under a folder that may be deleted at any time.

Each model has a folder, named after where its weights lie and the precision; in it is a folder for each graph, named
after the weights, the settings and the versions. When a graph is made, what else lies there for an hour or longer is
removed: graphs of earlier weights or versions, and what a killed process left. The graphs of other models stay.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import shutil
import time
import zlib
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory, gettempdir, mkdtemp

import numpy as np

from bertcli.engine.array import Array
from bertcli.engine.onnx.session import Session
from bertcli.engine.threads import thread_count
from bertcli.errors import BertcliError

logger = logging.getLogger("bertcli")

VARIABLE = "BERTCLI_CACHE"  # of the environment: another place for the cache
NAME = "model.onnx"
CHECKSUMS = "checksums.json"
BLOCK = 1 << 24  # bytes of a file that have one checksum
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
    """The graph of this key, made if it is not there; again if what is there is not what was written.

    Every file is compared with its checksums first: of 345 MB that took 0.1 to 0.16 s of the 1.2 s until the first
    result, on two cores. Safe with several processes: a graph is made under another name and renamed, and the first one
    stays. If the cache cannot be written, that is said, and the graph is made for this process alone.
    Errors: BertcliError.
    """
    place = cache_folder() / model / key
    try:
        number = _number(place)  # first: what another process puts there from now on is not taken for damaged
        if not _is_whole(place):
            if number is not None:
                logger.info("the graph in %s is damaged and is made again.", place)
            _replace(place, number, make)
    except OSError as error:
        reason = error.strerror or error
        logger.warning("no graph can be kept in %s (%s): it is made anew each time; see %s.", place, reason, VARIABLE)
        return _made_for_now(make, device)
    return Session(place / NAME, device)


def _made_for_now(make: Make, device: str) -> Session:
    with TemporaryDirectory(prefix="bertcli.", ignore_cleanup_errors=True) as folder:
        try:
            make(Path(folder) / NAME)
        except OSError as error:
            raise BertcliError(
                f"ONNX Runtime's graph cannot be written to {gettempdir()} either ({error.strerror or error}): make "
                f"room there or in the cache, or name another folder for the cache ({VARIABLE})."
            ) from None
        return Session(Path(folder) / NAME, device)


def _is_whole(place: Path) -> bool:
    """Whether the files of a graph are what was written, damage of the same length included."""
    try:
        if not (place / CHECKSUMS).is_file():  # a pipe would be waited for
            return False
        with (place / CHECKSUMS).open("rb") as file:
            known = file.read(BLOCK)
        blocks = sum(file.stat().st_size for file in place.iterdir()) / BLOCK  # each has more than a character in it
        return blocks < len(known) and known == _checksums(place)
    except FileNotFoundError:
        return False


def _checksums(folder: Path) -> bytes:
    """The CRC-32 of every block of every file but that of the checksums, as JSON with the names in order."""

    def checksum(file: Path, start: int) -> int:
        with file.open("rb") as opened:
            opened.seek(start)
            return zlib.crc32(opened.read(BLOCK))

    with ThreadPoolExecutor(thread_count()) as pool:
        found = {
            file.name: [pool.submit(checksum, file, start) for start in range(0, file.stat().st_size, BLOCK)]
            for file in folder.iterdir()
            if file.name != CHECKSUMS
        }
        sums = {name: [one.result() for one in blocks] for name, blocks in found.items()}
    return json.dumps(sums, sort_keys=True).encode()


def _replace(place: Path, damaged: int | None, make: Make) -> None:
    """Make a graph beside its place and move it there, unless another process has put one there in the meantime.

    `damaged` is the number of the folder that it takes the place of, if there is one.
    """
    place.parent.mkdir(parents=True, exist_ok=True)
    _remove_old(place.parent)
    draft = Path(mkdtemp(prefix=".", dir=place.parent))
    made = draft / "made"
    try:
        made.mkdir()
        make(made / NAME)
        (made / CHECKSUMS).write_bytes(_checksums(made))
        for part in made.iterdir():
            with part.open("r+b") as written:
                os.fsync(written.fileno())
        if damaged is not None and _number(place) == damaged:
            with suppress(FileNotFoundError):  # another process was faster
                os.rename(place, draft / "damaged")
        with suppress(OSError):  # here, too
            os.rename(made, place)
        if not place.is_dir():
            raise OSError(f"{place} cannot be made")
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def _number(place: Path) -> int | None:
    """The file system's number of a folder, which another one in its place does not have; None if there is none."""
    try:
        return place.stat().st_ino
    except FileNotFoundError:
        return None


def _remove_old(folder: Path) -> None:
    for other in folder.iterdir() if not folder.is_symlink() else ():  # what it leads to may be anyone's
        with suppress(OSError):
            if time.time() - other.stat().st_mtime > OLD:
                shutil.rmtree(other)
