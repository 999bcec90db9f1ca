"""The rows of a file of vectors nearest to a query: what `bertcli encode --query … --against …` does."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import typer

from bertcli.cli.options import InputOptions, LongOptions, OutputOptions, SearchOptions
from bertcli.cli.running import read_texts
from bertcli.errors import BertcliError
from bertcli.inputs import Text, Texts, from_files
from bertcli.model import Model
from bertcli.output.files import check_output
from bertcli.output.records import ENDINGS, record_output
from bertcli.output.table import Cell, Column, Table
from bertcli.search import Stored, nearest, open_vectors

TOP_K = 5


@dataclass(frozen=True)
class Search:
    """A search as asked for; `texts` are those that the rows were made from."""

    search: SearchOptions
    texts: InputOptions
    output: OutputOptions
    id_column: str | None

    def refuse(self, long: LongOptions, other: bool) -> None:
        """Wrong usage is a typer.BadParameter."""
        if not self.search.query:
            raise typer.BadParameter("give the text to look for with --query.", param_hint="--query")
        if self.search.against is None:
            raise typer.BadParameter("give the file of vectors to look in with --against.", param_hint="--against")
        if self.texts.texts or self.texts.text_pair is not None or self.texts.pair_column is not None:
            raise typer.BadParameter(
                "give the text to look for with --query only: no other texts, no pairs.", param_hint="--query"
            )
        if other or long.resume or long.keep_going:
            raise typer.BadParameter(
                "it compares one vector per text with those of --against: no --pooling none, --similarity, --dtype, "
                "--resume or --keep-going.", param_hint="--query",
            )  # fmt: skip

    def run(self, load: Callable[[], Model], **options: Any) -> None:
        """Write a record {query, nearest: [{row, score, id?, text?}]} for each query."""
        assert self.search.query is not None
        assert self.search.against is not None
        if self.output.output is not None:
            check_output(self.output.output, ENDINGS)
        stored = open_vectors(self.search.against)
        source = self._source(stored)
        from bertcli.tasks import encode

        queries = encode(load(), self.search.query, **options)
        found = nearest(queries, stored, self.search.top_k or TOP_K)
        rows = found.rows.tolist()
        texts = {} if source is None else _texts(source, {row for each in rows for row in each}, stored)
        columns = [Column("query", varying=True), Column("row", number=True), Column("score", number=True)]
        columns += [Column("id")] * any(text.id is not None for text in texts.values())
        columns += [Column("text")] * (source is not None)
        table = Table(tuple(columns), lambda record: _cells(record, [column.name for column in columns[1:]]))
        with record_output(self.output.format, self.output.output, table) as write:
            for query, row, score in zip(self.search.query, rows, found.scores.tolist(), strict=True):
                write({"query": query, "nearest": [_hit(*pair, texts) for pair in zip(row, score, strict=True)]})

    def _source(self, stored: Stored) -> Texts | None:
        """The texts of the rows: those of --input, else those stored with the vectors in a Parquet file."""
        if self.texts.input:
            return read_texts(self.texts, self.output, self.id_column, keep_going=True)
        if "text" not in stored.columns:
            return None
        id_column = "id" if "id" in stored.columns else None
        return from_files([str(stored.file)], id_column=id_column, keep_going=True)


def _texts(source: Texts, rows: Collection[int], stored: Stored) -> dict[int, Text]:
    """The texts of these rows; BertcliError when there are not as many texts as rows."""
    found, count = {}, 0
    for count, text in enumerate(source, 1):
        if count - 1 in rows:
            found[count - 1] = text
    if count != stored.rows:
        raise BertcliError(
            f"{stored.file} has {stored.rows:,} rows and --input {count:,} texts: give the file it was made from."
        )
    return found


def _hit(row: int, score: float, texts: Mapping[int, Text]) -> dict[str, Any]:
    """A row that was found, with `id` and `text` if known."""
    text = texts.get(row)
    known = {} if text is None or text.id is None else {"id": text.id}
    return {"row": row, "score": score, **known, **({} if text is None else {"text": text.text})}


def _cells(record: Mapping[str, Any], names: list[str]) -> Iterator[tuple[Cell, ...]]:
    for hit in record["nearest"]:
        yield record["query"], *(hit.get(name) for name in names)
