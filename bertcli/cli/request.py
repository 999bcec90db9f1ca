"""The request of a task's command, made of its options; what cannot be read or written is refused before any work.

reading.py says what each kind of task reads, model.py opens the model, results.py writes what comes of the request.
"""

import logging
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from bertcli.cli.inputs import ALL, files_of
from bertcli.cli.model import open_model
from bertcli.cli.options import wrong
from bertcli.cli.output import check_folder, is_folder
from bertcli.cli.reading import Given, Reading
from bertcli.errors import BertcliError
from bertcli.extensions.of_kinds import fitting
from bertcli.files.files_beside import check_output
from bertcli.files.formats import LINES, PAGE, TABLES
from bertcli.names import MASKED_SAMPLE
from bertcli.tasks.registry import TaskSpec
from bertcli.tasks.request import Request

if TYPE_CHECKING:
    from bertcli.files.texts import Texts

logger = logging.getLogger("bertcli")


def complete(spec: TaskSpec, reading: Reading, given: Given) -> Request:
    """Make the request of a task's command, and refuse what cannot be read or written.

    Wrong usage is a typer.BadParameter.
    """
    options, output = reading.options(given), given.output.output
    allowed, needs = endings(spec, options), spec.needs(options)
    if needs.sample is None and given.model.model is None:
        such = needs.fitting or fitting(needs.task)
        raise wrong(
            "--model",
            f"there is no bundled model for {needs.task}; give one that fits{f', such as {such}' if such else ''}.",
        )
    texts = reading.open(given)
    if texts.kept:
        texts = without_clashes(texts, given, spec, options)
    if spec.table(options).rewritten is not None and is_folder(output):
        check_folder(output, given.texts.input or [])
    elif output is not None:
        check_output(output, allowed)
    if given.long.resume:
        check_resumable(given, texts, allowed)
    if texts.files and not options.keep_going:
        check_rows(texts)
    prompt_name = getattr(options, "prompt_name", None)
    open_named = partial(open_model, given.model, needs.sample or MASKED_SAMPLE, given.engine, prompt_name)
    return Request(spec, replace(options, workers=options.workers or "auto"), texts, open_named, output)


def endings(spec: TaskSpec, options: Any) -> tuple[str, ...]:
    """The endings of files that can hold a task's results."""
    table = spec.table(options)
    page = (PAGE,) if table.on_page else ()
    lines = (LINES,) if table.line_of is not None else ()
    arrays = spec.arrays(options) if spec.arrays is not None else ()
    return tuple(dict.fromkeys((*lines, *TABLES, *page, *arrays)))


def without_clashes(texts: "Texts", given: Given, spec: TaskSpec, options: Any) -> "Texts":
    """Keep no field of the input whose name results have for another. Wrong usage is a typer.BadParameter."""
    own = {name for name in spec.record(options) if not name.endswith("?")}
    if given.texts.id_column is not None or spec.arrays is not None:
        own.add("id")
    own |= {"error", *spec.table(options).in_files.file_columns(own_ids="id" in own)}
    clashing = [name for name in texts.kept if name in own]
    if clashing and given.texts.keep != [ALL]:
        raise wrong("--keep", f"the results have a field {clashing[0]!r} of their own: rename that of the input.")
    for name in clashing:
        logger.info("the field %r is not kept: the results have one of that name.", name)
    return replace(texts, kept=tuple(name for name in texts.kept if name not in own))


def check_resumable(given: Given, texts: "Texts", allowed: tuple[str, ...]) -> None:
    """Refuse --resume where it cannot work. Wrong usage is a typer.BadParameter."""
    if given.output.output is None:
        raise wrong("--resume", "--resume needs --output: only a result in a file can be continued.")
    if files_of(texts) is None:
        raise BertcliError("A pipe cannot be read a second time, so --resume needs the texts in a file (--input).")
    if given.output.is_page:
        works = ", ".join(allowed[:-1])
        why = f"a {PAGE} page is written at the end, so --resume does not go with it; it works with {works}."
        raise wrong("--resume", why)


def check_rows(texts: "Texts") -> int:
    """Read files to their ends before any work, so that a bad row is told at once; a pipe is read only once.

    Returns the number of texts; 0 for a pipe. Reading takes a small part of the time of computing. Errors: BertcliError
    naming the first row that cannot be used.
    """
    return sum(1 for _ in texts.rows) if texts.files else texts.count or 0
