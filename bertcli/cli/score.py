"""bertcli score"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bertcli.cli.command import command
from bertcli.cli.job import Job, run_records
from bertcli.cli.options import InputOptions, LengthOptions, LongOptions, ModelOptions, OutputOptions, WorkOptions
from bertcli.cli.running import MASKED_SAMPLE, open_model, prepare
from bertcli.output.table import Cell, Column, Table

if TYPE_CHECKING:
    from bertcli.tasks import RecordStream, Tally

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
    long: LongOptions,
    target: Annotated[
        str | None,
        typer.Option(metavar="TEXT", help="The true sentence: score only the tokens that the text has masked."),
    ] = None,
) -> None:
    """Show how likely each word of a text is, given all the others.

    bertcli score "The cat sat on the mat."
    bertcli score "The cat sat on the mat." "The cat sat on the moon."
    bertcli score -i sentences.txt --format jsonl
    bertcli score -i sentences.txt -o scores.jsonl --resume
    bertcli score "The cat [MASK] on the mat." --target "The cat sat on the mat."

    Each token is masked in turn. The loss is the mean negative log-probability,
    the pseudo-perplexity is exp(loss): the lower, the more likely the text.
    """
    prepare(work)
    from bertcli.output.records import ENDINGS

    job = Job("score", texts, length, output, work, long, {"--target": target})
    source = job.read(ENDINGS)
    opened = open_model(model, MASKED_SAMPLE)
    from bertcli import tasks

    def begin(tally: Tally) -> RecordStream:
        return tasks.score(opened, source, target=target, start=tally, **job.reading)

    job.end(run_records(job, source, opened, Table(COLUMNS, _rows), begin))


def _rows(record: Mapping[str, Any]) -> Iterator[tuple[Cell, ...]]:
    """A row for every token, and one for all of them."""
    if "error" in record:
        yield record["index"], record["error"], None, None, None
        return
    for token in record["tokens"]:
        yield record["index"], token["token"], token["log_prob"], None, None
    yield record["index"], "(all)", None, record["loss"], record["pseudo_perplexity"]
