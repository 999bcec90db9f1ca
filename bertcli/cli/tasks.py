"""Make the command of a task from its spec (`tasks/`): its groups of options, and the function that runs it.

job.py opens texts and model and writes the results; more.py has the options beside the task's own. Not here: the
commands of views (wings/interpret/command.py).
"""

from dataclasses import make_dataclass
from functools import partial
from typing import Any

from bertcli.cli.inputs import JOBS
from bertcli.cli.job import Job
from bertcli.cli.more import ChoiceOptions, CommandExtras
from bertcli.cli.output import OutputOptions
from bertcli.tasks.registry import TaskSpec, compute


def groups_of(spec: TaskSpec) -> dict[str, Any]:
    """The groups of options of a task's command, by the names of `run`'s parameters."""
    more: type[CommandExtras] = ChoiceOptions if spec.reads.choices else CommandExtras
    if spec.vectors:
        from bertcli.cli.vectors import StorageOptions

        more = StorageOptions
    output = type("Output", (OutputOptions,), {"endings": more.all_endings(spec)})
    job = make_dataclass("TaskJob", [("output", output)], bases=(JOBS[spec.reads],), frozen=True, eq=False, repr=False)
    return {"job": job, "options": spec.options, "more": more}


def run(spec: TaskSpec, job: Job, options: Any, more: CommandExtras) -> None:
    """Run a task on the texts of the options, and write its results."""
    spec, job, options = more.adjust(spec, job, options)
    table = spec.table(options)
    begun = job.begin(spec.name, spec.needs(options), options, more.settings(options), more.endings(table, options))
    task = compute(spec).plan(begun.model, begun.task_options)
    from bertcli.tasks.running.run import results  # late: brings NumPy, which --threads must precede

    results_from = partial(results, task)
    form = more.vector_form(begun, task)
    if form is None:
        begun.write(results_from, table)
    else:
        begun.write_vectors(form, results_from)
