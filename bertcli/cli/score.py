"""bertcli score"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any

import typer

from bertcli.cli.command import command
from bertcli.cli.options import InputOptions, LengthOptions, ModelOptions, OutputOptions, WorkOptions
from bertcli.cli.running import MASKED_SAMPLE, counted, open_model, prepare, read_texts
from bertcli.output.table import Cell, Column, Table

COLUMNS = (
    Column("index", number=True, varying=True),
    Column("token"),
    Column("log prob", number=True),
    Column("loss", number=True),
    Column("pseudo-perplexity", number=True),
)


@command("score")
def score(
    texts: InputOptions,
    length: LengthOptions,
    model: ModelOptions,
    output: OutputOptions,
    work: WorkOptions,
    target: Annotated[
        str | None,
        typer.Option(metavar="TEXT", help="The true sentence: score only what the masks in the text stand for."),
    ] = None,
) -> None:
    """Say how likely each word of a text is, given all the others.

    bertcli score "The cat sat on the mat."
    bertcli score "The cat sat on the mat." "The cat sat on the moon."
    bertcli score -i sentences.txt --format jsonl
    bertcli score "The cat [MASK] on the mat." --target "The cat sat on the mat."

    Each token is masked in turn. The loss is the mean negative log-probability,
    the pseudo-perplexity exp(loss): the lower, the likelier the text.
    """
    prepare(work)
    source = read_texts(texts)
    from bertcli.output.records import record_output

    with record_output(output.format, output.output, Table(COLUMNS, _rows)) as write:
        opened = open_model(model, MASKED_SAMPLE)
        from bertcli import tasks

        records = tasks.score(
            opened, source, target=target,
            max_length=length.max_length, truncation=length.truncation, batch_tokens=work.batch_tokens,
        )  # fmt: skip
        for record in counted(records, "score", texts, output):
            write(record)


def _rows(record: Mapping[str, Any]) -> Iterator[tuple[Cell, ...]]:
    """A row for every token, and one for them all."""
    for token in record["tokens"]:
        yield record["index"], token["token"], token["log_prob"], None, None
    yield record["index"], "(all)", None, record["loss"], record["pseudo_perplexity"]
