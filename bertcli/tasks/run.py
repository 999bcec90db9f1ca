"""From texts to results, a window at a time, in input order: in this process, or shared by several.

Results are the same bytes whoever computes a window, because windows are cut by the texts alone and a window is divided
for the same number of threads everywhere (`threads.set_thread_count`). There are three ways:

* Texts that may have to be waited for, from a pipe or an iterator: one window after the other. Results are given out
  before any more texts are read.
* Texts that are available, in a file or a list: while a window is computed, the next one is tokenized.
* `workers` > 1: after the first window, that many processes tokenize and compute, each with its share of the cores; two
  more windows than that are read ahead. A pipe is read ahead only while it does not pause, an iterator always: do not
  use workers if it waits for an answer. Each process opens the model by its path, and shares its weights with the
  others. "auto", as on the command line: one process for every 8 cores, for texts that are available, once there were
  two seconds of work. A script that asks for workers needs `if __name__ == "__main__":` around its work, because
  `multiprocessing` imports it in each process.
"""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Generator, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from itertools import islice
from time import monotonic
from typing import Any, NamedTuple, Protocol, Self, TypeVar

from bertcli.engine.threads import MOST, core_count, thread_count
from bertcli.engine.watcher import watched
from bertcli.errors import BertcliError
from bertcli.files.texts import Text, Texts
from bertcli.tasks.task import Progress, Task, Window, Workers, warn_of_cuts


class Result(Protocol):
    """What a task makes of a window: a named tuple with its progress."""

    @property
    def progress(self) -> Progress: ...

    def _replace(self, *, progress: Progress) -> Self: ...


R = TypeVar("R", bound=Result)
PATIENCE = 2.0  # seconds of work after which more is likely enough to repay starting processes, a second
AHEAD = 2  # windows in progress beyond one for each worker: waiting to begin, or done before their turn


def results(task: Task[R], texts: Texts) -> Generator[R, None, None]:
    """What `task` makes of windows of texts, each with the progress of the run so far.

    An error in a text, or in reading one, is raised after the results of the windows before it. At the end one warning
    says how much was cut. Also raises BertcliError for an impossible number of workers, and for a worker that dies.
    """
    workers = task.reading.workers
    count = worker_count(task, workers)
    if workers == "auto" and not texts.at_hand:
        count = 1
    return _counted(task, _computed(task, texts, count, PATIENCE if workers == "auto" else 0.0))


def worker_count(task: Task[R], workers: Workers) -> int:
    """How many processes compute; "auto": one for every group of cores whose threads work well together."""
    movable = task.model.as_stored and bool(sys.executable) and not getattr(sys, "frozen", False)
    if workers == "auto":
        return -(-core_count() // MOST) if movable else 1
    count = 1 if workers is None else workers
    if count < 1:
        raise BertcliError(f"workers is {count}; it must be at least 1.")
    if count > 1 and not movable:
        raise BertcliError(
            f"'{task.model.name}' is not as bertcli.load() opened it, so worker processes cannot open it: use only "
            "this process (workers=1)."
        )
    return count


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


def _tokenized(task: Task[R], group: WindowTexts) -> Window:
    """The window of these texts."""
    if group.error is not None:
        raise group.error
    return task.window(group.texts, group.first)


def _computed(task: Task[R], texts: Texts, workers: int, patience: float) -> Generator[R, None, None]:
    groups = _groups(task, texts)
    if workers > 1 and not watched():
        begun = monotonic()
        for group in groups:
            yield task.compute(_tokenized(task, group))
            if monotonic() - begun >= patience:
                yield from _by_workers(task, groups, texts, workers)
    elif texts.at_hand and thread_count() > 1:
        yield from _looking_ahead(task, groups)
    else:
        for group in groups:
            yield task.compute(_tokenized(task, group))


def _looking_ahead(task: Task[R], groups: Iterator[WindowTexts]) -> Iterator[R]:
    """Each window is computed while a thread tokenizes the next one."""
    window = next((_tokenized(task, group) for group in groups), None)
    with ThreadPoolExecutor(1, "bertcli tokenizing") as pool:  # which starts a thread only for a second window
        for group in groups:
            coming = pool.submit(_tokenized, task, group)
            assert window is not None
            yield task.compute(window)
            window = coming.result()
        if window is not None:
            yield task.compute(window)


def _by_workers(task: Task[R], groups: Iterator[WindowTexts], texts: Texts, count: int) -> Iterator[R]:
    from bertcli.tasks.workers import workers  # brings multiprocessing

    under_way: deque[Future[R]] = deque()
    with workers(task, count) as begin:
        for group in groups:
            under_way.append(begin(group.texts, group.first) if group.error is None else _failed(group.error))
            while under_way and (len(under_way) >= count + AHEAD or (not texts.at_hand and _due(under_way[0], texts))):
                yield task.received(under_way.popleft().result())
        while under_way:
            yield task.received(under_way.popleft().result())


def _failed(error: Exception) -> Future[Any]:
    future: Future[Any] = Future()
    future.set_exception(error)
    return future


def _due(first: Future[R], texts: Texts) -> bool:
    """Whether to give out a result before reading more texts, which might have to be waited for."""
    return first.done() or texts.waiting()


def _counted(task: Task[R], found: Generator[R, None, None]) -> Generator[R, None, None]:
    """The results with the progress of the run so far."""
    progress = task.reading.start
    with closing(found):
        for result in found:
            progress = progress.after(result.progress)
            yield result._replace(progress=progress)
    if progress.cut and task.reading.truncation == "warn":
        warn_of_cuts(progress, task.limit, "max_length and truncation: --max-length, --truncation")
