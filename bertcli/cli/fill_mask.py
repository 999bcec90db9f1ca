"""bertcli fill-mask"""

from collections.abc import Iterator, Mapping
from typing import Any

from bertcli.cli.job import Job
from bertcli.files.formats import TABLES
from bertcli.report.tables import Cell, Table
from bertcli.report.terminal import Column
from bertcli.tasks.fill_mask import FillMaskOptions

COLUMNS = (
    Column("index", number=int, varying=True),
    Column("position", number=int, varying=True),
    Column("score", number=float),
    Column("token"),
    Column("id", number=int),
    Column("sequence"),
)


def fill_mask(job: Job, wanted: FillMaskOptions) -> None:
    """Find the words that fit best where a text has a mask.

    bertcli fill-mask "She poured a cup of hot [MASK]."
    bertcli fill-mask "The [MASK] chased the [MASK]." --top-k 3 --joint
    bertcli fill-mask "He drank a glass of [MASK]." --targets water,milk,sand
    bertcli fill-mask -i cloze.txt --format jsonl | head
    bertcli fill-mask -i cloze.txt -o filled.jsonl --resume --keep-going
    bertcli fill-mask -m bert-base-uncased "Rome is the capital of [MASK]."

    The score is the probability among all words of the vocabulary. A text may
    have any number of masks, filled independently unless --joint is given. A .csv,
    .tsv or .parquet file has the rows of the table.
    """
    run = job.begin("fill-mask", wanted, endings=TABLES)
    from bertcli.tasks.compute.fill_mask import plan

    run.write(plan(run.model, run.wanted), Table(COLUMNS, _rows))


def _rows(record: Mapping[str, Any]) -> Iterator[tuple[Cell, ...]]:
    for mask in record["masks"]:
        for word in mask["predictions"]:
            token = word["token"]
            id = " ".join(map(str, token)) if isinstance(token, list) else token
            yield record["index"], mask["position"], word["score"], word["token_str"], id, word["sequence"]
