"""encode --sparse: its options, record and table. Its work is in compute/encode_sparse.py."""

from collections.abc import Iterator
from dataclasses import dataclass

from bertcli.files.texts import Pairs
from bertcli.report.tables import Record, Row, Table
from bertcli.report.terminal import Column
from bertcli.tasks.encode import TEXT_COLUMNS, filed, text_cells, text_fields
from bertcli.tasks.examples import CAT, QUESTION, Example, Subject
from bertcli.tasks.options import PromptedOptions
from bertcli.tasks.registry import MASKED_SAMPLE, TEXTS, Fields, Needs, TaskSpec


@dataclass(frozen=True, eq=False, repr=False)
class EncodeSparseOptions(PromptedOptions):
    """Options of sparse vectors; `words`: records have the pieces of the vocabulary beside their ids."""

    pairs: Pairs = None
    words: bool = False


def record(options: EncodeSparseOptions) -> Fields:
    """Records of a sparse vector: ids of the vocabulary, ascending, and their weights."""
    words: Fields = {"words": [str]} if options.words else {}
    return text_fields(options) | {"indices": [int], "values": [float], **words}


HEAVIEST = 5  # pieces that a table shows
COLUMNS = (*TEXT_COLUMNS, Column("entries", int), Column(f"{HEAVIEST} heaviest"))


def rows(record: Record) -> Iterator[Row]:
    """Yield one row, with the pieces of the largest weights."""
    heaviest = sorted(zip(record["values"], record["words"], strict=True), key=lambda entry: -entry[0])[:HEAVIEST]
    words = "  ".join(f"{word} {weight:.3f}" for weight, word in heaviest)
    yield *text_cells(record), len(record["indices"]), words


def examples(subject: Subject) -> Iterator[Example]:
    """SPLADE and bge-m3; where a Router has a table for queries, one of those, too."""
    if "encode-sparse" in subject.stated_uses:
        yield Example("encode --sparse", [CAT])
    kind = subject.model.readable_kind
    if subject.runs("encode-sparse", prompt_name="query") and kind.routes.table("query") is not None:
        yield Example("encode --sparse --prompt-name query", [QUESTION], {"prompt_name": "query"})


SPEC = TaskSpec(
    EncodeSparseOptions,
    reads=TEXTS,
    needs=lambda options: Needs("A sparse vector", "mlm", MASKED_SAMPLE),
    record=record,
    table=lambda options: Table(COLUMNS, rows, filed=filed(options, "indices", "values")),
    examples=examples,
    panel="",  # encode --sparse
    vectors=True,
)
