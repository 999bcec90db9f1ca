"""bertcli tag"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from bertcli.cli.command import command
from bertcli.cli.job import PAGE, TABLES, Job
from bertcli.cli.marked import Found, MarkedTable, Passage
from bertcli.cli.options import InputOptions, OwnModelOptions, WindowOptions
from bertcli.files.table import Cell
from bertcli.report import Column

if TYPE_CHECKING:
    from bertcli.tasks import Progress, RecordStream

COLUMNS = (
    Column("index", number=True, varying=True),
    Column("label"),
    Column("score", number=True),
    Column("word"),
    Column("start", number=True),
    Column("end", number=True),
)
LEAD = (
    "Each text with what the model found in it. The darker a mark, the higher its score: the mean probability of its "
    "label over the tokens, which says how sure the model is, not that it is right."
)


@dataclass(frozen=True)
class _Texts(InputOptions):
    """Single texts: there is nothing to pair them with."""

    text_pair: None = field(default=None, init=False)
    pair_column: None = field(default=None, init=False)


@dataclass(frozen=True)
class _Job(Job):
    texts: _Texts
    length: WindowOptions
    model: OwnModelOptions


@command("tag")
def tag(
    job: _Job,
    aggregation: Annotated[
        Literal["none", "simple", "first", "max", "average"],
        typer.Option(
            metavar="NAME",
            help="How tokens become entities: simple (default); first, max or average, which keep words whole; none.",
            show_default=False,
        ),
    ] = "simple",
    ignore: Annotated[
        str, typer.Option(metavar="A,B,C", help="Labels to leave out. (default: O)", show_default=False)
    ] = "O",
) -> None:
    """Find the names, places or other entities in texts of any length.

    bertcli tag -m dslim/bert-base-NER "Angela Merkel visited Paris."
    bertcli tag -m dslim/bert-base-NER -i letters.txt -o entities.jsonl
    bertcli tag -m my-model -i news.csv --column body -o news.html
    bertcli tag -m my-pos-model --aggregation none --ignore "" "Dogs bark."

    Shows each text with its entities marked; in a pipe, and without color, a
    table of them. start and end count characters of the text.

    A model that labels tokens is needed (-m). Texts beyond its limit are read
    in overlapping windows, so nothing is cut. A .csv or .parquet file has the
    rows of the table.
    """
    ignored = [label.strip() for label in ignore.split(",") if label.strip()]
    options = {"--aggregation": aggregation, "--ignore": ignored}
    run = job.begin("tag", options, sample=None, endings=(*TABLES, PAGE))
    from bertcli import tasks

    def begin(progress: Progress) -> RecordStream:
        how = {"aggregation": aggregation, "ignore": ignored, **job.reading}
        return tasks.tag(run.model, run.texts, start=progress, **how)

    table = MarkedTable(COLUMNS, _rows, passage_of=_passage, title="Entities", lead=LEAD)
    run.end(run.records(table, begin))


def _label(entity: Mapping[str, Any]) -> str:
    return str(entity.get("entity_group", entity.get("entity")))


def _rows(record: Mapping[str, Any]) -> Iterator[tuple[Cell, ...]]:
    if "error" in record:
        yield record["index"], None, None, record["error"], None, None
        return
    for entity in record["entities"]:
        yield record["index"], _label(entity), entity["score"], entity["word"], entity["start"], entity["end"]


def _passage(record: Mapping[str, Any]) -> Passage:
    if "error" in record:
        return Passage("", record["text"] or "", notes=[record["error"]])
    found = [Found(entity["start"], entity["end"], _label(entity), entity["score"]) for entity in record["entities"]]
    return Passage("", record["text"], found)
