"""bertcli tag"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from bertcli.cli.job import Job
from bertcli.cli.options import InputOptions
from bertcli.files.formats import PAGE, TABLES
from bertcli.report.marked import MarkedTable, Passage, mark
from bertcli.report.tables import Cell
from bertcli.report.terminal import Column
from bertcli.tasks.tag import TagOptions

COLUMNS = (
    Column("index", number=int, varying=True),
    Column("label"),
    Column("score", number=float),
    Column("word"),
    Column("start", number=int),
    Column("end", number=int),
)
LEAD = (
    "Each text with what the model found in it. The stronger a mark, the higher its score: the mean probability of its "
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


def tag(job: _Job, wanted: TagOptions) -> None:
    """Find the names, places or other entities in texts of any length.

    bertcli tag -m dslim/bert-base-NER "Angela Merkel visited Paris."
    bertcli tag -m dslim/bert-base-NER -i letters.txt -o entities.jsonl
    bertcli tag -m my-model -i news.csv --column body -o news.html
    bertcli tag -m my-pos-model --aggregation none --ignore "" "Dogs bark."

    Shows each text with its entities marked; in a pipe, and without color, a
    table of them. start and end count characters of the text.

    A model that labels tokens is needed (-m). Texts beyond its limit are read
    in overlapping windows, so nothing is cut. A .csv, .tsv or .parquet file has
    the rows of the table, a .html file the marked texts, too.
    """
    run = job.begin("tag", wanted, sample=None, endings=(*TABLES, PAGE))
    from bertcli.tasks.compute.tag import plan

    table = MarkedTable(COLUMNS, _rows, passage_of=_passage, title="Entities", model=run.model.name, lead=LEAD)
    run.write(plan(run.model, run.wanted), table)


def _label(entity: Mapping[str, Any]) -> str:
    return str(entity.get("entity_group", entity.get("entity")))


def _rows(record: Mapping[str, Any]) -> Iterator[tuple[Cell, ...]]:
    for entity in record["entities"]:
        yield record["index"], _label(entity), entity["score"], entity["word"], entity["start"], entity["end"]


def _passage(record: Mapping[str, Any]) -> Passage:
    entities = record.get("entities", ())
    marks = [mark(entity["start"], entity["end"], _label(entity), entity["score"]) for entity in entities]
    return Passage("", record["text"] or "", marks)
