"""Files that are being written: parts, which can be resumed at a size, and locks, which one process may hold."""

from __future__ import annotations

import errno
import os
import stat
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from bertcli.errors import BertcliError

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

TOGETHER = 1 << 20  # bytes gathered before they are written
ONLY_THIS = sum(getattr(os, f"O_{how}", 0) for how in ("NOFOLLOW", "NONBLOCK", "BINARY", "CLOEXEC"))
LOCKED = (errno.EWOULDBLOCK, errno.EAGAIN, errno.EACCES, errno.EDEADLK)  # by another process
FAR = 1 << 40  # offset of the byte to lock on Windows, where a locked byte cannot be read


@contextmanager
def writing(file: str) -> Iterator[None]:
    """For a block that writes: disk errors become BertcliErrors naming the file."""
    try:
        yield
    except OSError as error:
        raise BertcliError(f"Cannot write {file}: {error.strerror or error}; nothing there was changed.") from None


class Part:
    """An unfinished file: it keeps its first `size` bytes and grows at its end, through a buffer.

    checksum: CRC-32 of what follows the `head`, which is written once more when all is known; None if another library
    has written the file. `target` is the result's name, for messages. Errors: BertcliError.
    """

    def __init__(
        self, path: Path, target: str, size: int = 0, mode: int | None = None, head: int = 0, checksum: int | None = 0
    ) -> None:
        self.path = path
        self.head = head
        self.checksum = checksum
        self.size = self._written = size
        self._target = target
        self._mode = mode
        self._waiting: list[bytes] = []
        self._doubtful = False
        with writing(target):
            self._file = os.open(path, os.O_RDWR | os.O_CREAT | ONLY_THIS | (0 if size else os.O_TRUNC), 0o666)
            if size:
                os.ftruncate(self._file, size)
            if mode is not None:
                os.chmod(path, mode | 0o600)  # another run may have to open it

    def write(self, data: bytes) -> None:
        """Write at the end; `size` includes what is still in memory."""
        if self.size >= self.head and self.checksum is not None:
            self.checksum = zlib.crc32(data, self.checksum)
        self._waiting.append(data)
        self.size += len(data)
        if self.size - self._written >= TOGETHER:
            self.flush()

    def write_head(self, data: bytes) -> None:
        """Write the head once more; it is as long as it was."""
        assert len(data) == self.head
        self.flush()
        with writing(self._target):
            self._put(0, data)

    @contextmanager
    def by_path(self) -> Iterator[str]:
        """`with part.by_path() as path:` — for a library that writes the whole file itself."""
        with writing(self._target):
            yield str(self.path)
            self.size = self._written = os.path.getsize(self.path)
        self.checksum = None

    def flush(self) -> None:
        """Pass everything to the system; after a failure this may be tried again."""
        data = b"".join(self._waiting)
        with writing(self._target):
            if self._doubtful or self._written + len(data) != self.size:  # the latter after Ctrl-C during `write`
                raise OSError(errno.EIO, os.strerror(errno.EIO))
            self._put(self._written, data)
        self._waiting = []
        self._written = self.size

    def seal(self) -> None:
        """Save everything to disk, give the file its permissions and close it."""
        self.sync()
        if self._mode is not None:
            with writing(self._target):
                os.chmod(self.path, self._mode)
        self.close()

    def sync(self) -> None:
        """Wait until everything is on disk."""
        self.flush()
        with writing(self._target):
            try:
                os.fsync(self._file)
            except OSError:  # some systems drop what they could not write, and report it only once
                self._doubtful = True
                raise

    def close(self) -> None:
        """Close the file; what is still in memory is dropped."""
        if self._file >= 0:
            file, self._file = self._file, -1
            os.close(file)

    def chunks(self) -> Iterator[bytes]:
        """The file's contents, a piece at a time."""
        self.flush()
        with self.path.open("rb") as file:
            yield from iter(lambda: file.read(TOGETHER), b"")

    def _put(self, offset: int, data: bytes) -> None:
        os.lseek(self._file, offset, os.SEEK_SET)
        put(self._file, data)


def checksum(path: Path, begin: int, end: int) -> int:
    """CRC-32 of these bytes of a file, or of those that there are. Errors: OSError."""
    found = 0
    with path.open("rb") as file:
        for place in range(begin, end, TOGETHER):
            file.seek(place)
            found = zlib.crc32(file.read(min(TOGETHER, end - place)), found)
    return found


class Lock:
    """A file that one process at a time may hold: until `release`, or until the process ends, however it ends.

    Errors: BertcliError naming the process that holds it, OSError.
    """

    def __init__(self, path: Path, target: str) -> None:
        self._path = path
        while True:
            self._file = os.open(path, os.O_RDWR | os.O_CREAT | ONLY_THIS, 0o666)
            if not is_own(os.fstat(self._file)):
                os.close(self._file)
                raise BertcliError(f"Cannot write {target}: {path} is not a file of bertcli's own; remove it.")
            if not locked(self._file):
                number = os.read(self._file, 20)
                os.close(self._file)
                who = f"Process {number.decode()}" if number.isdigit() else "Another process"
                raise BertcliError(f"{who} is writing {target} right now: wait for it, or choose another --output.")
            if self._is_here():
                break
            os.close(self._file)  # the process that held it has just deleted it
        os.ftruncate(self._file, 0)
        put(self._file, str(os.getpid()).encode())

    def release(self, remove: bool) -> None:
        """Let other processes have it; `remove`: delete the file, while it is still locked."""
        try:
            if remove and os.name != "nt":
                os.unlink(self._path)
        finally:
            os.close(self._file)
        if remove and os.name == "nt":  # which cannot delete an open file; another process may have it by now
            with suppress(PermissionError):
                os.unlink(self._path)

    def _is_here(self) -> bool:
        try:
            return os.path.samestat(os.stat(self._path), os.fstat(self._file))
        except FileNotFoundError:
            return False


def locked(file: int) -> bool:
    """Lock a file; true if it is ours now, or if its file system has no locks."""
    try:
        if fcntl is not None:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        else:
            import msvcrt  # pragma: no cover

            os.lseek(file, FAR, os.SEEK_SET)  # type: ignore[unreachable, unused-ignore]
            msvcrt.locking(file, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined, unused-ignore]
            os.lseek(file, 0, os.SEEK_SET)
    except OSError as error:
        return error.errno not in LOCKED
    return True


def is_own(found: os.stat_result) -> bool:
    """Whether this is a file of one name, which no other file's content can be: no link of any kind, pipe or device."""
    return stat.S_ISREG(found.st_mode) and found.st_nlink <= 1


def put(file: int, data: bytes) -> None:
    """Write at the file's position until everything is written: one call may write only part."""
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(file, rest) :]


def mode_of(path: Path) -> int | None:
    """Permissions of a file; None if it does not exist."""
    try:
        return stat.S_IMODE(os.stat(path).st_mode)
    except FileNotFoundError:
        return None


def sync_folder(folder: Path) -> None:
    """Wait until the file names in a folder are on disk, where the system supports that."""
    if hasattr(os, "O_DIRECTORY"):
        file = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(file)
        finally:
            os.close(file)
