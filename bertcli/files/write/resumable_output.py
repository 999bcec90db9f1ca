"""Write a run's output so that it can be resumed: segments beside the file, which are joined into it at the end.

    .v.npy.parts/000017.npz        the arrays that some seconds of work gave, and the state of the run after them
    .v.npy.parts/fingerprint.json  what must be the same for another run to continue: cli/results.py collects it
    .v.npy.parts/lock              held by the process that is at work
    .v.npy.parts/process           its process id

Every file is written under a temporary name, synced and renamed (atomic.py): a file under its final name is complete,
and a resumed run begins after the segments that it finds. The result is written in the same way; if it is a link, its
target is replaced. Of a finished run nothing is noted: --resume computes it again.
"""

import errno
import io
import json
import logging
import os
import shutil
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bertcli.errors import BertcliError
from bertcli.files.files_beside import names_beside, parts_folder
from bertcli.files.formats import ERRORS, SETTINGS_FILE
from bertcli.files.write.atomic import replacing, writing
from bertcli.platforms import sync_folder

if TYPE_CHECKING:
    from filelock import BaseFileLock

logger = logging.getLogger("bertcli")

State = dict[str, Any]
Fingerprint = dict[str, Any]
LINES = "lines"  # the array that holds records, or the rows of a table, as lines
LENGTHS = "lengths"  # the array that says how many rows of the others, or entries, each text has
PROGRESS = "progress"  # the array that holds Kept in JSON
SHORTEST_SEGMENT, LONGEST_SEGMENT = 1.0, 30.0  # seconds: a hundredth of the time so far, within these limits
LARGEST_SEGMENT = 1 << 23  # bytes: a segment is in memory until it is written
WORTH_KEEPING = 10.0  # seconds of work from which segments are kept after an error even without --resume
HOLDER = "process"  # the file that holds the id of the process at work: on Windows nobody else can read a held lock
LOCK_TIMEOUT = 0.2  # seconds: who has just finished may still be removing the lock
WITHOUT_LOCKS = (errno.ENOLCK, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EINVAL)  # errors of a file system without locks


class Kept(NamedTuple):
    """The segments on disk: their number, the state of the run after them, and the rows of each array in them."""

    number: int = 0
    state: State | None = None
    rows: Mapping[str, int] = {}


class ResumableOutput:
    """`with ResumableOutput(file) as segments: … with segments.result() as stream: …`.

    Without a result the file stays as it was.

    A run calls `add(arrays, state)` after each block of work, and at the end writes what `rows(name)` gives.
    fingerprint: a function of what must be the same for another run to continue, called once there is something to
    keep; None if the texts cannot be read again. resume: continue where an earlier run stopped; `state` is then the
    state of its last segment. Errors: BertcliError if another process is writing the same file, if the fingerprint
    differs, and for disk errors.
    """

    def __init__(self, file: str, fingerprint: Callable[[], Fingerprint] | None = None, resume: bool = False) -> None:
        self.file = file
        self._path = Path(os.path.realpath(file))
        self._folder = parts_folder(self._path)
        self._beside = names_beside(Path(file).suffix)
        self._fingerprint = fingerprint
        self._resume = resume  # or, once it has begun, this run continues an earlier one unasked
        self._kept = Kept()
        self._held: list[tuple[dict[str, Any], State]] = []  # the next segment's blocks, each with the state after it
        self._bytes = 0  # of these
        self._published = False
        self._lock: BaseFileLock | None = None

    def __enter__(self) -> "ResumableOutput":
        self._begun = self._written = time.monotonic()
        try:  # from the first, since a signal may end the run anywhere
            with writing(self.file):
                self._lock = _lock_in(self._folder)
                if not _acquired(self._lock, self._folder, self.file):
                    self._lock = None
                if self._lock is not None:
                    with open(self._folder / HOLDER, "wb") as stream:
                        stream.write(str(os.getpid()).encode())
                self._begin()
        except BaseException:
            self._leave()
            raise
        return self

    @property
    def state(self) -> State | None:
        """The state last passed to `add`, perhaps by an earlier run; None at the beginning."""
        return self._held[-1][1] if self._held else self._kept.state

    def add(self, arrays: Mapping[str, Any], state: State) -> None:
        """Append rows to each array (NumPy's, or bytes), and note the state after them; at times write a segment."""
        block = {name: np.frombuffer(x, np.uint8) if isinstance(x, bytes) else x for name, x in arrays.items()}
        self._held.append((block, state))
        now = time.monotonic()
        due = now - self._written >= min(max(SHORTEST_SEGMENT, (now - self._begun) / 100), LONGEST_SEGMENT)
        self._bytes += sum(rows.nbytes for rows in block.values())
        if self._bytes >= LARGEST_SEGMENT or (due and self._fingerprint):
            self._write_segment()

    def row_count(self, name: str) -> int:
        """Count the rows of an array so far."""
        return self._kept.rows.get(name, 0) + sum(len(block.get(name, ())) for block, _ in self._held)

    def rows(self, name: str) -> Iterator[NDArray[Any]]:
        """Yield the rows of an array, some at a time."""
        for number in range(self._kept.number):
            with np.load(self._segment(number), allow_pickle=False) as segment:
                rows = segment[name]
            yield rows
        yield from (block[name] for block, _ in self._held)

    def byte_blocks(self, name: str) -> Iterator[bytes]:
        """Yield the bytes of an array, some at a time."""
        return (rows.tobytes() for rows in self.rows(name))

    def lines(self) -> Iterator[bytes]:
        """Yield the lines of the array LINES, with their ends."""
        return (line for block in self.byte_blocks(LINES) for line in io.BytesIO(block))

    @contextmanager
    def result(self, beside: bytes | None = None) -> Iterator[IO[bytes]]:
        """`with segments.result() as stream:` — what is written to it becomes the file when the block succeeds.

        Errors that an array cannot hold come to v.npy.errors.jsonl, what is to stand `beside` the file to
        v.npy.settings.json. All is on the disk before any of it has its name, so a full disk changes nothing. The
        settings of an earlier result are removed before its file is replaced, so that no file stands beside the
        settings of another. Nothing is removed beside a file whose format has room for both.
        """
        errors, settings = (self._path.with_name(f"{self._path.name}.{name}") for name in (ERRORS, SETTINGS_FILE))
        with writing(self.file), ExitStack() as at_end:
            if beside:
                noted = at_end.enter_context(replacing(settings, self._folder / "settings"))
                noted.write(beside)
                _synced(noted)
            with replacing(self._path, self._folder / "result") as stream:
                yield stream
                _synced(stream)
                if self.row_count(ERRORS):
                    with replacing(errors, self._folder / "new") as listed:
                        listed.writelines(self.byte_blocks(ERRORS))
                if SETTINGS_FILE in self._beside:
                    settings.unlink(missing_ok=True)
        with writing(self.file):
            if ERRORS in self._beside and not self.row_count(ERRORS):
                errors.unlink(missing_ok=True)  # of an earlier result
            sync_folder(self._path.parent)  # before the segments go
        self._published = True

    @contextmanager
    def folder_result(self) -> Iterator[Path]:
        """`with segments.folder_result() as folder:` — its files become a folder of the name when the block succeeds.

        There may be an empty folder of this name.
        """
        draft = self._folder / "result"
        with writing(self.file):
            draft.mkdir()
            try:
                yield draft
                files = [path for path in draft.rglob("*") if path.is_file()]
                for path in files:
                    with path.open("r+b") as stream:
                        os.fsync(stream.fileno())
            except BaseException:
                shutil.rmtree(draft, ignore_errors=True)
                raise
            if self._path.is_dir():
                # Not over an empty folder on Windows.
                self._path.rmdir()
            os.replace(draft, self._path)
            sync_folder(self._path.parent)
        self._published = True

    def __exit__(self, *error: object) -> None:
        try:
            if not self._published and self._keep():
                if self.state:
                    done = _are(self.state.get("texts", 0))
                    logger.info("%s done: repeat the command to continue.", done)
                return
            with suppress(OSError):  # the result is in its place, or an error is on its way
                self._remove(0)
        finally:
            self._leave()

    # -------------------------------------------------------------------------------------------- beginning and end

    def _begin(self) -> None:
        """Count the segments of an earlier run to continue, or remove them if this run does not continue it.

        A command that is repeated as it was continues, also without --resume: the finished texts are the same.
        """
        earlier = None
        with suppress(FileNotFoundError):
            earlier = json.loads((self._folder / "fingerprint.json").read_bytes())
        if earlier and self._resume:
            self._check(earlier)
            self._count()
        elif earlier and self._fingerprint is not None and (why := self._changed(earlier)) is None:
            self._resume = True
            self._count()
        elif earlier:
            because = f": {why}" if self._fingerprint is not None else ""
            logger.info("discarding the progress of an unfinished run of %s%s.", self.file, because)
        if self._kept.number:
            count = (self.state or {}).get("texts", 0)
            logger.info("continuing an unfinished run of %s, of which %s done.", self.file, _are(count))
        elif self._resume:
            logger.info("there is no progress of an earlier run of %s: starting at the beginning.", self.file)
        self._remove(self._kept.number)

    def _leave(self) -> None:
        """Release the lock, and remove the folder if it is empty otherwise."""
        lock = self._folder / "lock"
        held_open = False
        with suppress(OSError):
            if self._lock is not None and not self._lock.is_locked:
                # A signal came between the making of the lock's file and the locking; or another process holds it.
                self._lock.acquire(timeout=0)
            if self._lock is not None and {*os.listdir(self._folder)} <= {"lock", HOLDER}:
                (self._folder / HOLDER).unlink(missing_ok=True)
                try:
                    lock.unlink()
                except PermissionError:
                    held_open = True  # on Windows an open file stays
        if self._lock is not None:
            self._lock.release(force=True)
        with suppress(OSError):
            if held_open:
                lock.unlink()  # which fails if another process holds it by now
            self._folder.rmdir()

    def _changed(self, earlier: Fingerprint) -> str | None:
        """Describe how this run differs from an earlier one; None if it does not."""
        assert self._fingerprint is not None
        new = json.loads(json.dumps(self._fingerprint()))
        if new.get("--keep-going"):
            earlier = {**earlier, "--keep-going": True}  # so far it would have made no difference
        return difference(earlier, new)

    def _check(self, earlier: Fingerprint) -> None:
        if why := self._changed(earlier):
            raise BertcliError(f"Cannot resume {self.file}: {why}; restore that, or leave out --resume to start over.")

    def _count(self) -> None:
        with suppress(FileNotFoundError):  # the first one that is not there
            while True:
                with np.load(self._segment(self._kept.number), allow_pickle=False) as segment:
                    kept = Kept(*json.loads(segment[PROGRESS].tobytes()))
                self._kept = kept

    def _write_segment(self) -> None:
        blocks = [block for block, _ in self._held]
        kept = Kept(self._kept.number + 1, self.state, {name: self.row_count(name) for name in blocks[0]})
        fingerprint = self._folder / "fingerprint.json"
        with writing(self.file):
            if self._fingerprint and not fingerprint.exists():
                with replacing(fingerprint, self._folder / "new") as stream:
                    stream.write(json.dumps(self._fingerprint()).encode())
            arrays: dict[str, Any] = {name: np.concatenate([block[name] for block in blocks]) for name in blocks[0]}
            arrays[PROGRESS] = np.frombuffer(json.dumps(kept).encode(), np.uint8)
            with replacing(self._segment(self._kept.number), self._folder / "new") as stream:
                np.savez(stream, **arrays)
        self._held = []  # first: after a Ctrl-C here nothing is there twice
        self._kept = kept
        self._bytes, self._written = 0, time.monotonic()

    def _keep(self) -> bool:
        """Without a result, write the last segment if the run was long enough; true if there is something to resume."""
        if self._fingerprint is None or not (self._resume or time.monotonic() - self._begun > WORTH_KEEPING):
            return False
        if self._held:
            with suppress(BertcliError):  # a full disk: the segments before it stand
                self._write_segment()
        return self._kept.number > 0

    def _remove(self, count: int) -> None:
        """Remove all but the first `count` segments, newest first, so a crash leaves a prefix."""
        kept = {"lock", HOLDER, *(self._segment(number).name for number in range(count))}
        if count:
            kept.add("fingerprint.json")
        for path in sorted(self._folder.iterdir(), reverse=True):
            if path.name not in kept:
                shutil.rmtree(path) if path.is_dir() else path.unlink()

    def _segment(self, number: int) -> Path:
        return self._folder / f"{number:06}.npz"


def _synced(stream: IO[bytes]) -> None:
    """Bring what was written to the disk. Errors: OSError."""
    stream.flush()
    os.fsync(stream.fileno())


def _are(count: int) -> str:
    return "1 text is" if count == 1 else f"{count:,} texts are"


def _lock_in(folder: Path) -> "BaseFileLock":
    """Return the lock of a folder, which nobody holds by that."""
    from filelock import FileLock

    return FileLock(folder / "lock", timeout=LOCK_TIMEOUT, poll_interval=LOCK_TIMEOUT / 4, thread_local=False)


def _acquired(lock: "BaseFileLock", folder: Path, target: str) -> bool:
    """Make the lock's folder and lock it; the lock ends with the process, however that ends.

    False on a file system without locks. Errors: BertcliError naming the process that holds it, OSError.
    """
    from filelock import Timeout

    while True:
        folder.mkdir(exist_ok=True)
        try:
            with warnings.catch_warnings(action="ignore"):  # of a file system without locks
                lock.acquire()
        except FileNotFoundError:
            continue  # the process that held it has just removed the folder
        except Timeout:
            number = _content(folder / HOLDER)
            who = f"Process {number}" if number.isdigit() else "Another process"
            raise BertcliError(
                f"{who} is writing {target} right now: wait for it, or choose another --output."
            ) from None
        except OSError as error:
            if error.errno not in WITHOUT_LOCKS:
                raise
            return False
        return True


def _content(path: Path) -> str:
    """Read a small text file; "" if it is missing."""
    try:
        return path.read_text(encoding="ascii", errors="replace")
    except OSError:
        return ""


# ------------------------------------------------------------------------------------------------- the fingerprint


def difference(old: Fingerprint, new: Fingerprint) -> str | None:
    """Describe the first difference between two runs, in order of the keys; None if they are equal."""
    for key in sorted(old.keys() | new.keys()):
        if old.get(key) != new.get(key):
            was, now = ("not given" if run.get(key) is None else run[key] for run in (old, new))
            return f"the {key} has changed" if key in ("input", "model") else f"{key} was {was} and is now {now}"
    return None
