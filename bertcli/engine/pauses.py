"""Pauses of a long computation: a door, which sets the hook, serves others between two parts of it, or stops it."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

# The hook of a server or an assistant, called between the micro-batches of a long computation.
between_batches: ContextVar[Callable[[], None] | None] = ContextVar("between_batches", default=None)


class Abandoned(Exception):
    """Raised in a computation for which nobody waits any more."""


def check_wanted() -> None:
    """Let a server do what is urgent, or stop a long computation for which nobody waits. Loops of tasks call it."""
    pause = between_batches.get()
    if pause is not None:
        pause()


@contextmanager
def pausing(hook: Callable[[], None] | None) -> Iterator[None]:
    """`with pausing(hook):` Call the hook at every pause; it may raise to stop the computation."""
    reset = between_batches.set(hook)
    try:
        yield
    finally:
        between_batches.reset(reset)
