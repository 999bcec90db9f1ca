"""Files that are written again with other texts, by commands whose results are texts (tag --redact).

A folder in, a folder out; a table in, the table out, if -o has its ending. files/write/rewritten.py does it.
"""

import logging
import os
import sys
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from functools import partial

from bertcli.cli.inputs import columns_of, files_of, names_columns
from bertcli.cli.options import wrong
from bertcli.cli.output import is_folder
from bertcli.cli.reading import Given
from bertcli.errors import BertcliError, number_of
from bertcli.files.read.inputs import ending_of_input
from bertcli.files.texts import Texts
from bertcli.files.write.resumable_output import ResumableOutput
from bertcli.files.write.rewritten import PARQUET, ROWS, FolderForm, RewrittenForm, count_labels, kind_of
from bertcli.report.tables import Table
from bertcli.report.terminal import visible
from bertcli.report.written import say_written

logger = logging.getLogger("bertcli")


def form_of(given: Given, texts: Texts, table: Table) -> RewrittenForm | FolderForm | None:
    """The form in which what was read is written again; None where the output is another kind of file.

    Wrong usage is a typer.BadParameter.
    """
    form = folder_form(given, texts, table) or rewritten_form(given, texts, table)
    if form is not None and given.texts.limit is not None:
        raise wrong("--limit", "a file is written again as a whole: leave out --limit.")
    return form


def publish(form: RewrittenForm | FolderForm, output: str, segments: ResumableOutput) -> Callable[[], None]:
    """Write the result of the segments; returns what says so."""
    if isinstance(form, FolderForm):
        with segments.folder_result() as folder:
            form.write(folder, segments)
        return partial(say_folder_written, output, len(form.sources), count_labels(segments))
    with segments.result() as stream:
        form.write(stream, segments)
    return partial(say_written, output)


def folder_form(given: Given, texts: Texts, table: Table) -> FolderForm | None:
    """The form of a folder that is written of a folder; None if the output is a file."""
    if not is_folder(given.output.output):
        return None
    sources = [str(file) for file in files_of(texts) or ()]
    for source in sources:
        # Before any work.
        kind_of(source)
    return FolderForm(given.texts.input[0], sources, columns_of(given.texts), table)


def rewritten_form(given: Given, texts: Texts, table: Table) -> RewrittenForm | None:
    """The form of tables whose other columns stay; None, with a note, where the output is no table of their kind."""
    ending, is_rows = given.output.ending, given.output.ending in (*ROWS, PARQUET)
    sources = files_of(texts)
    if not is_rows or given.texts.texts:
        return None
    if sources is None:
        if names_columns(given.texts):
            logger.info("of a pipe only the new texts are written; with --input FILE its other columns are, too.")
        return None
    kinds = {ending_of_input(str(source), rows_piped=False) for source in sources}
    if kinds != {ending}:
        if kinds & {*ROWS, PARQUET}:
            logger.info("only the new texts are written; other columns are, too, in a file of the same ending.")
        return None
    if ending == PARQUET and len(sources) > 1:
        raise BertcliError("Several .parquet files are not written as one: give one file, or a folder (--input).")
    return RewrittenForm([str(source) for source in sources], columns_of(given.texts), table)


def say_folder_written(folder: str, sources: int, labels: Counter[str]) -> None:
    """Say on standard error how many files were written, how many entities of each label are hidden, and the limits."""
    counts = labels.most_common()
    said = ", ".join(f"{count:,} of {label}" for label, count in counts[1:])
    if counts:
        label, count = counts[0]
        entities = "1 entity" if count == 1 else f"{count:,} entities"
        said = f"{entities} of {label}" + (f", {said}" if said else "")
    line = f"Wrote {number_of(sources, 'file')} to {folder.rstrip(os.sep)}{os.sep}: {said or 'no entities'}."
    # A closed standard error is no reason to fail: the files are there.
    with suppress(OSError):
        print(visible(f"{line} A name that the model misses stays in the text."), file=sys.stderr, flush=True)
