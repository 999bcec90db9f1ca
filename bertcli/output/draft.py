"""An unfinished result: parts next to its final place, a journal of what is safely stored, a rename at the end.

Every few blocks the parts are flushed to disk and then their sizes to the journal. Whatever happens, the last complete
line of the journal says what is safe: another run truncates the parts to it and continues from there.
"""

from __future__ import annotations

import json
import logging
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Any

from bertcli.errors import BertcliError
from bertcli.output.files import cannot_write
from bertcli.output.fingerprint import Fingerprint, difference
from bertcli.output.journal import Journal
from bertcli.output.part import Part, mode_of, sync_folder

logger = logging.getLogger("bertcli")

State = dict[str, Any]
SHORTEST, LONGEST = 1.0, 30.0  # seconds between journal lines: a hundredth of the time so far, within these limits
KEPT = 10.0  # seconds of work from which results are kept after an error even without --resume
SIDES = ("errors", "offsets", "scales", "texts", "whole")  # parts that a format may need besides the first


class Draft:
    """`with Draft(…) as draft:` — parts to write to, `step(state)` after each block, `publish` when all is written.

    file: the result's place. fingerprint: what must be the same for another run to resume, called when there is
    something to keep; None if the texts cannot be read again. resume: continue where the journal of an earlier run
    ends; `state` is then what was last passed to `step`, and parts have their sizes of that time. Errors: BertcliError
    if another process is writing the same file, if the fingerprint differs, and for disk errors.
    """

    def __init__(self, file: str, fingerprint: Callable[[], Fingerprint] | None, resume: bool) -> None:
        self.file = file
        self.path = Path(os.path.realpath(file))  # a link is followed, not replaced
        self.state: State | None = None
        self._fingerprint = fingerprint
        self._resume = resume
        self._parts: dict[str, Part] = {}
        self._last: State = {}
        self._pending: tuple[State, dict[str, int]] | None = None
        self._published = False

    def __enter__(self) -> Draft:
        with self.failures():
            self._journal = Journal(self._beside("journal"), self.file)
            try:
                self._begin()
            except BaseException:
                if not self._journal.find("fingerprint"):
                    self._journal.remove()
                self._release()
                raise
        self._started = self._saved = time.monotonic()
        return self

    def part(self, name: str = "") -> Part:
        """The part of this name ("" or one of SIDES), truncated to its length in the journal."""
        if name not in self._parts:
            sizes = self._journal.find("sizes") or {}
            with self.failures():
                self._parts[name] = Part(self._beside(f"{name}.part"), sizes.get(name, 0), mode_of(self.path))
        return self._parts[name]

    def step(self, state: State) -> None:
        """Note that a block is written, up to `state`; from time to time this is saved to disk."""
        self._last = state
        self._pending = state, {name: part.size for name, part in self._parts.items()}
        now = time.monotonic()
        if now - self._saved >= min(max(SHORTEST, (now - self._started) / 100), LONGEST):
            with self.failures():
                self._save()
            self._saved = time.monotonic()

    def publish(self, renames: dict[str, str]) -> None:
        """Give parts their final names: `renames` maps a part's name to an ending ("" for the file itself)."""
        with self.failures():
            for part in self._parts.values():
                part.seal()
            if self._journal.find("fingerprint"):  # without a fingerprint the run was short and can simply be repeated
                sizes = {name: self._parts[name].size for name in renames}
                self._journal.append({"state": self._last, "renames": renames, "lengths": sizes})
            for name, ending in renames.items():
                os.replace(self._beside(f"{name}.part"), self._named(ending))
            sync_folder(self.path.parent)
        self._published = True

    @property
    def whole(self) -> bool:
        """Whether an earlier run wrote everything, so that at most the renaming is left to do."""
        return bool(self._journal.find("renames"))

    def publish_again(self) -> None:
        """Finish the renaming that an earlier run did not complete."""
        with self.failures():
            for name, ending in self._journal.find("renames").items():
                with suppress(FileNotFoundError):
                    os.replace(self._beside(f"{name}.part"), self._named(ending))
            sync_folder(self.path.parent)
        self._published = True

    # ------------------------------------------------------------------------------------------ beginning and end

    def _begin(self) -> None:
        old = self._journal.find("fingerprint")
        if old and self._resume:
            self._check(old)
            if self._usable():
                self.state = self._last = self._journal.find("state")
                self._journal.append({"pid": os.getpid()}, sync=False)
                return
            logger.warning("what an earlier run left of %s is damaged, so this one starts over.", self.file)
        elif old:
            logger.info("replacing what an unfinished run left of %s (--resume would continue it).", self.file)
        elif self._resume and self.path.exists():
            logger.info("there is no unfinished run of %s to resume, so this one starts over.", self.file)
        self._journal.clear()
        self._journal.append({"pid": os.getpid()}, sync=False)
        self._remove_parts()

    def _check(self, old: Fingerprint) -> None:
        assert self._fingerprint is not None
        new = json.loads(json.dumps(self._fingerprint()))
        for key in sorted(old.keys() | new.keys()):
            gone_on = key == "--keep-going" and new[key]  # so far it would have made no difference
            if old.get(key) != new.get(key) and not gone_on:
                raise BertcliError(
                    f"Cannot resume {self.file}: {difference(key, old.get(key), new.get(key))}; restore that, or leave "
                    "out --resume to start over."
                )

    def _usable(self) -> bool:
        """Whether every part exists and is long enough."""
        renames, lengths = self._journal.find("renames"), self._journal.find("lengths")
        if renames:
            places = {name: (self._beside(f"{name}.part"), self._named(ending)) for name, ending in renames.items()}
            sizes = {part if part.exists() else named: lengths[name] for name, (part, named) in places.items()}
        else:
            sizes = {self._beside(f"{name}.part"): size for name, size in self._journal.find("sizes").items()}
        return all(path.is_file() and path.stat().st_size >= size for path, size in sizes.items())

    def _save(self) -> None:
        """Save the parts to disk, then a line to the journal: never the other way round."""
        if self._pending is None or self._fingerprint is None:
            return
        state, sizes = self._pending
        for part in self._parts.values():
            part.sync()
        entry = {"state": state, "sizes": sizes}
        if not self._journal.find("fingerprint"):
            entry["fingerprint"] = self._fingerprint()
            sync_folder(self.path.parent)
        self._journal.append(entry)
        self._pending = None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with suppress(OSError):
            if self._published:
                self._remove_parts()
                self._journal.remove()
            elif self._keep():
                texts = self._journal.find("state").get("texts", 0)
                logger.info("%s texts are done and kept: repeat the command with --resume to continue.", f"{texts:,}")
            else:
                self._remove_parts()
                self._journal.remove()
                return
        self._release()

    def _keep(self) -> bool:
        """Save what is complete, if it is worth it; True if there is something to resume."""
        if self._fingerprint is None or not (self._resume or time.monotonic() - self._started > KEPT):
            return False
        with suppress(OSError, BertcliError):  # a full disk: the last line of the journal stands
            if self._pending is not None:
                for name, size in self._pending[1].items():
                    self._parts[name].cut(size)
                self._save()
        return self._journal.find("state") is not None

    def _release(self) -> None:
        for part in self._parts.values():
            part.close()
        with suppress(OSError):
            self._journal.close()

    def _remove_parts(self) -> None:
        for name in ("", *SIDES):
            if name in self._parts:
                self._parts[name].close()
            self._beside(f"{name}.part").unlink(missing_ok=True)

    def _beside(self, ending: str) -> Path:
        return self.path.with_name(f".{self.path.name}.{ending.lstrip('.')}")

    def _named(self, ending: str) -> Path:
        return self.path.with_name(self.path.name + ending)

    @contextmanager
    def failures(self) -> Iterator[None]:
        """For a block that writes: disk errors become BertcliErrors."""
        try:
            yield
        except OSError as error:
            raise cannot_write(self.file, error) from None
