"""bertcli neighbors"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any

import typer

from bertcli.cli.command import command
from bertcli.cli.job import MASKED_SAMPLE, open_model, read_texts
from bertcli.cli.options import InputOptions, ModelOptions, OutputOptions
from bertcli.files.table import Cell, Table
from bertcli.report import Column

COLUMNS = (
    Column("of", varying=True),
    Column("token"),
    Column("id", number=True),
    Column("cosine", number=True),
)


@command("neighbors")
def neighbors(
    model: ModelOptions,
    output: OutputOptions,
    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[WORD]...", help="Words; if none, one per line from standard input.", show_default=False
        ),
    ] = None,
    input: Annotated[
        str | None,
        typer.Option(
            "-i",
            "--input",
            metavar="FILE",
            help="Read words from a file, one per line; - is standard input.",
            show_default=False,
        ),
    ] = None,
    top_k: Annotated[int, typer.Option(min=1, metavar="K", help="How many neighbors per word.")] = 10,
) -> None:
    """Find the word pieces nearest to a word in the embedding space, by cosine.

    bertcli neighbors king
    bertcli neighbors tea coffee --top-k 3 --format json
    bertcli neighbors -m bert-base-uncased -- ing '##ing'

    A word must be a single piece of the vocabulary; for a word of several
    pieces the error message lists them.
    """
    source = read_texts(InputOptions(texts=words, input=[input] if input else None), output, called="word")
    from bertcli.files.records import record_output

    with record_output(output.format, output.output, Table(COLUMNS, _rows)) as write:
        opened = open_model(model, MASKED_SAMPLE)
        from bertcli.tasks.neighbors import neighbors

        for record in neighbors(opened, (one.text for one in source), top_k=top_k):
            write(record)


def _rows(record: Mapping[str, Any]) -> Iterator[tuple[Cell, ...]]:
    for found in record["neighbors"]:
        yield record["token"], found["token"], found["id"], found["cosine"]
