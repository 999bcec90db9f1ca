"""bertcli rank"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from bertcli.cli.job import Job, read_texts
from bertcli.cli.options import InputOptions, argument, wrong
from bertcli.files.formats import TABLES
from bertcli.report.tables import Cell, Table
from bertcli.report.terminal import Column
from bertcli.tasks.options import option
from bertcli.tasks.rank import RankOptions

if TYPE_CHECKING:
    from bertcli.files.texts import Texts

COLUMNS = (
    Column("query", varying=True),
    Column("corpus id", number=int),
    Column("score", number=float),
    Column("text"),
)


@dataclass(frozen=True)
class _Documents(InputOptions):
    """A query and the documents to rank; or rows that hold both."""

    texts: list[str] | None = argument(
        None, "[QUERY] [DOCUMENT]...", "The query, and the documents; if none, one per line from standard input."
    )
    column: str | None = option(None, "NAME", "The field that holds the document. (default: text)", panel="Input")
    query_column: str | None = option(
        None, "NAME", "The field that holds the query; the rows of one query stand together.", panel="Input"
    )
    text_pair: None = field(default=None, init=False)
    pair_column: None = field(default=None, init=False)


@dataclass(frozen=True)
class _Rows(InputOptions):
    """Rows that hold a query and a document."""

    column: str | None = option(None, "", "", "--query-column")
    pair_column: str | None = option(None, "", "", "--column")


@dataclass(frozen=True)
class _Job(Job):
    texts: _Documents

    def read(self, keep_going: bool, id_column: str | None = None, label_column: str | None = None) -> "Texts":
        options = self.texts
        if options.query_column is not None:
            if options.texts:
                raise wrong("QUERY", "give the query or --query-column, not both.")
            rows = _Rows(None, options.input, options.format_in, options.query_column, None, options.column or "text")
            return read_texts(rows, self.output, keep_going=keep_going, called="row")
        if not options.texts:
            raise wrong("QUERY", "give the query, or the field that holds it (--query-column).")
        query, *documents = options.texts
        single = InputOptions(documents or None, options.input, options.format_in, options.column)
        source = read_texts(single, self.output, keep_going=keep_going, called="document")
        from bertcli.tasks.compute.rank import WithQuery

        return WithQuery(query, source)


def rank(job: _Job, wanted: RankOptions) -> None:
    """Rank documents by how well they answer a query: a cross-encoder, or late interaction.

    bertcli rank -m cross-encoder/ms-marco-MiniLM-L6-v2 tea "We sell it." Rain
    bertcli rank -m my-model "tea shop" -i documents.jsonl --top-k 10
    cat documents.txt | bertcli rank -m my-model "tea shop" --format jsonl
    bertcli rank -m my-model -i pairs.tsv --query-column query --column passage

    The score is the model's own: often a probability, sometimes any number.
    corpus_id is the number of the document in the input, from 0. With
    --query-column each row holds a query and a document, and the documents of a
    query, which stand together, are ranked among each other. A .csv, .tsv or
    .parquet file has the rows of the table.

    A cross-encoder with one output is needed, or a model of late interaction
    (ColBERT). Of a pair that is too long a cross-encoder cuts the longer side
    first; the other cuts queries and documents each at a length of its own.
    """
    run = job.begin("rank", wanted, sample=None, endings=TABLES)
    from bertcli.tasks.compute.rank import plan, ranked

    run.raise_if_failed(run.write_records(partial(ranked, plan(run.model, run.wanted)), Table(COLUMNS, _rows)))


def _rows(record: Mapping[str, Any]) -> Iterator[tuple[Cell, ...]]:
    yield record["query"], record["corpus_id"], record["score"], record["text"]
