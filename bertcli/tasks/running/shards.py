"""Choose the texts of a shard (--shard I/N): contiguous parts with equal numbers of texts.

Results are the same bytes as without shards, because windows are cut as without them: a window across a border is
computed by the shards on both sides, and each returns the results of its own texts.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, TypeVar

from bertcli.files.texts import Text, Texts
from bertcli.tasks.running.task import Group, Progress, Records, Window, WindowResult

R = TypeVar("R", bound=WindowResult)


def part_of(texts: Texts, grouped: Callable[[], Iterator[list[Text]]], number: int, count: int) -> Iterator[Group]:
    """Yield the windows that contain texts of a shard.

    Where texts stand together a shard begins with the first ones that begin there.
    """
    total = sum(map(len, grouped()))
    begin, end = (-(-total * shard // count) for shard in (number, number + 1))
    last: Text | None = None
    first = 0
    for group in grouped():
        inside = []
        for number, text in enumerate(group, first):
            together = last is not None and not texts.may_part(last, text)
            begin, end = (border + (together and number == border) for border in (begin, end))
            if begin <= number < end:
                inside.append(number)
            last = text
        if inside:
            yield Group(group, first, range(inside[0], inside[-1] + 1))
        first += len(group)
        if first > end:
            return


def only_texts(result: R, window: Window, numbers: range) -> R:
    """Cut a window's result down to the texts with these numbers."""
    items = [number for number, item in enumerate(window.items) if item.index in numbers]
    failures = [failure for failure in window.failures if failure.index in numbers]
    tokens = [window.items[number].tokens for number in items]
    cut, lost = sum(one.truncated for one in tokens), sum(one.lost for one in tokens)
    changed: dict[str, Any] = {"progress": Progress(1, len(numbers), cut, lost, len(failures))}
    if isinstance(result, Records):
        every = sorted([*(item.index for item in window.items), *(failure.index for failure in window.failures)])
        pairs = zip(every, result.records(), strict=True)
        return replace(result, **changed, every=[record for index, record in pairs if index in numbers])
    changed["failures"] = failures
    for name in ("items", "vectors", "words"):
        rows = getattr(result, name, None)  # words: of sparse vectors, if they are wanted
        if rows is not None:
            changed[name] = [rows[number] for number in items] if isinstance(rows, list) else rows[items]
    return replace(result, **changed)
