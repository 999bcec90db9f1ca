"""bertcli search: the texts nearest to a query, among the vectors in a file."""

import logging
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from bertcli.cli.job import open_model, read_texts, set_threads
from bertcli.cli.options import (
    SENTENCE_SAMPLE,
    EngineOptions,
    InputOptions,
    ModelOptions,
    OutputOptions,
    ThreadOptions,
    argument,
    changed,
    id_column_option,
    wrong,
)
from bertcli.errors import BertcliError, shown
from bertcli.files.formats import TABLES, check_output
from bertcli.report.tables import Cell, Table
from bertcli.report.terminal import NARROWEST, Column, folded, terminal_width, visible
from bertcli.tasks.encode import EncodeOptions
from bertcli.tasks.options import option

if TYPE_CHECKING:
    from bertcli.files.search import Nearest
    from bertcli.files.stored import StoredVectors
    from bertcli.files.texts import Text, Texts
    from bertcli.opened import Opened

OF_CHUNKS = tuple(Column(name, number=int, optional=True) for name in ("index", "chunk", "start", "end"))
COLUMNS = (
    Column("query", varying=True),
    Column("row", number=int),
    Column("score", number=float),
    *OF_CHUNKS,
    Column("id", optional=True),
    Column("text", optional=True),
)
LINES = 3  # of a hit's text on a terminal
logger = logging.getLogger("bertcli")


@dataclass(frozen=True, eq=False)
class SearchOptions:
    """What is searched for, and in which stored vectors."""

    queries: list[str] | None = argument(None, "[QUERY]...", "The texts to look for.")
    vectors: str | None = option(
        None, "FILE", "The vectors to look in, as encode writes them: .npy, .npz, .safetensors or .parquet.", "--in",
    )  # fmt: skip
    texts: list[str] | None = option(
        None, "FILE", "The texts that the vectors were made of, to show them; .parquet files may hold them already."
    )
    column: str | None = option(None, "NAME", "The field of --texts that holds the text. (default: text)")
    id_column: str | None = id_column_option()
    query_file: str | None = option(
        None, "FILE", "More queries: each line of .txt, or the field text of .jsonl, .csv, .tsv or .parquet."
    )
    top_k: int = option(10, "K", "How many rows per query. (default: 10)", least=1)


@dataclass(frozen=True, eq=False)
class _Texts(InputOptions):
    """The texts that the vectors were made of."""

    input: list[str] | None = option(None, "", "", "--texts")


def search(
    where: SearchOptions,
    model: ModelOptions,
    output: OutputOptions,
    threads: ThreadOptions,
    engine: EngineOptions,
    wanted: EncodeOptions,
) -> None:
    """Find the texts nearest to a query among the vectors that encode wrote.

    bertcli encode -i corpus.jsonl -o vectors.parquet
    bertcli search "a hot drink" --in vectors.parquet
    bertcli search "tea" "coffee" --in vectors.npy --texts corpus.jsonl --top-k 3
    bertcli search --query-file questions.txt --in vectors.npy -o hits.jsonl
    bertcli search -m my-model --prompt-name query "tea" --in vectors.parquet

    The score is the cosine of the two vectors; every row is compared. A query's
    vector is made as those in the file, which says how: --pooling, --layer and
    the like are not needed, others than the file's are refused, as are vectors of
    another model; prompts may differ. What a .npy file cannot hold stands beside
    it (FILE.npy.settings.json): keep them together. Where a row is a part of a
    text (encode --chunk), index, chunk, start and end say which. A terminal shows
    the beginning of a long text; a pipe, and -o FILE.csv, .tsv or .parquet (a row
    for each hit), have all of it.
    """
    if not where.queries and where.query_file is None:
        raise wrong("QUERY", "give a text to look for, or a file of such with --query-file.")
    if where.vectors is None:
        raise wrong("--in", "give the file of vectors to look in.")
    if wanted.pooling == "none" or {"--chunk", "--keep-going"} & {*changed(wanted)}:
        raise wrong("QUERY", "a query has one vector: no --pooling none, --chunk or --keep-going.")
    set_threads(threads)
    if output.output is not None:
        check_output(output.output, TABLES)
    from bertcli.files.forms import record_output
    from bertcli.files.inputs import from_files
    from bertcli.files.search import nearest, open_vectors

    stored = open_vectors(where.vectors)
    source = _source(stored, where, output)
    queries = [*(where.queries or ())]
    if where.query_file is not None:
        queries += [text.text for text in from_files([where.query_file])]
    if not queries:
        raise BertcliError(f"{where.query_file} holds no text to look for.")
    from bertcli.tasks.compute.encode import as_stored, encode

    opened = open_model(model, SENTENCE_SAMPLE, engine)
    settings = _settings(opened, stored)
    wanted = wanted if settings is None else as_stored(opened, wanted, settings)
    neighbors = nearest(encode(opened, queries, wanted), stored, where.top_k)
    hits = _hits(neighbors, stored, source, whole=bool(where.texts))
    columns = [column for column in COLUMNS if column not in OF_CHUNKS or column.name in stored.arrays]
    table = _Hits(tuple(columns), lambda record: _cells(record, columns))
    with record_output(output.format, output.output, table, TABLES) as write:
        for query, rows, scores in zip(queries, neighbors.rows.tolist(), neighbors.scores.tolist(), strict=True):
            best = [{"row": row, "score": score, **hits[row]} for row, score in zip(rows, scores, strict=True)]
            write({"query": query, "nearest": best})


def _settings(model: "Opened", stored: "StoredVectors") -> dict[str, Any] | None:
    """How the vectors were made; those of another model are refused, and it is noted where the file does not say it."""
    from bertcli.files.arrays import MODEL
    from bertcli.files.shards import signature

    own, other, settings = signature(model.name, model.path), stored.notes.get(MODEL), stored.settings
    if other is not None and own.split()[-1] != other.split()[-1]:
        raise BertcliError(
            f"{stored.file} was made by another model, {shown(other)}, not by {shown(own)}: give that one (-m), or "
            "encode the texts again."
        )
    if other is None or settings is None:
        logger.warning("%s does not say which model and options made its vectors; they must be these.", stored.file)
    return settings


def _source(stored: "StoredVectors", where: SearchOptions, output: OutputOptions) -> "Texts | None":
    """The texts of the rows: those of --texts, else those stored with the vectors in a Parquet file."""
    from bertcli.files.inputs import from_files

    if where.texts:
        texts = _Texts(None, where.texts, column=where.column)
        return read_texts(texts, output, where.id_column, keep_going=True)
    for name in ("--column", "--id-column"):
        if name in changed(where):
            raise wrong(name, "this is about the texts of the rows: give their file with --texts.")
    if "text" not in stored.arrays:
        return None
    return from_files([str(stored.file)], id_column="id" if "id" in stored.arrays else None, keep_going=True)


def _hits(
    neighbors: "Nearest", stored: "StoredVectors", source: "Texts | None", whole: bool
) -> dict[int, dict[str, Any]]:
    """What is known of rows: which chunk of a text each is, if it is one, then id and text; `whole`: of whole texts."""
    rows = sorted({*neighbors.rows.reshape(-1).tolist()})
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


def _texts(source: "Texts", numbers: Collection[int], count: int, contents: str) -> "dict[int, Text]":
    """The texts of these numbers; BertcliError when there are not as many as the file was made from."""
    texts, number = {}, 0
    for number, text in enumerate(source, 1):
        if number - 1 in numbers:
            texts[number - 1] = text
    if number != count:
        raise BertcliError(f"{contents} and --texts {number:,} texts: give the file it was made from.")
    return texts


def _cells(record: Mapping[str, Any], columns: Sequence[Column]) -> Iterator[tuple[Cell, ...]]:
    for hit in record["nearest"]:
        yield record["query"], *(hit.get(column.name) for column in columns[1:])


class _Hits(Table):
    """Hits below their queries where a terminal is too narrow for a table of texts, each in at most 1 + LINES lines."""

    def print(self) -> None:
        width = terminal_width()
        if width is None:
            super().print()
            return
        last = None
        for cells in self.rows:
            hit = dict(zip(self.keys, map(visible, cells), strict=False))
            if hit["query"] != last:
                print(*([] if last is None else [""]), *_cut(hit["query"], width, LINES), sep="\n")
                last = hit["query"]
            part = f"text {hit['index']}, characters {hit['start']} to {hit['end']}" if hit.get("chunk") else ""
            print(*_cut(", ".join(filter(None, [f"{hit['score']:>9}  row {hit['row']}", part, hit["id"]])), width, 1))
            if hit["text"]:
                print(*(f"{'':11}{line}" for line in _cut(hit["text"], width - 11, LINES)), sep="\n")


def _cut(text: str, width: int, lines: int) -> list[str]:
    """The first lines of a folded text; where there are more, the last one ends in an ellipsis."""
    width = max(width, NARROWEST)
    kept = folded(text, width).split("\n")
    return kept if len(kept) <= lines else [*kept[: lines - 1], folded(kept[lines - 1], width - 1).split("\n")[0] + "…"]
