"""bertcli tag"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from bertcli.cli.job import Job
from bertcli.cli.options import InputOptions
from bertcli.files.formats import TABLES
from bertcli.files.table import Cell, Table, cell
from bertcli.report.tables import Column, Mark, print_marked, shows_shades, takes_escapes, visible
from bertcli.tasks.options import Tag

COLUMNS = (
    Column("index", number=int, varying=True),
    Column("label"),
    Column("score", number=float),
    Column("word"),
    Column("start", number=int),
    Column("end", number=int),
)
PALEST = 0.25  # of a mark, from 0 to 1: that of a score of 0


@dataclass(frozen=True)
class _Texts(InputOptions):
    """Single texts: there is nothing to pair them with."""

    text_pair: None = field(default=None, init=False)
    pair_column: None = field(default=None, init=False)


@dataclass(frozen=True)
class _Job(Job):
    texts: _Texts


def tag(job: _Job, wanted: Tag) -> None:
    """Find the names, places or other entities in texts of any length.

    bertcli tag -m dslim/bert-base-NER "Angela Merkel visited Paris."
    bertcli tag -m dslim/bert-base-NER -i letters.txt -o entities.jsonl
    bertcli tag -m my-model -i news.csv --column body --format jsonl
    bertcli tag -m my-pos-model --aggregation none --ignore "" "Dogs bark."

    Shows each text with its entities marked; in a pipe, and without color, a
    table of them. start and end count characters of the text.

    A model that labels tokens is needed (-m). Texts beyond its limit are read
    in overlapping windows, so nothing is cut. A .csv or .parquet file has the
    rows of the table.
    """
    run = job.begin("tag", wanted, sample=None, endings=TABLES)
    from bertcli.tasks.tag import plan

    run.write(plan(run.model, run.wanted), MarkedTexts(COLUMNS, _rows))


@dataclass(frozen=True)
class MarkedTexts(Table):
    """A table that, where standard output shows colors, is the texts themselves with their entities marked."""

    records: list[Mapping[str, Any]] = field(default_factory=list)

    def add(self, record: Mapping[str, Any]) -> None:
        super().add(record)
        self.records.append(record)

    def varies(self, cells: set[str]) -> bool:
        return len(self.records) > 1  # of several texts, one alone may have rows

    def print(self) -> None:
        if not (takes_escapes() and shows_shades()):
            super().print()
            return
        for number, record in enumerate(self.records):
            if number:
                print()
            print_marked(record["text"] or "", _marks(record))
            if "error" in record:
                print(visible(record["error"]))


def _marks(record: Mapping[str, Any]) -> Iterator[Mark]:
    """A mark for each entity, the stronger the higher its score; of two that share characters the first."""
    done = 0
    for entity in record.get("entities", ()):
        start, end, label, score = entity["start"], entity["end"], _label(entity), entity["score"]
        if done <= start < end:
            yield Mark(start, end, PALEST + (1 - PALEST) * score, label, f"{label} {cell(score)}")
            done = end


def _label(entity: Mapping[str, Any]) -> str:
    return str(entity.get("entity_group", entity.get("entity")))


def _rows(record: Mapping[str, Any]) -> Iterator[tuple[Cell, ...]]:
    for entity in record["entities"]:
        yield record["index"], _label(entity), entity["score"], entity["word"], entity["start"], entity["end"]
