"""bertcli fill-mask"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Annotated, Any

from bertcli.cli.command import command
from bertcli.cli.job import TABLES, Job
from bertcli.cli.options import option
from bertcli.files.table import Cell, Table
from bertcli.report import Column

if TYPE_CHECKING:
    from bertcli.tasks import Progress, RecordStream

COLUMNS = (
    Column("index", number=True, varying=True),
    Column("position", number=True, varying=True),
    Column("score", number=True),
    Column("token"),
    Column("id", number=True),
    Column("sequence"),
)


@command("fill-mask")
def fill_mask(
    job: Job,
    top_k: Annotated[
        int | None,
        option(None, "--top-k", min=1, metavar="K", help="How many words per mask. (default: 5, or all targets)"),
    ] = None,
    targets: Annotated[
        str | None,
        option(
            None,
            "--targets",
            metavar="A,B,C",
            help="Rank only these words; a word of several pieces is scored as a whole.",
        ),
    ] = None,
    joint: Annotated[
        bool,
        option(None, "--joint", help="Fill all masks of a text together: row k of each is the k-th best filling."),
    ] = False,
) -> None:
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
    run = job.begin("fill-mask", {"--top-k": top_k, "--targets": targets, "--joint": joint}, endings=TABLES)
    from bertcli import tasks

    def begin(progress: Progress) -> RecordStream:
        how = {"top_k": top_k, "targets": targets, "joint": joint, **job.reading}
        return tasks.fill_mask(run.model, run.texts, start=progress, **how)

    run.end(run.records(Table(COLUMNS, _rows), begin))


def _rows(record: Mapping[str, Any]) -> Iterator[tuple[Cell, ...]]:
    if "error" in record:
        yield record["index"], None, None, None, None, record["error"]
        return
    for mask in record["masks"]:
        for found in mask["predictions"]:
            token = found["token"]
            id = " ".join(map(str, token)) if isinstance(token, list) else token
            yield record["index"], mask["position"], found["score"], found["token_str"], id, found["sequence"]
