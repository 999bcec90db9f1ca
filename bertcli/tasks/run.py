"""From texts to results, a window at a time, in input order: on this process's threads, or by several processes.

Results are bit-identical whoever computes a window, because windows are cut by the texts alone and each is computed the
same way on any number of threads (`team.set_thread_count`). There are three ways:

* Texts that may have to be waited for, from a pipe or an iterator: one window after the other. Results are given out
  before any more texts are read.
* Texts that are available, in a file or a list: while a window is computed, the next one is tokenized.
* `workers` > 1: after the first window, that many processes tokenize and compute, each with its share of the cores; two
  more windows than that are read ahead. A pipe is read ahead only while it does not pause, an iterator always: do not
  use workers if it waits for an answer. Each process opens the model by its path, and shares its weights with the
  others. None: one process for every 8 cores, for texts that are available, once there were two seconds of work. A
  script needs no `if __name__ == "__main__":`, because a worker does not run it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Generator, Iterator
from contextlib import closing, nullcontext
from itertools import islice
from time import monotonic
from typing import NamedTuple, Protocol, Self, TypeVar

from bertcli.errors import BertcliError
from bertcli.inputs import Text, Texts
from bertcli.parts import watched
from bertcli.tasks.futures import Future, ThreadPool
from bertcli.tasks.items import Tally, Window, warn_of_cuts
from bertcli.tasks.windows import Task
from bertcli.team import MOST, core_count, thread_count


class Result(Protocol):
    """What a task makes of a window: a named tuple with its tally."""

    @property
    def tally(self) -> Tally: ...

    def _replace(self, *, tally: Tally) -> Self: ...


R = TypeVar("R", bound=Result)
PATIENCE = 2.0  # seconds of work after which more is likely enough to repay starting processes, half a second
AHEAD = 2  # windows in progress beyond one for each worker: waiting to begin, or done before their turn


def results(task: Task[R], texts: Texts, workers: int | None = None) -> Generator[R, None, None]:
    """What `task` makes of windows of texts, each with the tally of the run so far.

    An error in a text, or in reading one, is raised after the results of the windows before it. At the end one warning
    says how much was cut. Also raises BertcliError for an impossible number of workers, and for a worker that dies.
    """
    count = worker_count(task, workers)
    if workers is None and not texts.at_hand:
        count = 1
    return _counted(task, _computed(task, texts, count, PATIENCE if workers is None else 0.0))


def worker_count(task: Task[R], workers: int | None) -> int:
    """How many processes compute: as asked for, else one for every group of cores whose threads work well together."""
    if workers is None:
        return -(-core_count() // MOST) if core_count() > MOST and _movable(task) else 1
    if workers < 1:
        raise BertcliError(f"workers is {workers}; it must be at least 1.")
    if workers > 1 and not _movable(task):
        raise BertcliError(
            f"'{task.model.name}' is not as bertcli.load() opened it, so worker processes cannot open it: use only "
            "this process (workers=1)."
        )
    return workers


def _movable(task: Task[R]) -> bool:
    from bertcli.tasks.workers import possible

    return task.model.as_stored and possible()


class WindowTexts(NamedTuple):
    """Consecutive texts and the number of the first; or why none could be read, an error to raise at their turn."""

    texts: list[Text]
    first: int
    error: Exception | None = None


def _groups(task: Task[R], texts: Texts) -> Iterator[WindowTexts]:
    """The texts of each window in turn, from where the run is to start."""
    first = task.reading.start.texts
    try:
        for group in islice(texts.grouped(task.reading.tokens_together, task.span), task.reading.start.windows, None):
            yield WindowTexts(group, first)
            first += len(group)
    except Exception as error:
        yield WindowTexts([], first, error)


def tokenized(task: Task[R], group: WindowTexts) -> Window:
    """The window of these texts."""
    if group.error is not None:
        raise group.error
    return task.window(group.texts, group.first)


def _computed(task: Task[R], texts: Texts, workers: int, patience: float) -> Generator[R, None, None]:
    groups = _groups(task, texts)
    if workers > 1 and not watched():
        begun = monotonic()
        for group in groups:
            yield task.compute(tokenized(task, group))
            if monotonic() - begun >= patience:
                yield from _by_workers(task, groups, texts, workers)
    elif texts.at_hand and thread_count() > 1:
        yield from _looking_ahead(task, groups)
    else:
        for group in groups:
            yield task.compute(tokenized(task, group))


def _looking_ahead(task: Task[R], groups: Iterator[WindowTexts]) -> Iterator[R]:
    pool: ThreadPool[WindowTexts, Window] = ThreadPool()
    try:
        window = None
        for group in groups:
            if window is None:
                window = tokenized(task, group)
                continue
            if not pool:
                pool.add(nullcontext(lambda group: tokenized(task, group)))
            coming = pool.begin(group)
            yield task.compute(window)
            window = coming.result()
        if window is not None:
            yield task.compute(window)
    finally:
        pool.end()


def _by_workers(task: Task[R], groups: Iterator[WindowTexts], texts: Texts, count: int) -> Iterator[R]:
    from bertcli.tasks.workers import Workers

    under_way: deque[Future[R]] = deque()
    with closing(Workers(task, count)) as workers:
        for group in groups:
            under_way.append(workers.begin(group))
            while under_way and (len(under_way) >= count + AHEAD or (not texts.at_hand and _due(under_way, texts))):
                yield task.received(under_way.popleft().result())
        while under_way:
            yield task.received(under_way.popleft().result())


def _due(under_way: deque[Future[R]], texts: Texts) -> bool:
    """Whether to give out a result before reading more texts, which might have to be waited for."""
    return under_way[0].done() or texts.waiting()


def _counted(task: Task[R], found: Generator[R, None, None]) -> Generator[R, None, None]:
    """The results with the tally of the run so far."""
    tally = task.reading.start
    with closing(found):
        for result in found:
            tally = tally.after(result.tally)
            yield result._replace(tally=tally)
    if tally.cut and task.reading.truncation == "warn":
        warn_of_cuts(tally, task.limit, "max_length and truncation: --max-length, --truncation")
