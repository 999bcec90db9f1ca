"""The specs of tasks: options, needs, inputs, record and table of each; and the file of its work.

A task is a file in this folder with a `SPEC`, and a file in compute/; there is no list of them. Specs give the
commands, the classes for columns of data, Arrow's types, and a server's routes.
"""

import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from bertcli.lean import lean_dataclass
from bertcli.report.tables import Table
from bertcli.tasks.examples import Examples
from bertcli.tasks.options import Checked

if TYPE_CHECKING:
    from bertcli.loaded_model import LoadedModel
    from bertcli.tasks.compute.task import Task

MASKED_SAMPLE, SENTIMENT_SAMPLE, SENTENCE_SAMPLE = "bert-mini-mlm", "bert-mini-sentiment", "bert-mini-sentence"
Fields = dict[str, Any]  # of a record, see TaskSpec.record


class InputKind(NamedTuple):
    """What a task reads: what a text is called, and the field of the options that holds second texts, if any."""

    text: str
    second: str | None = None
    choices: bool = False  # a text may be followed by what is to be chosen from


TEXTS = InputKind("text", "pairs")
SINGLE_TEXTS = InputKind("text")
TEXTS_OR_CHOICES = InputKind("text", "pairs", choices=True)
QUESTIONS = InputKind("question", "contexts")
DOCUMENTS = InputKind("query", "documents")


class Needs(NamedTuple):
    """What a task runs on: a head, the bundled model that has it, or else one that people use for it."""

    task: str  # as messages call it
    head: str | None = None
    sample: str | None = None
    fitting: str = ""


def _whole(record: Any, options: Any) -> Any:
    """A record as it is."""
    return record


@lean_dataclass
class TaskSpec:
    """A task.

    options: a dataclass, whose docstring is the help. needs, record, table: of given options. examples: commands that
    use the task, with a text that suits a model. A record's fields are said as types: str, int, float, bool; [kind] for
    a list, {name: kind} for a record in it, (kind, kind) for one of several, of which None is null; a name that ends in
    ? may be absent. The docstring of `record` is that of the method of `bertcli.Model`. `shape` takes a
    record, or these types of one.
    """

    options: type[Checked]
    reads: InputKind
    needs: Callable[[Any], Needs]
    record: Callable[[Any], Fields]
    table: Callable[[Any], Table]
    examples: Examples
    panel: str = "Run"  # of --help; "" for one without a command of its own
    place: int = 0  # in the panel
    vectors: bool = False  # a text gives a vector, for which there are files of arrays
    compares: bool = False  # two texts can be compared, which is summed up at the end
    shape: Callable[[Any, Any], Any] = _whole  # what a server gives of a record, with the options that were given

    @property
    def module(self) -> str:
        """The name of its file, of its method, and of the file of its work."""
        return self.options.__module__.rpartition(".")[2]

    @property
    def name(self) -> str:
        """The name of its command."""
        return self.module.replace("_", "-")


def specs() -> list[TaskSpec]:
    """The specs of all tasks, in the order in which --help shows them."""
    found = (_spec_in(module) for module in _modules())
    return sorted(filter(None, found), key=lambda one: one.place)


def spec(name: str) -> TaskSpec | None:
    """The spec of a command or a method; None if that is none of a task."""
    module = name.replace("-", "_")
    return _spec_in(module) if module in _modules() else None


def spec_of(options: Checked) -> TaskSpec:
    """The spec that these options belong to."""
    found: TaskSpec = sys.modules[type(options).__module__].SPEC
    return found


def _modules() -> list[str]:
    return [module.name for module in iter_modules([str(Path(__file__).parent)])]


def _spec_in(module: str) -> TaskSpec | None:
    return getattr(import_module(f"{__package__}.{module}"), "SPEC", None)


class Work(Protocol):
    """The file of a task's work."""

    def plan(self, model: "LoadedModel", options: Any) -> "Task[Any]":
        """What makes the results; BertcliError for a model without the head, and for options that do not fit it."""


def compute(spec: TaskSpec) -> Work:
    """The module that does a task's work; it imports NumPy."""
    work: Any = import_module(f"{__package__}.compute.{spec.module}")
    found: Work = work
    return found
