"""Crashes between any two writes: calls that change the disk are counted, and from a chosen one on nothing happens."""

import gc
import io
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from helpers.batches import compute_together
from helpers.terminal import bertcli

from bertcli.files.write import atomic, resumable_output

CALLS = ("write", "fsync", "mkdir", "rmdir", "replace", "unlink")


class Crash(BaseException):
    """The process is dead from here on."""


class Disk:
    """Counts the calls that change files; the one of number `last` and all after it do nothing but raise Crash."""

    def __init__(self, last: int | None) -> None:
        self.calls = 0
        self._last = last
        self._dead = False
        self._open: dict[int, Path] = {}
        self._safe: dict[Path, int] = {}  # how many bytes of each file that was written have reached the disk

    def count(self) -> None:
        if self._last is not None and self.calls >= self._last:
            self._dead = True
            raise Crash
        self.calls += 1

    def patched(self, name: str, original: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **named: Any) -> Any:
            self.count()
            result = original(*arguments, **named)
            if name == "fsync" and arguments[0] in self._open:
                self._safe[self._open[arguments[0]]] = os.fstat(arguments[0]).st_size
            if name == "replace":
                self._safe[Path(arguments[1])] = self._safe.pop(Path(arguments[0]))
            return result

        return call

    def opened(self, original: Callable[..., int]) -> Callable[..., int]:
        def call(path: Any, *arguments: Any, **named: Any) -> int:
            file = original(path, *arguments, **named)
            self._open[file] = Path(path)
            return file

        return call

    def closed(self, original: Callable[[int], None]) -> Callable[[int], None]:
        def call(file: int) -> None:
            self._open.pop(file, None)
            original(file)

        return call

    def new(self, path: Path, mode: str) -> io.BufferedWriter:
        """A file that is written: `open` for shards."""
        assert mode == "wb"
        self._safe[path] = 0
        disk = self

        class File(io.FileIO):
            def write(self, data: Any) -> int:
                if not disk._dead:  # else a buffer of the dead process, which is lost
                    disk.count()
                    return super().write(data)
                return len(data)

        file = File(path, "w")
        self._open[file.fileno()] = path
        return io.BufferedWriter(file)

    def die(self) -> None:
        """Close what is open, as the system does for a dead process: locks fall away."""
        gc.collect(0)  # else a lock that is found later to be nobody's closes a file that has its number by then
        for file in [*self._open]:
            with suppress(OSError):
                os.close(file)

    def lose_power(self) -> None:
        """What was not brought to the disk is zeros or nothing."""
        for number, (path, safe) in enumerate(self._safe.items()):
            if path.is_file():
                size = path.stat().st_size
                with path.open("r+b") as file:
                    file.truncate(min(safe, size))
                    if number % 2:
                        file.truncate(size)


@contextmanager
def crashing(last: int | None, power_cut: bool = False) -> Iterator[Disk]:
    """The block's writes go through a Disk; it ends at a crash if there is one."""
    disk = Disk(last)
    collects = gc.isenabled()
    gc.disable()  # then all that the block makes is of the youngest generation
    with pytest.MonkeyPatch.context() as patch:
        for name in CALLS:
            patch.setattr(os, name, disk.patched(name, getattr(os, name)))
        patch.setattr(os, "open", disk.opened(os.open))
        patch.setattr(os, "close", disk.closed(os.close))
        for module in (atomic, resumable_output):
            patch.setattr(module, "open", disk.new, raising=False)
        with suppress(Crash):
            yield disk
    if last is not None:
        disk.die()
        if power_cut:
            disk.lose_power()
    if collects:
        gc.enable()


@contextmanager
def full_disk(room: int) -> Iterator[None]:
    """In the block results are written to a disk that takes so many bytes more."""

    class File(io.FileIO):
        def write(self, data: Any) -> int:
            nonlocal room
            if not room:
                raise OSError(28, "No space left on device")
            count = super().write(data[:room])
            room -= count
            return count

    with pytest.MonkeyPatch.context() as patch:
        for module in (atomic, resumable_output):
            patch.setattr(module, "open", lambda path, mode: io.BufferedWriter(File(path, "w")), raising=False)
        yield


def break_off(*words: str | Path) -> None:
    """Run a command that crashes when some of its texts are on the disk, each in a segment of its own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(resumable_output, "SHORTEST_SEGMENT", 0.0)
        patch.setattr(resumable_output, "LONGEST_SEGMENT", 0.0)
        compute_together(1, patch)
        with crashing(24):
            bertcli(*words)
