"""The task rank: its options, record and table. Its work is in compute/rank.py."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from bertcli.report.tables import Table
from bertcli.report.terminal import Column
from bertcli.tasks.examples import CAT, CONTEXT, QUESTION, Example, Subject
from bertcli.tasks.options import ReadOptions, option
from bertcli.tasks.registry import DOCUMENTS, Fields, Needs, TaskSpec, Use

# A model for `rank`, and what else there is for who has another one.
FITTING = "-m cross-encoder/ms-marco-MiniLM-L6-v2; with a sentence model use bertcli search"


@dataclass(frozen=True, eq=False, repr=False)
class RankOptions(ReadOptions):
    """Rank documents by how well they answer a query.

    bertcli rank -m cross-encoder/ms-marco-MiniLM-L6-v2 tea "A cup." "A dog."
    bertcli rank -m my-model "tea shop" -i documents.jsonl --top-k 10
    cat documents.txt | bertcli rank -m my-model "tea shop" --format jsonl
    bertcli rank -m my-model -i pairs.tsv --query-column query --column passage

    Give -m a cross-encoder with one output, a late-interaction model (ColBERT,
    bge-m3) or a sparse model (SPLADE). For a sentence model use bertcli search. The
    score is the model's own: a probability for many cross-encoders, any number for
    others. corpus_id is the document's number in the input, from 0.

    With --query-column each row has a query and a document; sort the rows by query.
    Documents are ranked within their query. A .csv, .tsv or .parquet file has the
    rows of the table.

    A cross-encoder that must cut a pair cuts the longer text first; other models
    cut queries and documents separately.

    bge-m3 ranks by late interaction (MaxSim): each token of the query is compared
    with its nearest token of the document, and the mean is the score.
    """

    documents: Iterable[str] | None = None
    top_k: int | None = option(None, "K", "Show only the K best of each query. (default: all)", least=1)


def record(options: RankOptions) -> Fields:
    """Records of ranked documents, best first; corpus_id is a document's number in the input."""
    return {"query": str, "corpus_id": int, "score": float, "text": str}


COLUMNS = (
    Column("query", varying=True),
    Column("corpus id", int),
    Column("score", float),
    Column("text"),
)


def examples(subject: Subject) -> Iterator[Example]:
    """Yield a query and two documents; one of them answers it."""
    yield Example("rank", [QUESTION, CONTEXT, CAT])


SPEC = TaskSpec(
    RankOptions,
    reads=DOCUMENTS,
    needs=lambda options: Needs("rank", "classifier", None, FITTING),
    record=record,
    table=lambda options: Table(COLUMNS, ""),
    examples=examples,
    position=7,
    uses=(Use("rank"), Use("late")),
    other_words=("rerank",),
)
