"""The command of a task, made from its spec (`tasks/`): the groups of its options, and the function that runs it.

request.py makes a request of the options, results.py writes what comes of it. Not here: the commands of views
(wings/interpret/command.py).
"""

import logging
from functools import partial
from typing import Any

from bertcli.cli.options import EngineOptions, LongOptions
from bertcli.cli.request import Given, complete, note_untrained, reading_of
from bertcli.cli.results import TaskResults
from bertcli.extensions.declared import CommandParts
from bertcli.files.formats import LINES, PAGE, TABLES
from bertcli.tasks.registry import TaskSpec
from bertcli.tasks.request import begin

logger = logging.getLogger("bertcli")


def command_parts(spec: TaskSpec) -> CommandParts:
    """The parts of a task's command; the docstring of its options is the help."""
    reading = reading_of(spec)
    groups = {
        "texts": reading.texts,
        "model": reading.model,
        "output": reading.output,
        "long": LongOptions,
        "engine": EngineOptions,
        "options": spec.options,
    }
    return CommandParts(spec.options.__doc__, groups, partial(run, spec), endings(spec, spec.options()))


def endings(spec: TaskSpec, options: Any) -> tuple[str, ...]:
    """The endings of files that can hold a task's results."""
    table = spec.table(options)
    page = (PAGE,) if table.on_page else ()
    lines = (LINES,) if table.line_of is not None else ()
    return tuple(dict.fromkeys((*lines, *TABLES, *page, *spec.arrays(options))))


def run(spec: TaskSpec, **groups: Any) -> None:
    """Run a task on the texts of the options, and write its results."""
    given = Given(**groups)
    request = complete(spec, given, endings(spec, reading_of(spec).options(given)))
    task: Any = begin(request)
    note_untrained(given.model, task.model, spec.needs(request.options).trained)
    if spec.gives_vectors:
        logger.info("%s.", task.summary)
    results = TaskResults(request, task, given)
    if given.output.ending in spec.arrays(request.options):
        from bertcli.cli.vectors import vector_form

        results.write_vectors(vector_form(request, task, given.output))
    else:
        results.write_records(spec.table(request.options))
