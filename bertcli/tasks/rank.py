"""The task rank: its options, record and table. Its work is in compute/rank.py."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from bertcli.report.tables import Table
from bertcli.report.terminal import Column
from bertcli.tasks.examples import CAT, CONTEXT, QUESTION, Example, Subject
from bertcli.tasks.options import ReadOptions, option, separated
from bertcli.tasks.registry import DOCUMENTS, Fields, Needs, TaskSpec

# A model for `rank`, and what else there is for who has another one.
FITTING = "-m cross-encoder/ms-marco-MiniLM-L6-v2; with a sentence model use bertcli search"


def weights(text: str) -> dict[str, float]:
    """The weights in a text such as dense=0.4,late=0.6."""
    found: dict[str, float] = {}
    for part in separated(text):
        name, _, number = part.partition("=")
        try:
            weight = float(number)
        except ValueError:
            raise ValueError("give names and weights, as in dense=0.4,sparse=0.2,late=0.4.") from None
        if name in found:
            raise ValueError(f"{name} has two weights: give one.")
        found[name] = weight
    return found


@dataclass(frozen=True, eq=False, repr=False)
class RankOptions(ReadOptions):
    """Rank documents by how well they answer a query.

    bertcli rank -m cross-encoder/ms-marco-MiniLM-L6-v2 tea "A cup." "A dog."
    bertcli rank -m my-model "tea shop" -i documents.jsonl --top-k 10
    cat documents.txt | bertcli rank -m my-model "tea shop" --format jsonl
    bertcli rank -m BAAI/bge-m3 tea Rain --combine dense=0.4,sparse=0.2,late=0.4
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
    with its nearest token of the document, and the mean is the score. --combine
    takes the weighted mean of the dense, sparse and late scores.
    """

    documents: Iterable[str] | None = None
    top_k: int | None = option(None, "K", "Show only the K best of each query. (default: all)", least=1)
    combine: Mapping[str, float] | None = option(
        None, "NAME=WEIGHT,...",
        "bge-m3: rank by the weighted mean of its scores, such as dense=0.4,sparse=0.2,late=0.4. (default: late)",
        read=weights,
    )  # fmt: skip


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
)
