"""rank: documents in the order in which they answer a query."""

from collections.abc import Iterable, Iterator, Mapping

from bertcli.lean import lean_dataclass
from bertcli.report.tables import Table
from bertcli.report.terminal import Column
from bertcli.tasks.examples import CAT, CONTEXT, QUESTION, Example, Subject
from bertcli.tasks.options import Reading, option, separated
from bertcli.tasks.registry import DOCUMENTS, Fields, Needs, TaskSpec


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


@lean_dataclass
class RankOptions(Reading):
    """Rank documents by how well they answer a query.

    bertcli rank -m cross-encoder/ms-marco-MiniLM-L6-v2 tea "We sell it." Rain
    bertcli rank -m my-model "tea shop" -i documents.jsonl --top-k 10
    cat documents.txt | bertcli rank -m my-model "tea shop" --format jsonl
    bertcli rank -m BAAI/bge-m3 tea Rain --combine dense=0.4,sparse=0.2,late=0.4
    bertcli rank -m my-model -i pairs.tsv --query-column query --column passage

    The score is the model's own: often a probability, sometimes any number.
    corpus_id is the number of the document in the input, from 0. With
    --query-column each row holds a query and a document, and the documents of a
    query, which stand together, are ranked among each other. A .csv, .tsv or
    .parquet file has the rows of the table.

    A cross-encoder with one output is needed, or a model of late interaction
    (ColBERT, bge-m3) or of sparse vectors (SPLADE). A cross-encoder cuts the
    longer side of a pair first; the others cut queries and documents each at
    its own length.

    bge-m3 ranks by late interaction: its score is the mean, over the query's
    tokens, of the largest product with one of the document's. --combine takes
    its three scores together, divided by the sum of the weights.
    """

    documents: Iterable[str] | None = None
    top_k: int | None = option(None, "K", "Show only the K best of each query. (default: all)", least=1)
    combine: Mapping[str, float] | None = option(
        None, "NAME=WEIGHT,...",
        "Of bge-m3: the mean of its scores with these weights, as in dense=0.4,sparse=0.2,late=0.4. (default: late)",
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
    """Yield a query and two documents, one of which answers it."""
    yield Example("rank", [QUESTION, CONTEXT, CAT])


SPEC = TaskSpec(
    RankOptions,
    reads=DOCUMENTS,
    needs=lambda options: Needs("rank", "classifier", None, "-m cross-encoder/ms-marco-MiniLM-L6-v2"),
    record=record,
    table=lambda options: Table(COLUMNS, ""),
    examples=examples,
    place=7,
)
