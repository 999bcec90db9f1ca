"""A request: a task with its options, on texts, by a model. `begin` is the only way from one to a task.

The command line, a method of `Model`, a server's route and an assistant's tool each make a `Request`. `begin` refuses,
before any work, what cannot be done: a file that is read and would be written, sizes above the bounds of the door
(limits.py), options that do not fit the model (the task's own `plan`). `run` yields the results; who resumes a run
or shows its progress takes the task that `begin` gives to `results` of running/run.py.
"""

from collections.abc import Callable, Generator
from dataclasses import fields
from typing import TYPE_CHECKING, Any, NamedTuple

from bertcli.engine.pauses import check_wanted
from bertcli.files.files_beside import check_not_read
from bertcli.files.texts import Texts
from bertcli.tasks.limits import NO_LIMITS, Cost, DoorLimits, check_options, check_texts
from bertcli.tasks.options import ReadOptions
from bertcli.tasks.registry import TaskSpec, work_of

if TYPE_CHECKING:
    from bertcli.loaded_model import LoadedModel
    from bertcli.tasks.running.task import Task


class Request(NamedTuple):
    """What is asked of a model.

    texts   not read yet
    open    opens the model, or gives it if it is open; called once nothing else is to be refused
    output  the file to which the results go, of which none may be read; None: they are printed, or values
    limits  the bounds of the door through which the request comes; where there are any, the texts are in memory
    """

    spec: TaskSpec
    options: ReadOptions
    texts: Texts
    open: Callable[[], "LoadedModel"]
    output: str | None = None
    limits: DoorLimits = NO_LIMITS


def begin(request: Request) -> "Task[Any]":
    """Refuse what cannot be done, before any work, open the model, and make the task.

    Errors: TooMuch; BertcliError for an output that is read, a missing head, options that do not fit the model, and
    texts that cannot be used.
    """
    if request.output is not None:
        check_not_read(request.output, request.texts.files or ())
    limits = request.limits
    texts = [] if limits is NO_LIMITS else list(request.texts)
    if texts:
        check_texts(texts, limits)
        check_options(changed(request.options), texts, limits)
    model = request.open()
    task = work_of(request.spec).plan(model, request.options)
    if texts:
        _count(task, Texts(texts, at_hand=True, count=len(texts)), Cost(limits))
    return task


def run(request: Request) -> Generator[Any, None, None]:
    """Yield the results of a request, a group of texts at a time, in input order. Errors: as `begin`'s."""
    # Late: it brings NumPy, which --threads must precede.
    from bertcli.tasks.running.run import results

    if request.limits is not NO_LIMITS:
        request = request._replace(texts=request.texts.in_memory())
    return results(begin(request), request.texts)


def _count(task: "Task[Any]", texts: Texts, cost: Cost) -> None:
    """Count what texts cost, group by group: a tokenizer takes hundreds of bytes a character. Errors: TooMuch."""
    from bertcli.tasks.running.batches import BATCH_TOKENS

    first = 0
    for group in texts.grouped(BATCH_TOKENS, task.batches_per_group):
        check_wanted()
        cost.add(task, task.tokenize_group(group, first).items)
        first += len(group)


def changed(options: ReadOptions) -> dict[str, Any]:
    """The options that do not have their defaults, by their names."""
    of_all = [(item.name, getattr(options, item.name), item.default) for item in fields(options)]
    return {name: value for name, value, default in of_all if value != default}
