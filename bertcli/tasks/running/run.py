"""From texts to results, a group at a time, in input order: in this process, or shared by several.

Results are the same bytes whoever computes a group, because groups are cut by the texts alone and a group is divided
for the same number of threads everywhere (`set_thread_count`). There are three ways:

* Texts that may have to be waited for, from a pipe or an iterator: one group after the other. Results are given out
  before any more texts are read.
* Texts that are available, in a file or a list: after the first group, while one is computed the next is tokenized.
* `workers` > 1: after the first group, that many processes tokenize and compute, each with its share of the cores; two
  more groups than that are read ahead. A pipe is read ahead only while it does not pause, an iterator always: do not
  use workers if it waits for an answer. Each process opens the model by its path, and shares its weights with the
  others. "auto", as on the command line: one process for every 8 cores, for texts that are available, once there were
  two seconds of work. A script that asks for workers needs `if __name__ == "__main__":` around its work, because
  `multiprocessing` imports it in each process.
"""

import sys
from collections import deque
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from functools import partial
from itertools import chain, islice
from time import monotonic
from typing import TypeVar

from bertcli.engine.threads import MOST_THREADS, core_count, thread_count
from bertcli.errors import BertcliError, UnusableText
from bertcli.files.texts import Texts
from bertcli.tasks.running.batches import BATCH_TOKENS
from bertcli.tasks.running.task import START, Group, Progress, R, Task, warn_of_cuts
from bertcli.tracing.dispatch import watched

V = TypeVar("V")
Submit = Callable[[Group], Future[V]]
# Seconds of work after which enough is likely left to repay the second that starting processes takes.
SECONDS_BEFORE_WORKERS = 2.0
AHEAD = 2  # groups in progress beyond one for each worker: waiting to begin, or done before their turn


def results(task: Task[R], texts: Texts, start: Progress = START) -> Generator[R, None, None]:
    """Run a task on texts: yield the result of each group, with the progress of the run so far.

    start: the progress at which an earlier run stopped; pass the same texts from the beginning and its groups are
    skipped.

    An error in a text, or in reading one, is raised after the results of the groups before it. At the end one warning
    says how much was cut. Errors: BertcliError, too, for an impossible number of workers, and for a worker that dies.
    """
    texts = task.order_groups(texts)
    computed = _computed(task, texts, start, _worker_count(task, texts))
    return task.reorder_results(_counted(task, texts, computed, start), start)


def _worker_count(task: Task[R], texts: Texts) -> int:
    """Choose the number of processes; "auto": one for every group of cores whose threads work well together."""
    count = task.read_options.workers
    movable = task.model.as_stored and bool(sys.executable) and not getattr(sys, "frozen", False)
    if count == "auto":
        return -(-core_count() // MOST_THREADS) if movable and texts.at_hand else 1
    if count is None:
        return 1
    if count > 1 and not movable:
        raise BertcliError(
            f"'{task.model.name}' was changed after bertcli.load(), so worker processes cannot load it: use only "
            "this process (workers=1)."
        )
    return count


def _counted(
    task: Task[R], texts: Texts, computed: Generator[R, None, None], progress: Progress
) -> Generator[R, None, None]:
    """Yield the results with the progress of the run so far, which begins at `progress`.

    At the end log how many texts were cut, and how many are empty.
    """
    with closing(computed):
        try:
            for result in computed:
                progress = progress.after(result.progress)
                yield replace(result, progress=progress)
        except UnusableText as error:
            raise UnusableText(f"{error}{texts.way_on}") from None
    if progress.cut and task.read_options.truncation == "warn":
        warn_of_cuts(progress, task.limit, task.remedies_for_cuts)
    texts.log_empty()


def _computed(task: Task[R], texts: Texts, start: Progress, workers: int) -> Generator[R, None, None]:
    begun = monotonic()
    seconds_before = SECONDS_BEFORE_WORKERS if task.read_options.workers == "auto" else 0.0
    with closing(_groups(task, texts, start)) as groups:  # an error's traceback would keep the texts' file open
        for group in groups:  # the first one starts no thread and no process
            if isinstance(group, Exception):
                raise group
            yield _of_group(task, group)
            # Both branches take all groups that are left, so that the loop ends with them; else it goes on.
            if workers > 1 and not watched():
                if monotonic() - begun >= seconds_before:
                    yield from _by_workers(task, groups, texts, workers)
            elif texts.at_hand and thread_count() > 1 and (following := next(groups, None)) is not None:
                with ThreadPoolExecutor(1, thread_name_prefix="bertcli_group") as pool:
                    rest = chain([following], groups)
                    for tokenized in _in_order(rest, lambda group: pool.submit(task.tokenize_group, *group), most=2):
                        yield task.compute(tokenized)


def _of_group(task: Task[R], group: Group) -> R:
    """Tokenize and compute a group."""
    return task.compute(task.tokenize_group(*group))


def _groups(task: Task[R], texts: Texts, start: Progress) -> Generator[Group | Exception, None, None]:
    """The texts of each group, from where the run is to start.

    Last there may be an error in reading them, which is to be raised at its turn.
    """
    grouped = texts.grouped(task.read_options.batch_tokens or BATCH_TOKENS, task.batches_per_group)
    try:
        first = start.texts
        for texts_together in islice(grouped, start.groups, None):
            yield Group(texts_together, first)
            first += len(texts_together)
    except Exception as error:
        yield error


def _in_order(
    groups: Iterator[Group | Exception],
    submit: Submit[V],
    most: int,
    due: Callable[[Future[V]], bool] = lambda oldest: False,
) -> Iterator[V]:
    """Submit each group, with at most `most` under way, and yield the results in order; the oldest at once if due."""
    under_way: deque[Future[V]] = deque()
    for group in groups:
        if isinstance(group, Exception):
            failed: Future[V] = Future()
            failed.set_exception(group)
            under_way.append(failed)
        else:
            under_way.append(submit(group))
        while len(under_way) >= most or (under_way and due(under_way[0])):
            yield under_way.popleft().result()
    while under_way:
        yield under_way.popleft().result()


def _by_workers(task: Task[R], groups: Iterator[Group | Exception], texts: Texts, count: int) -> Iterator[R]:
    def due(oldest: Future[R]) -> bool:
        """True if a result must be yielded before more texts are read, since that might wait for a pipe."""
        return not texts.at_hand and (oldest.done() or texts.waiting())

    from bertcli.tasks.running.workers import worker_processes  # brings multiprocessing

    with worker_processes(partial(_of_group, task), count) as submit:
        for result in _in_order(groups, submit, count + AHEAD, due):
            yield result.with_tokenizer(task.model.tokenizer)
