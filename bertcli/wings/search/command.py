"""`bertcli search`, made from its spec: open what is searched and the model, and print or write the hits."""

import logging
import os
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple, get_type_hints

from bertcli.cli.inputs import read_texts
from bertcli.cli.model import note_untrained, open_model
from bertcli.cli.options import (
    EngineOptions,
    InputOptions,
    ModelOptions,
    refuse,
    wrong,
)
from bertcli.cli.output import OutputOptions, write_results
from bertcli.cli.status import FAILED
from bertcli.errors import BertcliError
from bertcli.extensions import CommandParts
from bertcli.files.files_beside import check_not_read
from bertcli.files.formats import ending_of
from bertcli.files.texts import STANDARD_INPUT
from bertcli.report.shades import shows_shades
from bertcli.tasks.options import argument
from bertcli.wings.search.spec import FILES, PARQUET, STORED, STORED_ENDINGS, QueryOptions, SearchOptions
from bertcli.wings.search.tables import LineTable, NameTable, VectorTable

if TYPE_CHECKING:
    from bertcli.loaded_model import LoadedModel

logger = logging.getLogger("bertcli")


@dataclass(frozen=True, eq=False, repr=False)
class Queries:
    """The queries."""

    queries: list[str] | None = argument(None, "[QUERY]...", "The texts to look for.")


class SearchJob(NamedTuple):
    """What the command is given: its groups of options."""

    words: Queries
    search: SearchOptions
    model: ModelOptions
    output: OutputOptions
    engine: EngineOptions
    query: QueryOptions

    def every_query(self) -> list[str]:
        """The queries of the command line and of the file."""
        from bertcli.files.read.inputs import rows_in

        queries, file = [*(self.words.queries or ())], self.search.query_file
        if file is not None:
            queries += [text.text for text in rows_in([file])]
        if not queries:
            raise BertcliError(f"{file} has no queries: write one a line.")
        return queries


def command_parts(name: str) -> CommandParts:
    """The parts of the command; the docstring of its options is the help."""
    return CommandParts(SearchOptions.__doc__, get_type_hints(SearchJob), run)


def run(**groups: Any) -> None:
    """Search, and print or write the hits. Wrong usage is a typer.BadParameter."""
    job = SearchJob(**groups)
    search, vectors, files = job.search, job.search.vectors, job.search.input or []
    if not job.words.queries and search.query_file is None:
        raise wrong("QUERY", "give a query, or a file of queries with --query-file.")
    if not files:
        named = next((query for query in job.words.queries or () if os.path.exists(query)), None)
        meant = "" if named is None else f" {named!r} is taken for a query: did you mean -i {named}?"
        raise wrong("--input", f"give files to search in (-i), or vectors that encode wrote (-i vectors.npy).{meant}")
    if vectors is None:
        refuse(search, STORED.own, "this is for stored vectors: leave it out with files of texts.")
    else:
        refuse(search, FILES.own, f"this is for files of texts, and {vectors} has vectors: leave it out.")
    further = [name for name in files[1:] if ending_of(name) in STORED_ENDINGS]
    if vectors is not None:
        further = [name for name in further if ending_of(name) != PARQUET]  # which may hold texts, too
    if further:
        raise wrong("--input", f"{further[0]} has vectors: name one such file, first, then the files of its texts.")
    job.output.check()
    _refuse_two_in_one(search.index, job.output.output)
    if vectors is None:
        _in_files(job, files)
    else:
        _in_vectors(job, *files)


def _refuse_two_in_one(index: str | None, output: str | None) -> None:
    """Refuse hits and index in one file, which need not be there yet. Errors: BertcliError."""
    if index is not None and output is not None and os.path.realpath(index) == os.path.realpath(output):
        raise BertcliError(f"Cannot write {output}: --index is kept in it; choose another --output.")


def _in_files(job: SearchJob, files: list[str]) -> None:
    from bertcli.files.read.passages import has_fields, searched_files

    search = job.search
    names = searched_files(files, search.column)
    if search.column is not None and not any(has_fields(name) for name in names):
        raise wrong("--column", "lines and paragraphs have no fields: this is for .csv, .tsv and .jsonl files.")
    if search.context and STANDARD_INPUT in names:
        raise wrong("--lines", "standard input cannot be read a second time: give a file.")
    check_not_read(job.output.output, names)
    check_not_read(search.index, names, option="--index")
    queries = job.every_query()
    for file in filter(os.path.isfile, job.words.queries or ()):
        logger.warning("%r is taken as a query; to search in it, write -i before it, or quote the pattern.", file)
    from bertcli.loaded_model import LoadedModel
    from bertcli.wings.search.files import Passages, files_of

    model = _opened(job)
    reranker = None
    if search.rerank is not None:
        reranker = LoadedModel.load(search.rerank, **job.model.fetching, engine=job.engine.engine)
    passages = Passages(model, names, search, replace(job.query, workers=job.query.workers or "auto"))
    of_queries = [*passages.hits(queries, reranker)]
    if search.files_with_matches:
        records = [record for hits in of_queries for record in files_of(hits, search.top_k)]
        write_results(records, job.output, NameTable(FILES.columns_without("line", "headings", "text"), ""))
        if not records:
            raise SystemExit(FAILED)  # as grep -l ends that finds nothing
        return
    hits = [hit for hits_of_query in of_queries for hit in hits_of_query]
    idf = passages.keywords.idf if job.output.is_table and shows_shades() else None
    absent = () if any(hit.chunk.headings for hit in hits) else ("headings",)
    lines = LineTable(
        FILES.columns_without(*absent), "", hits=hits, context=search.context, idf=idf, several=len(queries) > 1
    )
    _note_none(job, len(hits))
    write_results([hit.record for hit in hits], job.output, lines)


def _note_none(job: SearchJob, hits: int) -> None:
    """Say it where --min-score leaves nothing: an empty table does not say why it is."""
    least = job.search.min_score
    if least is not None and not hits:
        logger.info("no hit has a score of %g or more (--min-score).", least)


def _opened(job: SearchJob) -> "LoadedModel":
    """Open the model, with a note if it was not trained for vectors that are compared."""
    model = open_model(job.model, job.search.sample, job.engine, job.query.prompt_name)
    note_untrained(job.model, model, job.search.trained)
    return model


def _in_vectors(job: SearchJob, vectors: str, *texts: str) -> None:
    from bertcli.files.search import open_vectors
    from bertcli.wings.search.stored import SearchedVectors

    search = job.search
    stored = open_vectors(vectors)
    if texts:
        of_texts = InputOptions(None, [*texts], column=search.column, id_column=search.id_column)
        source = read_texts(of_texts, keep_going=True)
        check_not_read(job.output.output, source.files or ())
        searched = SearchedVectors(stored, source, whole=True)
    else:
        why = "this names a field of the texts: give their file with a second -i."
        refuse(search, ("--column", "--id-column"), why)
        searched = SearchedVectors.alone(stored)
    queries = job.every_query()
    model = _opened(job)
    absent = {"index", "chunk", "start", "end"} - {*stored.arrays}
    table = VectorTable(STORED.columns_without(*absent), STORED.rows_of)
    records = searched.records(model, queries, search, job.query)
    _note_none(job, sum(len(record[STORED.rows_of]) for record in records))
    write_results(records, job.output, table)
