"""bertcli classify"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import redirect_stdout
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from bertcli.cli.job import MASKED_SAMPLE, SENTIMENT_SAMPLE, TABLES, Job
from bertcli.cli.options import by_name, id_column_option, option, wrong
from bertcli.files.table import Cell, Table, cell
from bertcli.report import Column

if TYPE_CHECKING:
    from bertcli.tasks.classify import Accuracy

COLUMNS = (
    Column("index", number=int, varying=True),
    Column("text"),
    Column("text pair", optional=True),
    Column("label"),
    Column("score", number=float),
)

REPORT = (
    Column("label"),
    Column("precision", number=True),
    Column("recall", number=True),
    Column("F1", number=True),
    Column("support", number=True),
)


@dataclass(frozen=True)
class ClassifyOptions:
    """Which labels are scored, and how."""

    top_k: int | None = option(None, "K", "Show only the K best labels. (default: all)", min=1)
    head: Literal["classifier", "nsp"] | None = option(
        None, "HEAD", "classifier, or nsp: does the second text follow the first?"
    )
    activation: Literal["softmax", "sigmoid", "none"] | None = option(
        None, "NAME", "Scores by softmax, sigmoid or none (default: what the model was made for)."
    )
    candidates: str | None = option(None, "A,B,C", "Score these labels of your own, with an NLI model (zero-shot).")
    template: str | None = option(
        None, "TEXT", "The sentence that takes a candidate at {}. (default: This example is {}.)"
    )
    multi_label: bool = option(False, "", "Several candidates may hold, each with a score of its own.")
    choices: bool = option(
        False, "", "The arguments after the text (with --input: all) are choices: score which is right."
    )
    id_column: str | None = id_column_option()
    label_column: str | None = option(
        None, "NAME", "The field with the true label (name or index); also report accuracy, precision, recall and F1."
    )


def classify(job: Job, wanted: ClassifyOptions) -> None:
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
    and error (of a text that could not be used, with --keep-going).

    With --label-column each record has "true_label", and a report follows the
    table, or is printed on stdout with -o; with --format json or jsonl on stderr.
    """
    own = "choices" if wanted.choices else "candidates" if wanted.candidates is not None else ""
    sample = None if own else MASKED_SAMPLE if wanted.head == "nsp" else SENTIMENT_SAMPLE
    if own and wanted.label_column is not None:
        raise wrong("--label-column", "accuracy is for the model's own labels.")
    job, choices = _choices(job) if wanted.choices else (job, None)
    options = {**by_name(wanted), "--choices": choices}
    run = job.begin(f"classify --{own}" if own else "classify", options, sample=sample, endings=TABLES)
    from bertcli.tasks import classify as task

    accuracy = task.Accuracy.of(run.model, wanted.head) if wanted.label_column else None
    how = {key: value for key, value in asdict(wanted).items() if not key.endswith("_column")} | {"choices": choices}
    progress = run.records(task.classify, Table(COLUMNS, _rows), accuracy, **how)
    if accuracy:
        _print_report(accuracy, to_stdout=job.output.format == "table")
    run.end(progress)


def _choices(job: Job) -> tuple[Job, list[str]]:
    """The job with its texts, and the choices that follow the text among its arguments."""
    given = job.texts.texts or []
    texts = None if job.texts.input else given[:1]
    choices = given if texts is None else given[1:]
    if not choices:
        raise wrong("--choices", "give the text and after it the choices; with --input only the choices.")
    return replace(job, texts=replace(job.texts, texts=texts)), choices


def _print_report(accuracy: Accuracy, to_stdout: bool) -> None:
    from bertcli.report import print_table  # brings rich

    rows = [[cell(value) for value in score] for score in accuracy.scores()]
    with redirect_stdout(sys.stdout if to_stdout else sys.stderr):
        print()
        print_table(REPORT, rows)


def _rows(record: Mapping[str, Any]) -> Iterator[tuple[Cell, ...]]:
    for label in record["labels"]:
        yield record["index"], record["text"], record["text_pair"], label["label"], label["score"]
