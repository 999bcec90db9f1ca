"""Pauses of a long computation: a server, which sets the hook, serves others between two parts of it, or stops it."""

from collections.abc import Callable
from contextvars import ContextVar

# A server's hook between the micro-batches of a long computation: it serves others, or raises to stop this one.
between_batches: ContextVar[Callable[[], None] | None] = ContextVar("between_batches", default=None)


def check_wanted() -> None:
    """Let a server do what is urgent, or stop a long computation for which nobody waits. Loops of tasks call it."""
    pause = between_batches.get()
    if pause is not None:
        pause()
