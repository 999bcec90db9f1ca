"""bertcli classify"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import redirect_stdout
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from bertcli.cli.command import command
from bertcli.cli.job import MASKED_SAMPLE, SENTIMENT_SAMPLE, TABLES, Job
from bertcli.cli.options import IdColumn, option
from bertcli.files.table import Cell, Table, cell
from bertcli.report import Column

if TYPE_CHECKING:
    from bertcli.tasks import Accuracy, Progress, RecordStream

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
    job: Job,
    top_k: Annotated[
        int | None, option(None, "--top-k", min=1, metavar="K", help="Show only the K best labels. (default: all)")
    ] = None,
    head: Annotated[
        Literal["classifier", "nsp"] | None,
        option(None, "--head", metavar="HEAD", help="classifier, or nsp: does the second text follow the first?"),
    ] = None,
    activation: Annotated[
        Literal["softmax", "sigmoid", "none"] | None,
        option(
            None,
            "--activation",
            metavar="NAME",
            help="Scores by softmax, sigmoid or none (default: what the model was made for).",
        ),
    ] = None,
    candidates: Annotated[
        str | None,
        option(
            None, "--candidates", metavar="A,B,C", help="Score these labels of your own, with a model of entailment."
        ),
    ] = None,
    template: Annotated[
        str | None,
        option(
            None,
            "--template",
            metavar="TEXT",
            help="The sentence that takes a candidate at {}. (default: This example is {}.)",
        ),
    ] = None,
    multi_label: Annotated[
        bool, option(None, "--multi-label", help="Several candidates may hold, each with a score of its own.")
    ] = False,
    choices: Annotated[
        bool,
        option(
            None,
            "--choices",
            help="The arguments after the text (with --input: all) are choices: score which is right.",
        ),
    ] = False,
    id_column: IdColumn = None,
    label_column: Annotated[
        str | None,
        option(
            None,
            "--label-column",
            metavar="NAME",
            help="The field with the true label (name or index); also report accuracy, precision, recall and F1.",
        ),
    ] = None,
) -> None:
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

    A .csv or .parquet file has a row for each label of a text: index, id (with
    --id-column), text, text_pair, label, score, true_label (with --label-column),
    error (with --keep-going).

    With --label-column each record has "true_label", and a report follows the
    table, or is printed on stdout with -o; with --format json or jsonl on stderr.
    """
    own = " --choices" if choices else " --candidates" if candidates is not None else ""
    if own and label_column is not None:
        raise typer.BadParameter("accuracy is for the model's own labels.", param_hint="--label-column")
    job, chosen = _choices(job) if choices else (job, None)
    how = {"top_k": top_k, "head": head, "activation": activation, "candidates": candidates, "template": template,
           "multi_label": multi_label, "choices": chosen}  # fmt: skip
    columns = {"id_column": id_column, "label_column": label_column}
    options = {f"--{name.replace('_', '-')}": value for name, value in (how | columns).items()}
    sample = None if own else MASKED_SAMPLE if head == "nsp" else SENTIMENT_SAMPLE
    run = job.begin(f"classify{own}", options, sample=sample, endings=TABLES, **columns)
    from bertcli import tasks

    def begin(progress: Progress) -> RecordStream:
        return tasks.classify(run.model, run.texts, start=progress, **how, **job.reading)  # type: ignore[arg-type]

    accuracy = tasks.Accuracy.of(run.model, head) if label_column else None
    progress = run.records(Table(COLUMNS, _rows), begin, accuracy)
    if accuracy:
        _print_report(accuracy, to_stdout=job.output.format == "table")
    run.end(progress)


def _choices(job: Job) -> tuple[Job, list[str]]:
    """The job with its texts, and the choices that follow the text among its arguments."""
    given = job.texts.texts or []
    texts = None if job.texts.input else given[:1]
    choices = given if texts is None else given[1:]
    if not choices:
        raise typer.BadParameter(
            "give the text and after it the choices; with --input only the choices.", param_hint="--choices"
        )
    return replace(job, texts=replace(job.texts, texts=texts)), choices


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
