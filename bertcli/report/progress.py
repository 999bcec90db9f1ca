"""A bar on standard error that shows how far some work has got."""

import sys
import time
from collections.abc import Callable, Generator, Iterable
from itertools import count
from typing import TypeVar

T = TypeVar("T")
# Seconds of work before the bar appears: short work has none.
MOMENT = 1.0


def progress(
    items: Iterable[T], task: str, reached: Callable[[T], tuple[int, float | None]], unit: str = "texts"
) -> Generator[T, None, None]:
    """Pass items through; after a moment a bar on standard error shows how many are done, rate, share, time left.

    `reached(item)` gives how many texts are done with that item, and their share (0 to 1) of all, or None.
    """
    from rich import progress as rich
    from rich.console import Console

    console = Console(stderr=True)
    if console.is_dumb_terminal:
        yield from items
        return
    bar = rich.Progress(
        rich.TextColumn(task), rich.BarColumn(), rich.TextColumn("{task.description}"), rich.TaskProgressColumn(),
        rich.TimeElapsedColumn(), rich.TextColumn("gone,"), rich.TimeRemainingColumn(compact=True),
        rich.TextColumn("left"), console=console, transient=True,
    )  # fmt: skip
    counter = bar.add_task("", total=None)
    begun = time.monotonic()
    first: tuple[float, int] | None = None  # what came before the first item may have been done by an earlier run
    try:
        for item in items:
            done, share = reached(item)
            now = time.monotonic()
            first = first or (now, done)
            rate = f"  {(done - first[1]) / (now - first[0]):,.0f}/s" if now > first[0] else ""
            total = None if share is None else 1.0
            bar.update(counter, completed=share or 0.0, total=total, description=f"{done:,} {_noun(unit, done)}{rate}")
            if not bar.live.is_started and now - begun > MOMENT:
                bar.start()
            yield item
    finally:
        if bar.live.is_started:
            bar.stop()


def _noun(unit: str, count: int) -> str:
    """The unit in the singular for one: "1 text", "1 query"."""
    if count != 1:
        return unit
    return f"{unit[:-3]}y" if unit.endswith("ies") else unit.removesuffix("s")


def counted(items: Iterable[T], task: str, unit: str, total: int | None) -> Iterable[T]:
    """Pass items through with a bar that counts them, if standard error is a terminal; `total` is None if unknown."""
    if not sys.stderr.isatty():
        return items
    numbers = count(1)

    def reached(_: T) -> tuple[int, float | None]:
        number = next(numbers)
        share = number / total if total else None
        return number, share

    return progress(items, task, reached, unit)
