"""What run commands have in common: the model, the texts, the threads."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Generator, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeVar

import typer

from bertcli.blas import THREAD_VARIABLES
from bertcli.cli.options import InputOptions, ModelOptions, OutputOptions, WorkOptions
from bertcli.errors import BertcliError

if TYPE_CHECKING:
    from bertcli.inputs import Texts
    from bertcli.model import Model
    from bertcli.tasks import Tally


class Tallied(Protocol):
    """A block of results with the run's progress up to it."""

    @property
    def tally(self) -> Tally: ...


B = TypeVar("B", bound=Tallied)
MASKED_SAMPLE = "bert-mini-mlm"
SENTIMENT_SAMPLE = "bert-mini-sentiment"
logger = logging.getLogger("bertcli")


def prepare(work: WorkOptions) -> None:
    """Set the number of threads, before NumPy is loaded: libraries read it from the environment when they load."""
    if work.threads is not None:
        from bertcli.team import set_thread_count

        os.environ.update(dict.fromkeys(THREAD_VARIABLES, str(work.threads)))
        set_thread_count(work.threads)


def open_model(options: ModelOptions, sample: str) -> Model:
    """The model asked for, or the bundled sample, with a note on standard error."""
    from bertcli.model import load

    model = load(**options.wanted(sample, "no model given (-m); using the bundled %s."))
    for note in model.notes:
        logger.info("%s", note)
    return model


def read_texts(
    options: InputOptions,
    output: OutputOptions,
    id_column: str | None = None,
    label_column: str | None = None,
    keep_going: bool = False,
    called: str = "text",
) -> Texts:
    """The texts asked for: arguments, files (none of which may be the output), or stdin.

    `called` is the word for a text in messages. Wrong usage is a typer.BadParameter.
    """
    from bertcli.inputs import from_arguments, from_files, takes_columns
    from bertcli.lines import STANDARD_INPUT

    files = options.input or []
    if options.texts and files:
        raise typer.BadParameter("give texts or --input, not both.", param_hint="--input")
    if options.text_pair is not None and options.pair_column is not None:
        raise typer.BadParameter("give --text-pair or --pair-column, not both.", param_hint="--pair-column")
    columns = {
        "--column": options.column,
        "--pair-column": options.pair_column,
        "--id-column": id_column,
        "--label-column": label_column,
    }
    for name, value in columns.items():
        if value is not None and not takes_columns(files):
            raise typer.BadParameter(
                "this needs an --input file with named fields: .jsonl, .csv, .tsv or .parquet.", param_hint=name
            )
    if options.texts:
        if STANDARD_INPUT in (*options.texts, options.text_pair):
            logger.warning("the %s '-' is taken literally; use -i - to read standard input.", called)
        return from_arguments(options.texts, options.text_pair)
    if not files and (sys.stdin is None or sys.stdin.isatty()):
        raise typer.BadParameter(
            f"give a {called}, a file with --input, or pipe {called}s in, one per line.", param_hint=called.upper()
        )
    found = from_files(
        files or [STANDARD_INPUT], options.column, options.pair_column, options.text_pair,
        id_column=id_column, label_column=label_column, keep_going=keep_going,
    )  # fmt: skip
    if output.output is not None and any(_is_same(file, output.output) for file in found.files or ()):
        raise BertcliError(f"Cannot write {output.output}: the texts are read from it; choose another --output.")
    return found


def _is_same(file: str, other: str) -> bool:
    return Path(file).exists() and Path(other).exists() and Path(file).samefile(other)


def find_folder(options: ModelOptions, sample: str, weights: bool = True) -> Path:
    """The folder of the model asked for, or of the bundled sample, with a note on standard error."""
    from bertcli.hub import find_model

    return find_model(**options.wanted(sample, "no model given (-m); using the bundled %s."), weights=weights)


@contextmanager
def counted(
    blocks: Generator[B, None, None], task: str, texts: Texts, given: int | None, output: OutputOptions
) -> Iterator[Iterator[B]]:
    """`with counted(…) as blocks:` — the same blocks; a progress bar counts their texts if a terminal is free for it.

    `given` is the number of texts, if known. After an error the blocks are closed here rather than by Python's garbage
    collection, during which a Ctrl-C would be lost.
    """
    with closing(blocks):
        streams_to_terminal = output.output is None and output.format == "jsonl" and sys.stdout.isatty()
        if streams_to_terminal or not sys.stderr.isatty():
            yield blocks
            return
        from bertcli.report import progress  # brings rich

        def reached(block: B) -> tuple[int, float | None]:
            done = block.tally.texts
            return done, done / given if given else texts.share()

        with closing(progress(blocks, task, reached)) as shown:
            yield shown
