"""The seam where a pass can be watched: who stands there now, if anyone.

Every op and every module is called through one place (`network.module`), which asks here for a watcher.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from bertcli.engine.array import Array
    from bertcli.network.module import Module, Op


class Watcher(Protocol):
    """Receives every call at the seam and returns its result, usually by making the call and recording it."""

    def op(self, op: Op[Any], arguments: tuple[Any, ...], keywords: dict[str, Any]) -> Array: ...

    def module(self, module: Module, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> Array: ...


current: ContextVar[Watcher | None] = ContextVar(
    "watcher", default=None
)  # a context variable, so that a thread can be watched without the others


@contextmanager
def watching(watcher: Watcher) -> Iterator[None]:
    """Every op and module called in this context passes through `watcher`."""
    before = current.set(watcher)
    try:
        yield
    finally:
        current.reset(before)


def watched() -> bool:
    """True while a watcher is set; an op must then not be split into several for the sake of the cache."""
    return current.get() is not None
