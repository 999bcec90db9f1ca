"""The command of a task, made from its spec (`tasks/`): the groups of its options, and the function that runs it.

request.py makes a request of the options, results.py writes what comes of it. Not here: the commands of views
(wings/interpret/command.py).
"""

import logging
from functools import partial
from typing import Any

from bertcli.cli.model import note_untrained
from bertcli.cli.options import EngineOptions, LongOptions
from bertcli.cli.reading import OF_VECTORS, READINGS, Given, Reading
from bertcli.cli.request import complete, endings
from bertcli.cli.results import TaskResults
from bertcli.extensions.declared import CommandParts
from bertcli.tasks.registry import TaskSpec
from bertcli.tasks.request import begin

logger = logging.getLogger("bertcli")


def command_parts(spec: TaskSpec) -> CommandParts:
    """The parts of a task's command; the docstring of its options is the help."""
    reading = READINGS[spec.reads] if spec.arrays is None else OF_VECTORS
    groups = {
        "texts": reading.texts,
        "model": reading.model,
        "output": reading.output,
        "long": LongOptions,
        "engine": EngineOptions,
        "options": spec.options,
    }
    return CommandParts(spec.options.__doc__, groups, partial(run, spec, reading), endings(spec, spec.options()))


def run(spec: TaskSpec, reading: Reading, **groups: Any) -> None:
    """Run a task on the texts of the options, and write its results."""
    given = Given(**groups)
    request = complete(spec, reading, given)
    task: Any = begin(request)
    gives_vectors = spec.arrays is not None
    note_untrained(given.model, task.model, spec.needs(request.options).trained)
    if gives_vectors:
        logger.info("%s.", task.summary)
    results = TaskResults(request, task, given)
    if spec.arrays is not None and given.output.ending in spec.arrays(request.options):
        from bertcli.cli.vectors import vector_form

        results.write_vectors(vector_form(request, task, given.output))
    else:
        results.write_records(spec.table(request.options))
