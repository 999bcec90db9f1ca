"""Crashes between any two writes: calls that change the disk are counted, and from a chosen one on nothing happens."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

CALLS = ("write", "fsync", "ftruncate", "replace", "unlink")


class Crash(BaseException):
    """The process is dead from here on."""


class Disk:
    """Counts the calls that change files; the one of number `last` and all after it do nothing but raise Crash."""

    def __init__(self, last: int | None) -> None:
        self.calls = 0
        self._last = last
        self._opened: dict[int, Path] = {}
        self._safe: dict[Path, int] = {}

    def patched(self, name: str, original: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **named: Any) -> Any:
            if self._last is not None and self.calls >= self._last:
                raise Crash
            self.calls += 1
            result = original(*arguments, **named)
            if name == "fsync" and arguments[0] in self._opened:
                self._safe[self._opened[arguments[0]]] = os.fstat(arguments[0]).st_size
            if name == "replace":
                self._safe.pop(Path(arguments[0]), None)
            return result

        return call

    def opened(self, original: Callable[..., int]) -> Callable[..., int]:
        def call(path: Any, *arguments: Any, **named: Any) -> int:
            file = original(path, *arguments, **named)
            self._opened[file] = Path(path)
            return file

        return call

    def die(self) -> None:
        """Close what is open, as the system does for a dead process: locks fall away."""
        for file in self._opened:
            with suppress(OSError):
                os.close(file)

    def lose_power(self) -> None:
        """What was not brought to the disk is zeros or nothing."""
        for number, path in enumerate(path for path in set(self._opened.values()) if path.is_file()):
            safe, size = self._safe.get(path, 0), path.stat().st_size
            with path.open("r+b") as file:
                file.truncate(min(safe, size))
                if number % 2:
                    file.truncate(size)


@contextmanager
def crashing(last: int | None, power_cut: bool = False) -> Iterator[Disk]:
    """The block's writes go through a Disk; it ends at a crash if there is one."""
    disk = Disk(last)
    with pytest.MonkeyPatch.context() as patch:
        for name in CALLS:
            patch.setattr(os, name, disk.patched(name, getattr(os, name)))
        patch.setattr(os, "open", disk.opened(os.open))
        with suppress(Crash):
            yield disk
    if last is not None:
        disk.die()
        if power_cut:
            disk.lose_power()
