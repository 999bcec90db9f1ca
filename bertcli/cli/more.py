"""CommandExtras: base of the options that a task's command has beside the task's own (vectors.py)."""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from bertcli.cli.job import CommandRun, Job
from bertcli.cli.options import by_name, id_column_option, wrong
from bertcli.files.formats import PAGE, TABLES
from bertcli.report.tables import Table
from bertcli.tasks.options import option
from bertcli.tasks.registry import TaskSpec

if TYPE_CHECKING:
    from bertcli.files.write.vector_writer import VectorForm
    from bertcli.tasks.running.task import Task


@dataclass(frozen=True, eq=False, repr=False)
class CommandExtras:
    """The extras of a command without any; subclasses add options and override what they change."""

    def adjust(self, spec: TaskSpec, job: Job, options: Any) -> tuple[TaskSpec, Job, Any]:
        """Return spec, job and options as these extras change them. Wrong usage is a typer.BadParameter."""
        return spec, job, options

    def settings(self, options: Any) -> dict[str, Any]:
        """The extras that affect the results, by their names on the command line: --resume compares them."""
        return by_name(self)

    def endings(self, table: Table, options: Any) -> tuple[str, ...]:
        """The endings of files that can hold the results."""
        return (*TABLES, *((PAGE,) if table.on_page else ()))

    @classmethod
    def all_endings(cls, spec: TaskSpec) -> tuple[str, ...]:
        """The endings that the help lists: those that some options allow."""
        table = spec.table(spec.options())
        return (*TABLES, *((PAGE,) if table.on_page else ()))

    def vector_form(self, run: "CommandRun[Any]", task: "Task[Any]") -> "VectorForm | None":
        """The form in which the output file stores vectors; None where the results are records."""
        return None


@dataclass(frozen=True, eq=False, repr=False)
class ChoiceOptions(CommandExtras):
    """The arguments of a task with labels, and the fields of its texts."""

    choices: bool = option(
        False,
        "",
        "Score how well each choice continues the text. Choices are the arguments after the text; with --input, all "
        "arguments.",
    )
    id_column: str | None = id_column_option()

    def adjust(self, spec: TaskSpec, job: Job, options: Any) -> tuple[TaskSpec, Job, Any]:
        if not self.choices:
            return spec, job, options
        arguments = job.texts.texts or []
        texts, choices = (None, arguments) if job.texts.input else (arguments[:1], arguments[1:])
        if not choices:
            raise wrong("--choices", "give the text, and the choices after it; with --input give only the choices.")
        return spec, replace(job, texts=replace(job.texts, texts=texts)), replace(options, choices=choices)

    def settings(self, options: Any) -> dict[str, Any]:
        return by_name(self) | {"--choices": options.choices}
