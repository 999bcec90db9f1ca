"""bertcli classify"""

import sys
from collections.abc import Iterator, Mapping
from contextlib import redirect_stdout
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from bertcli.cli.job import Job
from bertcli.cli.options import MASKED_SAMPLE, SENTIMENT_SAMPLE, by_name, id_column_option, wrong
from bertcli.files.formats import TABLES
from bertcli.report.tables import Cell, Table, cell
from bertcli.report.terminal import Column
from bertcli.tasks.classify import ClassifyOptions
from bertcli.tasks.options import option

if TYPE_CHECKING:
    from bertcli.tasks.compute.classify import Accuracy

COLUMNS = (
    Column("index", number=int, varying=True),
    Column("text"),
    Column("text pair", optional=True),
    Column("label"),
    Column("score", number=float),
)

PRINTED = (COLUMNS[0], Column("id", optional=True), *COLUMNS[1:], Column("true label", optional=True))

REPORT = (
    Column("label"),
    Column("precision", number=True),
    Column("recall", number=True),
    Column("F1", number=True),
    Column("support", number=True),
)


@dataclass(frozen=True)
class FieldOptions:
    """What the texts' fields and the arguments are."""

    choices: bool = option(
        False, "", "The arguments after the text (with --input: all) are choices: score which is right."
    )
    id_column: str | None = id_column_option()
    label_column: str | None = option(
        None, "NAME", "The field with the true label (name or index); also report accuracy, precision, recall and F1."
    )


def classify(job: Job, wanted: ClassifyOptions, fields: FieldOptions) -> None:
    """Label texts, or say whether one text follows another.

    bertcli classify "I loved every minute of it."
    bertcli classify -i reviews.csv --column review -o labels.jsonl
    cat reviews.txt | bertcli classify --format jsonl
    bertcli classify -i test.csv --label-column label -o labels.jsonl
    bertcli classify -i reviews.csv --id-column id -o labels.csv --resume
    bertcli classify --head nsp "It began to rain." --text-pair "She ran inside."
    bertcli classify -m my-model --top-k 1 "How do I get my money back?"
    bertcli classify -m my-nli-model --candidates "sports,politics" "They won."
    bertcli classify -m my-swag-model "She sat." --choices "She ate." "It rained."

    Scores are the softmax over all labels; for a multi-label model or a single
    label the sigmoid of each; for regression the raw outputs.

    With --candidates the score says how far the text entails "This example is
    A."; with --choices, how well each choice goes with the text. No model for
    these is bundled (-m).

    A .csv, .tsv or .parquet file has a row for each label of a text: index, id
    (with --id-column), text, text_pair, label, score, true_label (with
    --label-column), and error (of a text that could not be used, with --keep-going).

    With --label-column each record has "true_label", and a report follows the
    table, or is printed on stdout with -o; with --format json or jsonl on stderr.
    """
    command = "classify"
    sample: str | None = MASKED_SAMPLE if wanted.head == "nsp" else SENTIMENT_SAMPLE
    if fields.choices or wanted.candidates is not None:
        command, sample = "classify --choices" if fields.choices else "classify --candidates", None
        if fields.label_column is not None:
            raise wrong("--label-column", "accuracy is for the model's own labels.")
    job, choices = _choices(job) if fields.choices else (job, None)
    wanted, options = replace(wanted, choices=choices), {**by_name(fields), "--choices": choices}
    run = job.begin(command, wanted, options, sample=sample, endings=TABLES)
    from bertcli.tasks.compute.classify import Accuracy, plan
    from bertcli.tasks.compute.run import results

    accuracy = Accuracy.of(run.model, wanted.head) if fields.label_column else None
    table = Table(PRINTED, _printed_rows) if job.output.output is None else Table(COLUMNS, _rows)
    progress = run.write_records(partial(results, plan(run.model, run.wanted)), table, accuracy)
    if accuracy:
        _print_report(accuracy, to_stdout=job.output.format == "table")
    run.raise_if_failed(progress)


def _choices(job: Job) -> tuple[Job, list[str]]:
    """The job with its texts, and the choices that follow the text among its arguments."""
    arguments = job.texts.texts or []
    texts, choices = (None, arguments) if job.texts.input else (arguments[:1], arguments[1:])
    if not choices:
        raise wrong("--choices", "give the text and after it the choices; with --input only the choices.")
    return replace(job, texts=replace(job.texts, texts=texts)), choices


def _print_report(accuracy: "Accuracy", to_stdout: bool) -> None:
    from bertcli.report.terminal import print_table  # brings rich

    rows = [[cell(value) for value in score] for score in accuracy.scores()]
    with redirect_stdout(sys.stdout if to_stdout else sys.stderr):
        print()
        print_table(REPORT, rows)


def _rows(record: Mapping[str, Any]) -> Iterator[tuple[Cell, ...]]:
    for label in record["labels"]:
        yield record["index"], record["text"], record["text_pair"], label["label"], label["score"]


def _printed_rows(record: Mapping[str, Any]) -> Iterator[tuple[Cell, ...]]:
    for index, *cells in _rows(record):
        yield index, record.get("id"), *cells, record.get("true_label")
