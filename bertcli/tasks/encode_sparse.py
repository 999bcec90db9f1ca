"""encode --sparse: a text's weight of every entry of the vocabulary."""

from collections.abc import Iterator

from bertcli.files.texts import Pairs
from bertcli.lean import lean_dataclass
from bertcli.report.tables import Record, Row, Table
from bertcli.report.terminal import Column
from bertcli.tasks.encode import TEXT_COLUMNS, text_cells, text_fields
from bertcli.tasks.options import Prepared
from bertcli.tasks.registry import MASKED_SAMPLE, TEXTS, Fields, Needs, TaskSpec


@lean_dataclass
class EncodeSparseOptions(Prepared):
    """How a text's sparse vector is made; `words`: records have the pieces of the vocabulary beside their numbers."""

    pairs: Pairs = None
    words: bool = False


def record(wanted: EncodeSparseOptions) -> Fields:
    """Numbers of the vocabulary's entries, ascending, and their weights."""
    words: Fields = {"words": [str]} if wanted.words else {}
    return text_fields(wanted) | {"indices": [int], "values": [float], **words}


HEAVIEST = 5  # pieces that a table shows
COLUMNS = (*TEXT_COLUMNS, Column("entries", int), Column(f"{HEAVIEST} heaviest"))


def rows(record: Record) -> Iterator[Row]:
    """One, with the heaviest pieces."""
    heaviest = sorted(zip(record["values"], record["words"], strict=True), key=lambda entry: -entry[0])[:HEAVIEST]
    words = "  ".join(f"{word} {weight:.3f}" for weight, word in heaviest)
    yield *text_cells(record), len(record["indices"]), words


SPEC = TaskSpec(
    EncodeSparseOptions,
    reads=TEXTS,
    needs=lambda wanted: Needs("A sparse vector", "mlm", MASKED_SAMPLE),
    record=record,
    table=lambda wanted: Table(COLUMNS, rows),
    panel="",  # encode --sparse
    vectors=True,
)
