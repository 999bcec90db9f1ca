"""bertcli classify"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import redirect_stdout
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from bertcli.cli.command import command
from bertcli.cli.job import Job, run_records
from bertcli.cli.options import InputOptions, LengthOptions, LongOptions, ModelOptions, OutputOptions, WorkOptions
from bertcli.cli.running import MASKED_SAMPLE, SENTIMENT_SAMPLE, open_model, prepare
from bertcli.output.table import Cell, Column, Table, cell

if TYPE_CHECKING:
    from bertcli.tasks import Accuracy, RecordStream, Tally

COLUMNS = (
    Column("index", number=True, varying=True),
    Column("text"),
    Column("text pair", optional=True),
    Column("label"),
    Column("score", number=True),
)

REPORT = (
    Column("label"),
    Column("precision", number=True),
    Column("recall", number=True),
    Column("F1", number=True),
    Column("support", number=True),
)


@command("classify")
def classify(
    texts: InputOptions,
    length: LengthOptions,
    model: ModelOptions,
    output: OutputOptions,
    work: WorkOptions,
    long: LongOptions,
    top_k: Annotated[
        int | None,
        typer.Option(min=1, metavar="K", help="Show only the K best labels. (default: all)", show_default=False),
    ] = None,
    head: Annotated[
        Literal["classifier", "nsp"] | None,
        typer.Option(
            metavar="HEAD", help="classifier, or nsp: does the second text follow the first?", show_default=False
        ),
    ] = None,
    activation: Annotated[
        Literal["softmax", "sigmoid", "none"] | None,
        typer.Option(
            metavar="NAME",
            help="Scores by softmax, sigmoid or none (default: what the model was made for).",
            show_default=False,
        ),
    ] = None,
    label_column: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="The field with the true label (name or index); also report accuracy, precision, recall and F1.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Label texts, or say whether one text follows another.

    bertcli classify "I loved every minute of it."
    bertcli classify -i reviews.csv --column review -o labels.jsonl
    cat reviews.txt | bertcli classify --format jsonl
    bertcli classify -i test.csv --label-column label -o labels.jsonl
    bertcli classify --head nsp "It began to rain." --text-pair "She ran inside."
    bertcli classify -m my-model --top-k 1 "How do I get my money back?"

    Scores are the softmax over all labels; for a multi-label model or a single
    label the sigmoid of each; for regression the raw outputs.

    With --label-column each record has "true_label", and a report follows the
    table, or is printed on stdout with -o; with --format json or jsonl on stderr.
    """
    prepare(work)
    from bertcli.output.records import ENDINGS

    options = {"--top-k": top_k, "--head": head, "--activation": activation, "--label-column": label_column}
    job = Job("classify", texts, length, output, work, long, options)
    source = job.read(ENDINGS, label_column=label_column)
    opened = open_model(model, MASKED_SAMPLE if head == "nsp" else SENTIMENT_SAMPLE)
    from bertcli import tasks

    def begin(tally: Tally) -> RecordStream:
        return tasks.classify(
            opened, source, top_k=top_k, head=head, activation=activation, start=tally, **job.reading
        )  # fmt: skip

    accuracy = tasks.Accuracy.of(opened, head) if label_column else None
    tally = run_records(job, source, opened, Table(COLUMNS, _rows), begin, accuracy)
    if accuracy:
        _print_report(accuracy, to_stdout=output.format == "table")
    job.end(tally)


def _print_report(accuracy: Accuracy, to_stdout: bool) -> None:
    from bertcli.report import print_table  # brings rich

    rows = [[cell(value) for value in score] for score in accuracy.scores()]
    with redirect_stdout(sys.stdout if to_stdout else sys.stderr):
        print()
        print_table(REPORT, rows)


def _rows(record: Mapping[str, Any]) -> Iterator[tuple[Cell, ...]]:
    if "error" in record:
        yield record["index"], record["text"], None, record["error"], None
        return
    for label in record["labels"]:
        yield record["index"], record["text"], record["text_pair"], label["label"], label["score"]
