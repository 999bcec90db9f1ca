"""The rows of a file of vectors nearest to a query: what `bertcli encode --query … --against …` does."""

import logging
from collections.abc import Collection, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from bertcli.cli.job import Job, open_model, read_texts
from bertcli.cli.options import SENTENCE_SAMPLE, SearchOptions, changed, wrong
from bertcli.errors import BertcliError, shown
from bertcli.files.formats import RECORDS, check_output
from bertcli.files.forms import record_output
from bertcli.files.inputs import from_files
from bertcli.files.search import Nearest, StoredVectors, nearest, open_vectors
from bertcli.files.shards import signature
from bertcli.files.texts import Text, Texts
from bertcli.files.vectors import ORIGIN
from bertcli.report.tables import Cell, Table
from bertcli.report.terminal import Column
from bertcli.tasks.encode import EncodeOptions

if TYPE_CHECKING:
    from bertcli.model import Model

TOP_K = 5
COLUMNS = (
    Column("query", varying=True),
    Column("row", number=True),
    Column("score", number=True),
    *(Column(name, number=True, optional=True) for name in ORIGIN),
    Column("id", optional=True),
    Column("text", optional=True),
)
logger = logging.getLogger("bertcli")


def refuse_contradictions(search: SearchOptions, job: Job, other: bool) -> None:
    """Wrong usage is a typer.BadParameter; `other`: options were given that have nothing to do with a search."""
    if not search.query and search.query_file is None:
        raise wrong("--query", "give the text to look for with --query, or a file of such with --query-file.")
    if search.against is None:
        raise wrong("--against", "give the file of vectors to look in with --against.")
    if job.texts.texts or job.texts.text_pair is not None or job.texts.pair_column is not None:
        raise wrong("--query", "give the text to look for with --query only: no other texts, no pairs.")
    if other or changed(job.long):
        raise wrong(
            "--query",
            "it compares one vector per text with those of --against: no --pooling none, --similarity, --sparse, "
            "--dtype, --chunk, --resume or --keep-going.",
        )


def search_stored(search: SearchOptions, job: Job, wanted: EncodeOptions, id_column: str | None) -> None:
    """Write a record {query, nearest: [{row, score, id?, text?}]} for each query, whose vector is made as `wanted`.

    Where rows are chunks of texts, a hit also has index, chunk, start and end, and its text is the chunk's.
    """
    assert search.against is not None
    output = job.output
    if output.output is not None:
        check_output(output.output, RECORDS)
    stored = open_vectors(search.against)
    source = _source(job, id_column, stored)
    queries = list(search.query or ())
    if search.query_file is not None:
        queries += [text.text for text in from_files([search.query_file])]
    if not queries:
        raise BertcliError(f"{search.query_file} holds no text to look for.")
    from bertcli.tasks.compute.encode import encode

    model = open_model(job.model, SENTENCE_SAMPLE, job.engine)
    _check_model(model, stored)
    neighbors = nearest(encode(model, queries, wanted), stored, search.top_k or TOP_K)
    hits = _hits(neighbors, stored, source, whole=bool(job.texts.input))
    with record_output(output.format, output.output, Table(COLUMNS, _cells)) as write:
        for query, rows, scores in zip(queries, neighbors.rows.tolist(), neighbors.scores.tolist(), strict=True):
            best = [{"row": row, "score": score, **hits[row]} for row, score in zip(rows, scores, strict=True)]
            write({"query": query, "nearest": best})


def _check_model(model: "Model", stored: StoredVectors) -> None:
    """Refuse vectors of another model; note where the file does not say whose they are."""
    if stored.model is None:
        logger.info("%s does not say which model made its vectors; it must be this one.", stored.file)
        return
    own, other = signature(model.name, model.path), stored.model
    if own.split()[-1] != other.split()[-1]:
        raise BertcliError(
            f"{stored.file} was made by another model, {shown(other)}, not by {shown(own)}: give that one (-m), or "
            "encode the texts again."
        )


def _source(job: Job, id_column: str | None, stored: StoredVectors) -> Texts | None:
    """The texts of the rows: those of --input, else those stored with the vectors in a Parquet file."""
    if job.texts.input:
        return read_texts(job.texts, job.output, id_column, keep_going=True)
    if "text" not in stored.arrays:
        return None
    return from_files([str(stored.file)], id_column="id" if "id" in stored.arrays else None, keep_going=True)


def _hits(neighbors: Nearest, stored: StoredVectors, source: Texts | None, whole: bool) -> dict[int, dict[str, Any]]:
    """What is known of rows: which chunk of a text each is, if it is one, then id and text; `whole`: of whole texts."""
    rows = np.unique(neighbors.rows).tolist()
    *origins, last = stored.origins([*rows, neighbors.of - 1], neighbors.of) or [{}] * (len(rows) + 1)
    numbers = [origin.get("index", row) if whole else row for row, origin in zip(rows, origins, strict=True)]
    count = last.get("index", neighbors.of - 1) + 1 if whole else neighbors.of
    contents = f"{stored.file} has {neighbors.of:,} rows{f' of {count:,} texts' if count != neighbors.of else ''}"
    texts = _texts(source, set(numbers), count, contents) if source else {}
    hits: dict[int, dict[str, Any]] = {}
    for row, number, origin in zip(rows, numbers, origins, strict=True):
        hits[row] = {**origin}
        if number in texts:
            text, id = texts[number].text, texts[number].id
            part = slice(origin.get("start"), origin.get("end")) if whole else slice(None)
            hits[row] |= {**({} if id is None else {"id": id}), "text": text[part]}
    return hits


def _texts(source: Texts, numbers: Collection[int], count: int, contents: str) -> dict[int, Text]:
    """The texts of these numbers; BertcliError when there are not as many as the file was made from."""
    texts, number = {}, 0
    for number, text in enumerate(source, 1):
        if number - 1 in numbers:
            texts[number - 1] = text
    if number != count:
        raise BertcliError(f"{contents} and --input {number:,} texts: give the file it was made from.")
    return texts


def _cells(record: Mapping[str, Any]) -> Iterator[tuple[Cell, ...]]:
    for hit in record["nearest"]:
        yield record["query"], *(hit.get(column.name) for column in COLUMNS[1:])
