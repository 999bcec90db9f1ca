"""The labelled texts that the view probe reads: their options, and how they are read from a file.

`bertcli evaluate` reads its DATA with the same reader (evaluate/load/data_file.py), but has options of its own.
"""

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from bertcli.cli.options import wrong
from bertcli.tasks.options import delimiter_option, no_header_option, option
from bertcli.wings.evaluate.options import Evaluate, TaskName
from bertcli.wings.interpret.specs.probe import ProbeOptions

if TYPE_CHECKING:
    from bertcli.files.texts import Texts

logger = logging.getLogger("bertcli")


@dataclass(frozen=True, eq=False, repr=False)
class LabelledTextOptions:
    """The texts, and what is true of them."""

    input: str | None = option(
        None, "FILE", "Labelled texts: .csv, .tsv, .jsonl or .parquet; with --words .jsonl, or CoNLL's columns.",
        "-i", "--input", panel="Input",
    )  # fmt: skip
    column: str | None = option(
        None, "NAME", "The field, or the number of the column, of texts or words.", panel="Input"
    )
    pair_column: str | None = option(None, "NAME", "The field of second texts.", panel="Input")
    label_column: str | None = option(None, "NAME", "The field, or the column, of labels or tags.", panel="Input")
    cluster: str | None = option(
        None, "NAME", "Keep texts with the same value in this field in one fold, and resample them together.",
    )  # fmt: skip
    no_header: bool = no_header_option(panel="Input")
    delimiter: str | None = delimiter_option(panel="Input")


class LabelledTexts(NamedTuple):
    """Texts, or with --words lists of words, as many labels, or lists of tags, and what each is resampled with."""

    texts: "Texts | list[list[str]]"
    labels: list[Any]
    clusters: list[str] | None


def read_labelled(data: LabelledTextOptions, options: ProbeOptions) -> LabelledTexts:
    """Read the file. Rows without a label are left out like unusable ones, and a note has their number.

    Wrong usage is a typer.BadParameter.
    """
    if data.input is None:
        raise wrong("--input", "give a file of labelled texts (-i).")
    from bertcli.files.texts import Texts
    from bertcli.wings.evaluate.load.data_file import read
    from bertcli.wings.evaluate.load.labelled import WAY_ON

    columns = {name: value for name, value in vars(data).items() if name != "input"}
    task: TaskName = "tag" if options.words else "classification"
    read_options = Evaluate(task=task, keep_going=options.keep_going, **columns)
    labelled = read(data.input, read_options, any_tag=options.words)
    if labelled.note:
        logger.info("%s", labelled.note)
    rows = []
    clusters: list[str] | None = [] if labelled.clusters else None
    for number, row in enumerate(labelled.rows):
        if row.label == "":
            labelled.left_out.add(f"{row.location}: there is no label.")
        else:
            rows.append(row)
            if clusters is not None:
                clusters.append(labelled.clusters[number])
    if labelled.left_out.count:
        logger.info("%d left out; the first: %s", labelled.left_out.count, labelled.left_out.first)
    if options.words:
        words, tags = [row.label.words for row in rows], [row.label.tags for row in rows]
        return LabelledTexts(words, tags, clusters)
    texts = Texts(rows, at_hand=True, count=len(rows), way_on=WAY_ON)
    return LabelledTexts(texts, [row.label for row in rows], clusters)
