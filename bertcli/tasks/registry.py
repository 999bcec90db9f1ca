"""Find the specs of tasks: `TaskSpec` holds a task's options, needs, inputs, record and table.

A task is a file in this folder with a `SPEC`, and a file of the same name in compute/; or a wing or a plugin declares
both. No list names them. Commands, `Model`'s methods and a server's routes are made from the specs.
"""

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, cast

from bertcli import extensions
from bertcli.names import MASKED_SAMPLE as MASKED_SAMPLE
from bertcli.names import SENTENCE_SAMPLE as SENTENCE_SAMPLE
from bertcli.names import SENTIMENT_SAMPLE as SENTIMENT_SAMPLE
from bertcli.report.tables import Table
from bertcli.tasks.examples import Examples
from bertcli.tasks.options import Checked

if TYPE_CHECKING:
    from bertcli.loaded_model import LoadedModel
    from bertcli.tasks.running.task import Task

Fields = dict[str, Any]  # the names and types of a record's fields, see TaskSpec


class InputKind(NamedTuple):
    """The input of a task: the name of a text, and the field of the options with second texts, if any."""

    text: str
    second: str | None = None
    choices: bool = False  # a text may come with choices
    options: bool = True  # a command has options for second texts; else only rows have them, as text_pair
    ids: bool = False  # a command has --id-column


TEXTS = InputKind("text", "pairs")
TEXTS_WITH_IDS = InputKind("text", "pairs", options=False, ids=True)
SINGLE_TEXTS = InputKind("text")
TEXTS_OR_CHOICES = InputKind("text", "pairs", choices=True, ids=True)
QUESTIONS = InputKind("question", "contexts")
DOCUMENTS = InputKind("query", "documents")
# All that a task may read: a command has its options for each (cli/reading.py).
INPUT_KINDS = {
    "TEXTS": TEXTS,
    "TEXTS_WITH_IDS": TEXTS_WITH_IDS,
    "SINGLE_TEXTS": SINGLE_TEXTS,
    "TEXTS_OR_CHOICES": TEXTS_OR_CHOICES,
    "QUESTIONS": QUESTIONS,
    "DOCUMENTS": DOCUMENTS,
}


class Needs(NamedTuple):
    """The requirements of a task: a head, the bundled model that has it, else a popular model to suggest.

    trained: the uses for which a model should have been trained; a command says when it was not
    """

    task: str  # its name in messages
    head: str | None = None
    sample: str | None = None
    fitting: str = ""
    trained: tuple[str, ...] = ()


class Use(NamedTuple):
    """A use of a model over HTTP, which its task's work computes.

    head     the prediction head that speaks for it; "" for every network's; None: only a model's kind states it
    options  those that make it of its task
    asked    options that a client gives; asked with these a model has to accept one
    takes    a dataclass of the options that it has, if they are fewer than the task's
    """

    name: str
    head: str | None = None
    options: Mapping[str, Any] = {}
    asked: Sequence[Mapping[str, Any]] = ({},)
    takes: type | None = None


def _whole(record: Any, options: Any) -> Any:
    """Return a record unchanged."""
    return record


@dataclass(frozen=True, eq=False, repr=False)
class TaskSpec:
    """The specification of a task.

    options    a dataclass; its docstring is the help of the command
    needs      a function of the options: the requirements on the model
    record     a function of the options: the types of a record's fields. Its docstring is that of the method of Model
    table      a function of the options: the columns of the printed table
    examples   commands that use the task, with a text that suits a model
    other_words   what other tools call its command
    shape      a function of a record, or of its types, and the options: the answer of a server's pipeline route
    uses       the uses of a model that the task computes; without any, one of the task's name, if its head is there
    arrays     a function of the options: the endings of the files that hold results as arrays; None: results are no
               vectors, but records alone

    Types of fields are str, int, float, bool, None for null; [type] for a list, {name: type} for a nested record,
    (type, type) for alternatives. A field whose name ends in ? may be absent.
    """

    options: type[Checked]
    reads: InputKind
    needs: Callable[[Any], Needs]
    record: Callable[[Any], Fields]
    table: Callable[[Any], Table]
    examples: Examples
    panel: str = "Run"  # of --help
    position: int = 0  # the position in the panel
    other_words: tuple[str, ...] = ()
    shape: Callable[[Any, Any], Any] = _whole
    uses: tuple[Use, ...] = ()
    arrays: Callable[[Any], tuple[str, ...]] | None = None

    @property
    def module(self) -> str:
        """The name of the task's file here and in compute/, and of its method."""
        return self.options.__module__.rpartition(".")[2]

    @property
    def every_use(self) -> tuple[Use, ...]:
        """Its uses, or that of its own name."""
        return self.uses or (Use(self.name, self.needs(self.options()).head or ""),)

    @property
    def name(self) -> str:
        """The name of the task's command."""
        return self.module.replace("_", "-")


def own_specs() -> list[TaskSpec]:
    """List the specs of the tasks here and of wings, in the order of --help."""
    own = map(own_spec, [*_modules_here(), *_modules_of_wings()])
    return sorted(filter(None, own), key=lambda spec: spec.position)


def specs() -> list[TaskSpec]:
    """List the specs of all tasks, in the order of --help; those of plugins are the last."""
    return [*own_specs(), *extensions.plugin_parts("tasks", "SPEC", TaskSpec, _unfit)]


def spec(name: str) -> TaskSpec | None:
    """Find the spec of a task by the name of its command or method; None if there is no such task."""
    brought = extensions.plugin_parts("tasks", "SPEC", TaskSpec, _unfit, name.replace("-", "_"))
    return own_spec(name) or next(brought, None)


def own_spec(name: str) -> TaskSpec | None:
    """Find the spec of a task here or of a wing by its name; None if there is no such task."""
    file = name.replace("-", "_")
    # Wings are asked only for what is not here.
    module = _modules_here().get(file) or _modules_of_wings().get(file)
    return None if module is None else getattr(import_module(module), "SPEC", None)


def find_use(name: str) -> tuple[TaskSpec, Use]:
    """Find a use by its name, and the spec of its task. Errors: StopIteration if there is none."""
    return next((task, use) for task in specs() for use in task.every_use if use.name == name)


def _unfit(module: str, spec: TaskSpec) -> str | None:
    """Why the spec of a plugin's task is unfit: it is misplaced, or reads what no command has options for."""
    problem = extensions.misplaced(module, spec)
    if problem is None and spec.reads not in INPUT_KINDS.values():
        problem = f"the task in {module} reads an input of its own; choose from {', '.join(INPUT_KINDS)}"
    return problem


def spec_of(options: Checked) -> TaskSpec:
    """Find the spec that these options belong to."""
    spec: TaskSpec = sys.modules[type(options).__module__].SPEC
    return spec


@cache
def _modules_here() -> dict[str, str]:
    """The modules in this folder that may have a spec, by the names of their files."""
    return {module.name: f"{__package__}.{module.name}" for module in iter_modules([str(Path(__file__).parent)])}


def _modules_of_wings() -> dict[str, str]:
    """The modules with a spec that wings declare, by the names of their files."""
    return {module.rpartition(".")[2]: module for wing in extensions.wings() for module in wing.tasks}


class Work(Protocol):
    """The interface of a task's module in compute/."""

    def plan(self, model: "LoadedModel", options: Any) -> "Task[Any]":
        """Check model and options, and make the task. Errors: BertcliError for a missing head, unfit options."""


def work_of(spec: TaskSpec) -> Work:
    """Import the module of a task's work, which imports NumPy: it is in compute/, or a wing or a plugin names it."""
    home = spec.options.__module__
    is_own = home.rpartition(".")[0] == __package__
    module = f"{__package__}.compute.{spec.module}" if is_own else extensions.work_of(home)
    work: Work = cast(Any, import_module(module))
    return work
