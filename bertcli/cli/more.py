"""What the command of a task takes beside the task's own options."""

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from bertcli.cli.job import CommandRun, Job
from bertcli.cli.options import by_name, id_column_option, wrong
from bertcli.files.formats import PAGE, RECORDS, TABLES
from bertcli.lean import lean_dataclass
from bertcli.report.tables import Table
from bertcli.tasks.options import option
from bertcli.tasks.registry import TaskSpec

if TYPE_CHECKING:
    from bertcli.tasks.compute.task import Task


@lean_dataclass
class CommandExtras:
    """The options of a command beside those of its task: none."""

    def adjust(self, spec: TaskSpec, job: Job, options: Any) -> tuple[TaskSpec, Job, Any]:
        """The spec, job and options with what these change of them. Wrong usage is a typer.BadParameter."""
        return spec, job, options

    def settings(self, options: Any) -> dict[str, Any]:
        """What of these affects the results, by the names on the command line."""
        return by_name(self)

    def endings(self, table: Table, options: Any) -> tuple[str, ...]:
        """How the names of files may end that hold the results."""
        return (*(TABLES if table.in_files else RECORDS), *((PAGE,) if table.on_page else ()))

    def write(self, run: "CommandRun[Any]", task: "Task[Any]", table: Table) -> None:
        """Write what a task makes of the texts."""
        from bertcli.tasks.compute.run import results

        run.write(partial(results, task), table)


@lean_dataclass
class LabelOptions(CommandExtras):
    """What the arguments of a task with labels are, and the fields of its texts."""

    choices: bool = option(False, "", "Score choices: the arguments after the text, or with --input all arguments.")
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
