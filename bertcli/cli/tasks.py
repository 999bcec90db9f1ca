"""Make the command of a task from its spec (`tasks/`): its groups of options, and the function that runs it.

inputs.py has what a task reads, job.py opens texts and model and writes the results. Not here: the commands of views
(wings/interpret/command.py).
"""

import logging
from dataclasses import fields, make_dataclass
from functools import partial
from typing import Any

from bertcli.cli.inputs import JOBS
from bertcli.cli.job import Job
from bertcli.files.formats import PAGE, TABLES
from bertcli.tasks.registry import TaskSpec, compute

logger = logging.getLogger("bertcli")


def groups_of(spec: TaskSpec) -> dict[str, Any]:
    """The groups of options of a task's command, by the names of `run`'s parameters."""
    kind = JOBS[spec.reads]
    output: Any = {field.name: field.type for field in fields(kind)}["output"]
    written = type("Output", (output,), {"endings": endings(spec, spec.options())})
    job = make_dataclass("TaskJob", [("output", written)], bases=(kind,), frozen=True, eq=False, repr=False)
    return {"job": job, "options": spec.options}


def endings(spec: TaskSpec, options: Any) -> tuple[str, ...]:
    """The endings of files that can hold a task's results."""
    page = (PAGE,) if spec.table(options).on_page else ()
    return tuple(dict.fromkeys((*TABLES, *page, *spec.arrays(options))))


def run(spec: TaskSpec, job: Job, options: Any) -> None:
    """Run a task on the texts of the options, and write its results."""
    options = job.completed(options)
    begun = job.begin(spec.name, spec.needs(options), options, endings(spec, options))
    task: Any = compute(spec).plan(begun.model, begun.task_options)
    from bertcli.tasks.running.run import results  # late: brings NumPy, which --threads must precede

    results_from = partial(results, task)
    if spec.gives_vectors:
        logger.info("%s.", task.summary)
    if job.output.ending in spec.arrays(options):
        from bertcli.cli.vectors import vector_form

        begun.write_vectors(vector_form(begun, task), results_from)
    else:
        begun.write(results_from, spec.table(options))
