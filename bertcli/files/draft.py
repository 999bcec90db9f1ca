"""A result on its way to its file: written beside its place, renamed when it is whole, resumable in between.

    .v.npy.part    what is written so far; further parts, such as .v.npy.1.part, where a format needs them
    .v.npy.state   how much of the parts is safely on disk, with checksums, and of which run: replaced by a rename, so
                   always whole
    .v.npy.lock    held by the process that is at work; its content is that process's number

From time to time the parts are brought to the disk, and after them the state. Whatever happens in between, the state
says what is safe: another run truncates the parts to that and continues from there, unless a checksum says that they
are damaged. A link, hard or symbolic, or a pipe in any of these places is never followed or waited for; a link in the
result's place is followed (the file that it points to is replaced).
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any

from bertcli.errors import BertcliError
from bertcli.files.part import Lock, Part, checksum, is_own, mode_of, sync_folder, writing

logger = logging.getLogger("bertcli")

State = dict[str, Any]
Fingerprint = dict[str, Any]
ERRORS = "errors.jsonl"  # the part that lists texts that could not be used
TEXTS = "texts"  # the part that holds texts until they are written in columns
PARTS = ("", ERRORS, TEXTS, *"0123456")  # "" is the result; arrays have numbers
SHORTEST, LONGEST = 1.0, 30.0  # seconds between states: a hundredth of the time so far, within these limits
KEPT = 10.0  # seconds of work from which results are kept after an error even without --resume
MODEL_FILES = (".json", ".txt", ".safetensors", ".bin", ".model")
FOLDERS_DEEP = 2  # a checkpoint's own folder, and those of sentence-transformers modules in it


def check_output(file: str, endings: tuple[str, ...]) -> str:
    """The ending of an output file in lower case; BertcliError if it is not one of `endings` or cannot be written."""
    ending = Path(file).suffix.lower()
    if ending not in endings:
        several = ending == ".npy" and ".npz" in endings
        why = " A .npy file holds one array, but this result has several." if several else ""
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
    return ending


class Draft:
    """`with Draft(file) as draft:` — write to `draft.part()`, then `publish`; without that, the file stays as it was.

    A run that can be resumed also calls `step(state)` after each block. fingerprint: a function of what must be the
    same for another run to continue, called once there is something to keep; None if the texts cannot be read again.
    resume: continue where an earlier run stopped; `state` is then what was last passed to `step`, parts have their
    sizes of that time, and `whole` says that nothing was left but the renaming, which is done now. Errors: BertcliError
    if another process is writing the same file, if the fingerprint differs, and for disk errors.
    """

    def __init__(self, file: str, fingerprint: Callable[[], Fingerprint] | None = None, resume: bool = False) -> None:
        self.file = file
        self.path = Path(os.path.realpath(file))
        self.state: State | None = None
        self.whole = False
        self._fingerprint = fingerprint
        self._resume = resume
        self._saved: dict[str, Any] | None = None  # the state file's content
        self._parts: dict[str, Part] = {}
        self._pending: dict[str, Any] | None = None  # what the next state file will say, but for the fingerprint
        self._published = False

    def __enter__(self) -> Draft:
        self._begun = self._synced = time.monotonic()
        with writing(self.file):
            self._lock = Lock(self._beside("lock"), self.file)
            try:
                self._begin()
            except BaseException:
                self._lock.release(remove=self._saved is None)
                raise
        return self

    def part(self, name: str = "", head: int = 0) -> Part:
        """The part of this name, one of PARTS, with as many bytes as an earlier run safely wrote; `head`: see Part."""
        assert name in PARTS
        if name not in self._parts:
            size = self._saved["sizes"].get(name, 0) if self._saved else 0
            sum = self._saved["checksums"][name][1] if self._saved and size else 0
            self._parts[name] = Part(self._part_path(name), self.file, size, mode_of(self.path), head, sum)
        return self._parts[name]

    def step(self, state: State) -> None:
        """Note that a block is written, up to `state`; from time to time this is brought to the disk."""
        self._pending = {**_safe(self._parts), "state": state, "whole": False}
        now = time.monotonic()
        if now - self._synced >= min(max(SHORTEST, (now - self._begun) / 100), LONGEST):
            self._save_pending()
            self._synced = time.monotonic()

    def publish(self) -> None:
        """Give the result its name, and the list of errors its own: v.npy.errors.jsonl, or none where it is empty."""
        published = {name: part for name, part in self._parts.items() if name in ("", ERRORS)}
        with writing(self.file):
            for part in self._parts.values():
                part.seal()
            if self._saved:  # else the run was short and can simply be repeated
                state = self._pending and self._pending["state"]
                self._save({**self._saved, **_safe(published), "state": state, "whole": True})
            self._rename({name: part.size for name, part in published.items()})
        self._published = True

    # -------------------------------------------------------------------------------------------- beginning and end

    def _begin(self) -> None:
        self._saved = _read_state(self._beside("state"))
        if self._saved and self._resume:
            self._check(self._saved["fingerprint"])
            if self._is_there(self._saved):
                self.state, self.whole = self._saved["state"], self._saved["whole"]
                self._pending = None if self.state is None else self._saved
                if self.whole:
                    self._rename(self._saved["sizes"])
                    self._published = True
                return
            logger.warning("what an earlier run left of %s is damaged, so this one starts over.", self.file)
        elif self._saved:
            logger.info("replacing what an unfinished run left of %s (--resume would continue it).", self.file)
        elif self._resume and self.path.exists():
            logger.info("there is no unfinished run of %s to resume, so this one starts over.", self.file)
        self._remove()

    def _check(self, old: Fingerprint) -> None:
        assert self._fingerprint is not None
        new = json.loads(json.dumps(self._fingerprint()))
        for key in sorted(old.keys() | new.keys()):
            gone_on = key == "--keep-going" and new[key]  # so far it would have made no difference
            if old.get(key) != new.get(key) and not gone_on:
                raise BertcliError(
                    f"Cannot resume {self.file}: {_difference(key, old.get(key), new.get(key))}; restore that, or "
                    "leave out --resume to start over."
                )

    def _is_there(self, saved: dict[str, Any]) -> bool:
        """Whether every part is what the state says; those of a whole result may have their names already."""
        for name, size in saved["sizes"].items():
            path = self._part_path(name)
            if saved["whole"] and not path.exists():
                path = self._place(name)
                if name and not size:
                    continue
            head, known = saved["checksums"][name]
            found = _status(path)
            if found is None or found.st_size < size or known not in (None, checksum(path, head, size)):
                return False
        return True

    def _rename(self, sizes: dict[str, int]) -> None:
        for name, size in sizes.items():
            if name and not size:
                self._place(name).unlink(missing_ok=True)  # of an earlier result
            else:
                with suppress(FileNotFoundError):  # already renamed, before a crash
                    os.replace(self._part_path(name), self._place(name))
        sync_folder(self.path.parent)

    def _save_pending(self) -> None:
        """Bring the parts to the disk, then the state: never the other way round."""
        if self._pending is None or self._fingerprint is None:
            return
        with writing(self.file):
            for part in self._parts.values():
                part.sync()
            if self._saved is None:
                sync_folder(self.path.parent)
            known = self._saved["fingerprint"] if self._saved else self._fingerprint()
            self._save({**self._pending, "fingerprint": known})

    def _save(self, saved: dict[str, Any]) -> None:
        new = Part(self._beside("state.new"), self.file)
        try:
            new.write(json.dumps({**saved, "sum": _sum(saved)}).encode())
            new.seal()
        finally:
            new.close()
        os.replace(new.path, self._beside("state"))
        self._saved = saved

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        kept = not self._published and self._keep()
        for part in self._parts.values():
            part.close()
        if kept and self._saved:
            texts = self._saved["state"].get("texts", 0)
            logger.info("%s texts are done and kept: repeat the command with --resume to continue.", f"{texts:,}")
        with suppress(OSError):  # the result is in its place, or an error is on its way
            if not kept:
                self._remove()
            self._lock.release(remove=not kept)

    def _keep(self) -> bool:
        """Save what is complete, if it is worth it; true if there is something to resume."""
        if self._fingerprint is None or not (self._resume or time.monotonic() - self._begun > KEPT):
            return False
        with suppress(BertcliError):  # a full disk: the state as it was stands
            self._save_pending()
        return self._saved is not None

    def _remove(self) -> None:
        """The state first: without it, whatever else is left counts for nothing."""
        for path in (self._beside("state"), self._beside("state.new"), *map(self._part_path, PARTS)):
            if os.path.lexists(path):
                path.unlink()
        self._saved = None

    def _part_path(self, name: str) -> Path:
        return self._beside(f"{name}.part" if name else "part")

    def _beside(self, ending: str) -> Path:
        return self.path.with_name(f".{self.path.name}.{ending}")

    def _place(self, name: str) -> Path:
        return self.path.with_name(f"{self.path.name}.{name}" if name else self.path.name)


def save(file: str, data: bytes) -> None:
    """Write a whole file; on an error what was there stays."""
    with Draft(file) as draft:
        draft.part().write(data)
        draft.publish()


def _safe(parts: Mapping[str, Part]) -> dict[str, Any]:
    """What a state says of parts: the size of each, how many of its bytes the checksum leaves out, and that."""
    return {
        "sizes": {name: part.size for name, part in parts.items()},
        "checksums": {name: (part.head, part.checksum) for name, part in parts.items()},
    }


def _read_state(path: Path) -> dict[str, Any] | None:
    """A state file's content; None if there is none, or what is there is not as we wrote it, of which its sum tells."""
    if _status(path) is None:
        return None
    try:
        saved = json.loads(path.read_bytes())
        whole = isinstance(saved, dict) and saved.pop("sum", None) == _sum(saved)
    except (ValueError, RecursionError):  # no JSON, or endless nesting
        return None
    return saved if whole and saved["sizes"].keys() <= set(PARTS) else None


def _sum(saved: dict[str, Any]) -> str:
    return hashlib.blake2b(json.dumps(saved).encode(), digest_size=16).hexdigest()


def _status(path: Path) -> os.stat_result | None:
    """The status of a file that is nothing but a file of its own; None for anything else, or nothing."""
    with suppress(FileNotFoundError):
        found = os.lstat(path)
        return found if is_own(found) else None
    return None


# ------------------------------------------------------------------------------------------------- the fingerprint


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


def _difference(key: str, old: object, new: object) -> str:
    if key in ("input", "model"):
        return f"the {key} has changed"
    was, now = ("not given" if value is None else value for value in (old, new))
    return f"{key} was {was} and is now {now}"
