"""bertcli fill-mask"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from bertcli.cli.job import TABLES, Job
from bertcli.cli.options import by_name, option
from bertcli.files.table import Cell, Table
from bertcli.report import Column

COLUMNS = (
    Column("index", number=int, varying=True),
    Column("position", number=int, varying=True),
    Column("score", number=float),
    Column("token"),
    Column("id", number=int),
    Column("sequence"),
)


@dataclass(frozen=True)
class FillOptions:
    """Which words are tried."""

    top_k: int | None = option(None, "K", "How many words per mask. (default: 5, or all targets)", min=1)
    targets: str | None = option(None, "A,B,C", "Rank only these words; a word of several pieces is scored as a whole.")
    joint: bool = option(
        False, "", "Fill all masks of a text together: row k of each is the k-th best filling, of 250 at most."
    )


def fill_mask(job: Job, wanted: FillOptions) -> None:
    """Find the words that fit best where a text has a mask.

    bertcli fill-mask "She poured a cup of hot [MASK]."
    bertcli fill-mask "The [MASK] chased the [MASK]." --top-k 3 --joint
    bertcli fill-mask "He drank a glass of [MASK]." --targets water,milk,sand
    bertcli fill-mask -i cloze.txt --format jsonl | head
    bertcli fill-mask -i cloze.txt -o filled.jsonl --resume --keep-going
    bertcli fill-mask -m bert-base-uncased "Rome is the capital of [MASK]."

    The score is the probability among all words of the vocabulary. A text may
    have any number of masks, filled independently unless --joint is given. A .csv
    or .parquet file has the rows of the table.
    """
    run = job.begin("fill-mask", by_name(wanted), endings=TABLES)
    from bertcli.tasks import fill_mask as task

    run.end(run.records(task.fill_mask, Table(COLUMNS, _rows), **asdict(wanted)))


def _rows(record: Mapping[str, Any]) -> Iterator[tuple[Cell, ...]]:
    for mask in record["masks"]:
        for found in mask["predictions"]:
            token = found["token"]
            id = " ".join(map(str, token)) if isinstance(token, list) else token
            yield record["index"], mask["position"], found["score"], found["token_str"], id, found["sequence"]
