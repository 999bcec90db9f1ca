"""The task shout: its options, record and table. Its work is in work.py, which imports NumPy."""

from collections.abc import Iterator
from dataclasses import dataclass

from bertcli.report.tables import Record, Row, Table
from bertcli.report.terminal import Column
from bertcli.tasks.examples import CAT, Example, Subject
from bertcli.tasks.options import ReadOptions, option
from bertcli.tasks.registry import MASKED_SAMPLE, SINGLE_TEXTS, Fields, Needs, TaskSpec


@dataclass(frozen=True, eq=False, repr=False)
class ShoutOptions(ReadOptions):
    """Shout the pieces of a text.

    bertcli shout "tea is ready"
    bertcli shout -i reviews.txt -o loud.jsonl --most 3
    """

    most: int | None = option(None, "N", "At most N pieces. (default: all)", least=1)


def record(options: ShoutOptions) -> Fields:
    """Records {index, text, truncated, shouted}: the pieces of each text that are no special tokens, in capitals."""
    return {"index": int, "text": str, "truncated": bool, "shouted": [str]}


def rows(record: Record) -> Iterator[Row]:
    """Yield the row of a text."""
    yield record["index"], " ".join(record["shouted"])


def examples(subject: Subject) -> Iterator[Example]:
    """Yield a text."""
    yield Example("shout", [CAT])


SPEC = TaskSpec(
    ShoutOptions,
    reads=SINGLE_TEXTS,
    needs=lambda options: Needs("shout", sample=MASKED_SAMPLE),
    record=record,
    table=lambda options: Table((Column("index", int, varying=True), Column("shouted")), rows),
    examples=examples,
    panel="Run",
    position=20,
)
