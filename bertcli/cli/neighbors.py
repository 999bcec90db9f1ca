"""The command neighbors. tasks/compute/neighbors.py finds the word pieces."""

from collections.abc import Iterator
from dataclasses import dataclass

from bertcli.cli.inputs import read_texts
from bertcli.cli.model import open_model
from bertcli.cli.options import InputOptions, ModelOptions
from bertcli.cli.output import OutputOptions, write_results
from bertcli.names import MASKED_SAMPLE
from bertcli.report.tables import Cell, Record, Table
from bertcli.report.terminal import Column
from bertcli.tasks.options import argument, option

COLUMNS = (
    Column("word", varying=True),
    Column("token"),
    Column("id", int),
    Column("cosine", float),
)


@dataclass(frozen=True, eq=False, repr=False)
class NeighborsOptions:
    """Of which words, and how many."""

    words: list[str] | None = argument(None, "[WORD]...", "Words; if none, one per line from standard input.")
    top_k: int = option(10, "K", "How many neighbors per word. (default: 10)", least=1)


def neighbors(model: ModelOptions, output: OutputOptions, options: NeighborsOptions) -> None:
    """Find the tokens nearest to a word in the embedding space.

    bertcli neighbors king
    bertcli neighbors tea coffee --top-k 3 --format json
    bertcli neighbors -m bert-base-uncased -- ing '##ing'

    A word must be a single piece of the vocabulary; for a word of several
    pieces the error message lists them.
    """
    source = read_texts(InputOptions(texts=options.words), called="word")
    output.check(source)
    opened = open_model(model, MASKED_SAMPLE)
    from bertcli.tasks.compute.neighbors import neighbors

    records = neighbors(opened, (word.text for word in source), top_k=options.top_k)
    write_results(records, output, Table(COLUMNS, _rows))


def _rows(record: Record) -> Iterator[tuple[Cell, ...]]:
    for neighbor in record["neighbors"]:
        yield record["token"], neighbor["token"], neighbor["id"], neighbor["cosine"]
