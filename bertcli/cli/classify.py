"""bertcli classify"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal

import typer

from bertcli.cli.command import command
from bertcli.cli.options import InputOptions, LengthOptions, ModelOptions, OutputOptions, WorkOptions
from bertcli.cli.running import MASKED_SAMPLE, SENTIMENT_SAMPLE, counted, open_model, prepare, read_texts
from bertcli.output.table import Cell, Column, Table

COLUMNS = (
    Column("index", number=True, varying=True),
    Column("text"),
    Column("text pair", varying=True),
    Column("label"),
    Column("score", number=True),
)


@command("classify")
def classify(
    texts: InputOptions,
    length: LengthOptions,
    model: ModelOptions,
    output: OutputOptions,
    work: WorkOptions,
    top_k: Annotated[
        int | None,
        typer.Option(min=1, metavar="K", help="Show the K best labels only. (default: all)", show_default=False),
    ] = None,
    head: Annotated[
        Literal["classifier", "nsp"] | None,
        typer.Option(metavar="HEAD", help="classifier, or nsp: does the second text follow?", show_default=False),
    ] = None,
    activation: Annotated[
        Literal["softmax", "sigmoid", "none"] | None,
        typer.Option(
            metavar="NAME",
            help="Scores by softmax, sigmoid or none (default: what the model is made for).",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Label texts, or say whether one text follows another.

    bertcli classify "I loved every minute of it."
    bertcli classify -i reviews.csv --column review -o labels.jsonl
    cat reviews.txt | bertcli classify --format jsonl
    bertcli classify --head nsp "It began to rain." --text-pair "She ran inside."
    bertcli classify -m my-model --top-k 1 "How do I get my money back?"

    Scores are the softmax over all labels; for a multi-label model or a single
    label the sigmoid of each; for regression the plain numbers.
    """
    prepare(work)
    source = read_texts(texts)
    from bertcli.output.records import record_output

    with record_output(output.format, output.output, Table(COLUMNS, _rows)) as write:
        opened = open_model(model, MASKED_SAMPLE if head == "nsp" else SENTIMENT_SAMPLE)
        from bertcli import tasks

        records = tasks.classify(
            opened, source, top_k=top_k, head=head, activation=activation,
            max_length=length.max_length, truncation=length.truncation, batch_tokens=work.batch_tokens,
        )  # fmt: skip
        for record in counted(records, "classify", texts, output):
            write(record)


def _rows(record: Mapping[str, Any]) -> Iterator[tuple[Cell, ...]]:
    for label in record["labels"]:
        yield record["index"], record["text"], record["text_pair"], label["label"], label["score"]
