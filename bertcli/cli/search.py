"""bertcli search: the texts nearest to a query, among the vectors in a file."""

import logging
from dataclasses import field
from typing import TYPE_CHECKING, Literal

from bertcli.cli.job import open_model, read_texts, set_threads, write_results
from bertcli.cli.options import (
    SENTENCE_SAMPLE,
    EngineOptions,
    InputOptions,
    ModelOptions,
    OutputOptions,
    ThreadOptions,
    argument,
    given_options,
    id_column_option,
    wrong,
)
from bertcli.errors import BertcliError
from bertcli.files.formats import TABLES, check_output
from bertcli.lean import lean_dataclass
from bertcli.report.tables import Table
from bertcli.report.terminal import NARROWEST, Column, folded, terminal_width, visible
from bertcli.tasks.encode import EncodeOptions
from bertcli.tasks.options import option

if TYPE_CHECKING:
    from bertcli.files.texts import Texts
    from bertcli.files.vector_reader import StoredVectors

OF_CHUNKS = tuple(Column(name, int, optional=True) for name in ("index", "chunk", "start", "end"))
COLUMNS = (
    Column("query", varying=True),
    Column("row", int),
    Column("score", float),
    *OF_CHUNKS,
    Column("id", optional=True),
    Column("text", optional=True),
)
LINES = 3  # of a hit's text on a terminal
logger = logging.getLogger("bertcli")


@lean_dataclass
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


@lean_dataclass
class _Texts(InputOptions):
    """The texts that the vectors were made of."""

    input: list[str] | None = option(None, "", "", "--texts")


@lean_dataclass
class QueryOptions(EncodeOptions):
    """How a query's vector is made."""

    pooling: Literal["auto", "mean", "cls", "max", "lasttoken", "pooler"] | None = option(
        "auto", "MODE", "How tokens become one vector. auto: as the file's vectors were made (default); mean, cls, "
        "max, lasttoken, pooler.",
    )  # fmt: skip
    chunk: None = field(default=None, init=False)
    keep_going: bool = field(default=False, init=False)


def search(
    where: SearchOptions,
    model: ModelOptions,
    output: OutputOptions,
    threads: ThreadOptions,
    engine: EngineOptions,
    options: QueryOptions,
) -> None:
    """Find the texts nearest to a query among vectors that encode wrote.

    bertcli encode -i corpus.jsonl -o vectors.parquet
    bertcli search "a hot drink" --in vectors.parquet
    bertcli search "tea" "coffee" --in vectors.npy --texts corpus.jsonl --top-k 3
    bertcli search --query-file questions.txt --in vectors.npy -o hits.jsonl
    bertcli search -m my-model --prompt-name query "tea" --in vectors.parquet

    The score is the cosine of the two vectors, or what the model's folder names
    instead (similarity_fn_name); every row is compared. A query's vector is made
    as those in the file, which says how: --pooling, --layer and the like are not
    needed, others than the file's are refused, as are vectors of another model;
    prompts may differ. What a .npy file cannot hold stands beside it
    (FILE.npy.settings.json): keep them together. Where a row is a part of a text
    (encode --chunk), index, chunk, start and end say which. A terminal shows the
    beginning of a long text; a pipe, and -o FILE.csv, .tsv or .parquet (a row for
    each hit), have all of it.
    """
    if not where.queries and where.query_file is None:
        raise wrong("QUERY", "give a query, or a file of queries with --query-file.")
    if where.vectors is None:
        raise wrong("--in", "give the file of vectors to look in.")
    set_threads(threads)
    check_output(output.output, TABLES)
    from bertcli.files.inputs import from_files
    from bertcli.files.search import open_vectors

    stored = open_vectors(where.vectors)
    source = _source(stored, where, output)
    queries = [*(where.queries or ())]
    if where.query_file is not None:
        queries += [text.text for text in from_files([where.query_file])]
    if not queries:
        raise BertcliError(f"{where.query_file} has no queries: write one a line.")
    from bertcli.tasks.compute.search import found

    opened = open_model(model, SENTENCE_SAMPLE, engine)
    records = found(opened, queries, stored, source, options, where.top_k, whole=bool(where.texts))
    columns = [column for column in COLUMNS if column not in OF_CHUNKS or column.name in stored.arrays]
    table = _Hits(tuple(columns), "nearest")
    write_results(records, output, table)


def _source(stored: "StoredVectors", where: SearchOptions, output: OutputOptions) -> "Texts | None":
    """The texts of the rows: those of --texts, else those stored with the vectors in a Parquet file."""
    from bertcli.tasks.compute.search import stored_texts

    if where.texts:
        texts = _Texts(None, where.texts, column=where.column)
        return read_texts(texts, output, where.id_column, keep_going=True)
    for name in ("--column", "--id-column"):
        if name in given_options(where):
            raise wrong(name, "this names a field of the texts: give their file with --texts.")
    return stored_texts(stored)


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
