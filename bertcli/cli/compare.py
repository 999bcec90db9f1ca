"""How similar a few texts are: what `bertcli encode --similarity` does."""

from __future__ import annotations

from pathlib import Path

from bertcli.cli.options import OutputOptions
from bertcli.output.draft import Draft
from bertcli.output.records import record_output
from bertcli.output.table import Column as Heading
from bertcli.output.table import Table
from bertcli.output.vectors import WRITERS, Column
from bertcli.tasks import Block, similarity
from bertcli.tasks.similarity import cosines, vectors_of


def compare(blocks: list[Block], output: OutputOptions, as_array: bool) -> None:
    """Write the cosines of all pairs of texts: as records, or as an array "cosine"."""
    count = sum(len(block.items) for block in blocks)
    if output.output and as_array:
        with Draft(output.output, None, resume=False) as draft:
            file = WRITERS[Path(output.output).suffix.lower()](draft, [Column("cosine", "<f4", count)])
            for rows in cosines(vectors_of(blocks)):
                file.append({"cosine": rows})
            draft.publish(file.finish())
        return
    numbers = tuple(Heading(str(index), number=True) for index in range(count))
    table = Table(
        (Heading("index", number=True), Heading("text"), *numbers),
        lambda record: [(record["index"], record["text"], *record["cosine"])],
    )
    with record_output(output.format, output.output, table) as write:
        for record in similarity(blocks):
            write(record)
