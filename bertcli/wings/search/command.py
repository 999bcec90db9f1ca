"""`bertcli search`: find the texts nearest to a query, in files of text, or among the vectors in a file."""

import logging
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from itertools import islice
from typing import TYPE_CHECKING, ClassVar

from bertcli.cli.job import open_model, read_texts
from bertcli.cli.options import (
    MASKED_SAMPLE,
    SENTENCE_SAMPLE,
    EngineOptions,
    InputOptions,
    ModelOptions,
    argument,
    given_options,
    refuse,
    wrong,
)
from bertcli.cli.output import OutputOptions, write_results
from bertcli.cli.status import FAILED
from bertcli.errors import BertcliError
from bertcli.files.formats import ending_of
from bertcli.files.texts import STANDARD_INPUT
from bertcli.report.encodable import encodable
from bertcli.report.shades import Mark, print_marked, shows_shades
from bertcli.report.tables import Table, cell
from bertcli.report.terminal import NARROWEST, Column, folded, terminal_width, unfolded_width, visible
from bertcli.tasks.encode import EncodeOptions
from bertcli.tasks.options import option

if TYPE_CHECKING:
    from bertcli.files.read.vector_reader import StoredVectors
    from bertcli.files.texts import Texts
    from bertcli.wings.search.files import Hit

OF_CHUNKS = tuple(Column(name, int, optional=True) for name in ("index", "chunk", "start", "end"))
COLUMNS = (
    Column("query", varying=True),
    Column("row", int),
    Column("score", float),
    *OF_CHUNKS,
    Column("id", optional=True),
    Column("text", optional=True),
)
FILE_COLUMNS = (
    Column("query"),
    Column("file"),
    Column("line", int),
    Column("score", float),
    Column("headings"),
    Column("text"),
)
FAINT = 0.25  # words whose idf is below this share of the query's rarest word are not shaded
LINES = 3  # of a hit's text on a terminal
PARQUET = ".parquet"
STORED = (".npy", ".npz", ".safetensors", PARQUET)  # endings of vectors
logger = logging.getLogger("bertcli")


@dataclass(frozen=True, eq=False, repr=False)
class SearchOptions:
    """The queries."""

    queries: list[str] | None = argument(None, "[QUERY]...", "The texts to look for.")
    query_file: str | None = option(
        None, "FILE", "More queries: each line of .txt, or the field text of .jsonl, .csv, .tsv or .parquet."
    )
    top_k: int = option(10, "K", "How many hits per query. (default: 10)", least=1)
    min_score: float | None = option(None, "SCORE", "Leave out hits with a score below this.")
    column: str | None = option(None, "NAME", "The field that holds the text, of rows in -i. (default: text)")


@dataclass(frozen=True, eq=False, repr=False)
class SearchedFiles:
    """What is searched: files of texts, or stored vectors, as the first file's ending says."""

    panel: ClassVar = "Search in"
    input: list[str] | None = option(
        None, "FILE",
        "Search in this file: the lines of .txt, the paragraphs of .md with their headings, the rows of .csv, .tsv and "
        ".jsonl, or a .gz of these; repeat for more, or give a folder or a quoted pattern ('docs/**/*.md'). Or among "
        "the vectors that encode wrote: .npy, .npz, .safetensors or .parquet; a second -i names the texts that they "
        "were made of, to show them (.parquet may hold them).",
        "-i", "--input",
    )  # fmt: skip
    index: str | None = option(
        None, "FILE", "Keep the vectors in this file, and compute only those of files that have changed."
    )
    sparse: bool = option(
        False, "", "Compare sparse vectors (SPLADE, bge-m3), as encode --sparse makes them, not dense ones."
    )
    hybrid: bool = option(False, "", "Rank by keywords, too: BM25, joined by reciprocal rank fusion.")
    rerank: str | None = option(None, "DIR|HUB_ID", "Let this reranker order the 50 best hits, as bertcli rank does.")
    context: int = option(0, "N", "Print N lines of the file before and after each hit.", "-C", "--lines", least=0)
    files_with_matches: bool = option(
        False,
        "",
        "Print only the names of files with a hit that is near, best first; status 1 if there is none.",
        "-l",
        "--files-with-matches",
    )
    id_column: str | None = option(
        None, "NAME", "The field that identifies a text of stored vectors; it is copied to the output."
    )

    @property
    def vectors(self) -> str | None:
        """The file of stored vectors, if the first file is one."""
        first = (self.input or [""])[0]
        return first if ending_of(first) in STORED else None


@dataclass(frozen=True, eq=False, repr=False)
class QueryOptions(EncodeOptions):
    """The options with which a query is encoded."""

    not_offered: ClassVar[tuple[str, ...]] = ("layer", "normalize", "truncate_dim", "pooling")
    chunk: None = field(default=None, init=False)
    keep_going: bool = field(default=False, init=False)


def search(
    where: SearchOptions,
    files: SearchedFiles,
    model: ModelOptions,
    output: OutputOptions,
    engine: EngineOptions,
    options: QueryOptions,
) -> None:
    """Semantic search: find the texts nearest to a query, in files or among vectors that encode wrote.

    bertcli search "how do I reset it" -i 'docs/**/*.md' -i notes.txt
    bertcli search "a hot drink" -i corpus.jsonl --index corpus.index --hybrid
    bertcli search "tea" "coffee" -i menu.csv --column dish --format jsonl
    bertcli encode -i corpus.jsonl -o vectors.parquet
    bertcli search "a hot drink" -i vectors.parquet
    bertcli search --query-file questions.txt -i vectors.npy -o hits.jsonl

    Search in files (-i). The lines of .txt, the paragraphs of .md and the rows of
    .csv, .tsv and .jsonl are encoded and compared with the query; a long one in parts
    of 256 tokens. A hit is printed as file:line: score text, and a terminal shades
    the query's words in it. --index keeps the vectors; without it all texts are
    encoded each time. A note says when nothing is near: when no score exceeds what
    unrelated sentences reach by chance (the median of pairs + 3 spreads), and with
    --hybrid no passage has all words of the query. Prompts apply to the query; by
    default they are the model's own.

    Search among vectors (-i vectors.npy). The file records how its vectors were
    made, and the query is encoded in the same way; vectors of another model are
    refused. The settings of a .npy file are in FILE.npy.settings.json: keep both
    together. For a part of a
    text (encode --chunk) the hit has index, chunk, start and end.
    For a model with a prompt for documents encode them with it (--prompt-name
    document): a note says where stored vectors were made without it.

    The score is the cosine of the two vectors, or the similarity that the model's
    folder names (similarity_fn_name); every row is compared. With --hybrid it is
    the sum of 1 / (60 + rank), with --rerank the reranker's score, with --sparse
    the product of the weights that query and passage share. A terminal shortens a
    long text; a pipe and a .csv, .tsv or .parquet file (a row for each hit) have
    all of it.
    """
    if not where.queries and where.query_file is None:
        raise wrong("QUERY", "give a query, or a file of queries with --query-file.")
    if not files.input:
        raise wrong("--input", "give files to search in (-i), or vectors that encode wrote (-i vectors.npy).")
    if files.vectors is None:
        refuse(files, ["--id-column"], "this is for stored vectors: leave it out with files of texts.")
    else:
        only_texts = [name for name in given_options(files) if name not in ("--input", "--id-column")]
        refuse(files, only_texts, f"this is for files of texts, and {files.vectors} has vectors: leave it out.")
    further = [name for name in files.input[1:] if ending_of(name) in STORED]
    if files.vectors is not None:
        further = [name for name in further if ending_of(name) != PARQUET]  # which may hold texts, too
    if further:
        raise wrong("--input", f"{further[0]} has vectors: name one such file, first, then the files of its texts.")
    output.check()
    if files.vectors is None:
        _search_files(where, files, model, output, engine, options)
    else:
        _search_vectors(where, files, model, output, engine, options)


def _queries(where: SearchOptions) -> list[str]:
    """The queries of the command line and of the file."""
    from bertcli.files.read.inputs import from_files

    queries = [*(where.queries or ())]
    if where.query_file is not None:
        queries += [text.text for text in from_files([where.query_file])]
    if not queries:
        raise BertcliError(f"{where.query_file} has no queries: write one a line.")
    return queries


# ------------------------------------------------------------------------------------------------------------ vectors


def _search_vectors(
    where: SearchOptions,
    files: SearchedFiles,
    model: ModelOptions,
    output: OutputOptions,
    engine: EngineOptions,
    options: QueryOptions,
) -> None:
    from bertcli.files.search import open_vectors

    stored = open_vectors(str(files.vectors))
    texts = (files.input or [])[1:]
    source = _source(stored, texts, where, files, output)
    queries = _queries(where)
    from bertcli.wings.search.stored import found

    opened = open_model(model, SENTENCE_SAMPLE, engine, options.prompt_name)
    records = found(opened, queries, stored, source, options, where.top_k, whole=bool(texts))
    columns = [column for column in COLUMNS if column not in OF_CHUNKS or column.name in stored.arrays]
    if where.min_score is not None:
        for record in records:
            record["nearest"] = [hit for hit in record["nearest"] if hit["score"] >= where.min_score]
    table = _Hits(tuple(columns), "nearest")
    write_results(records, output, table)


def _source(
    stored: "StoredVectors", texts: list[str], where: SearchOptions, files: SearchedFiles, output: OutputOptions
) -> "Texts | None":
    """The texts of the rows: those of the further files, else those stored with the vectors in a Parquet file."""
    from bertcli.wings.search.stored import stored_texts

    if texts:
        return read_texts(InputOptions(None, texts, column=where.column), output, files.id_column, keep_going=True)
    for name in ("--column", "--id-column"):
        if name in (*given_options(where), *given_options(files)):
            raise wrong(name, "this names a field of the texts: give their file with a second -i.")
    return stored_texts(stored)


# Below the score of a hit, so that its text stands apart.
INDENT = " " * 11


class _Hits(Table):
    """Hits below their queries where a terminal is too narrow for a table of texts, each in at most 1 + LINES lines."""

    def print(self) -> None:
        width = terminal_width()
        if width is None or unfolded_width(*self.displayed()) <= width:
            super().print()
            return
        last = None
        for cells in self.rows:
            hit = dict(zip(self.keys, map(visible, cells), strict=False))
            if hit["query"] != last:
                print(*([] if last is None else [""]), *_cut(hit["query"], width, LINES), sep="\n")
                last = hit["query"]
            heading = [f"{hit['score']:>9}  row {hit['row']}"]
            if hit.get("chunk"):
                heading.append(f"text {hit['index']}, characters {hit['start']} to {hit['end']}")
            if hit["id"]:
                heading.append(hit["id"])
            print(*_cut(", ".join(heading), width, 1))
            if hit["text"]:
                for line in _cut(hit["text"], width - len(INDENT), LINES):
                    print(f"{INDENT}{line}")


def _cut(text: str, width: int, most: int) -> list[str]:
    """The first lines of a folded text; where there are more, the last one ends in an ellipsis."""
    width = max(width, NARROWEST)
    lines = folded(text, width).split("\n")
    if len(lines) <= most:
        return lines
    last, *_ = folded(lines[most - 1], width - 1).split("\n")
    return [*lines[: most - 1], f"{last}…"]


# -------------------------------------------------------------------------------------------------------------- files


def _search_files(
    where: SearchOptions,
    files: SearchedFiles,
    model: ModelOptions,
    output: OutputOptions,
    engine: EngineOptions,
    options: QueryOptions,
) -> None:
    from bertcli.files.read.passages import has_fields, searched_files

    names = searched_files(files.input or [], where.column)
    if where.column is not None and not any(has_fields(name) for name in names):
        raise wrong("--column", "lines and paragraphs have no fields: this is for .csv, .tsv and .jsonl files.")
    if files.context and STANDARD_INPUT in names:
        raise wrong("--lines", "standard input cannot be read a second time: give a file.")
    for target in filter(None, (output.output, files.index)):
        if not os.path.exists(target):
            continue
        if any(name != STANDARD_INPUT and os.path.samefile(name, target) for name in names):
            raise BertcliError(f"Cannot write {target}: the texts are read from it; choose another name.")
    queries = _queries(where)
    for file in filter(os.path.isfile, where.queries or ()):
        logger.warning("%r is taken as a query; to search in it, write -i before it, or quote the pattern.", file)
    from bertcli.loaded_model import LoadedModel
    from bertcli.wings.search.files import Passages, files_of

    sample = MASKED_SAMPLE if files.sparse else SENTENCE_SAMPLE
    opened = open_model(model, sample, engine, options.prompt_name)
    reranker = None
    if files.rerank is not None:
        reranker = LoadedModel.load(files.rerank, **model.fetching, engine=engine.engine)
    of_texts = EncodeOptions(**{item.name: getattr(options, item.name) for item in fields(options) if item.init})
    of_texts = replace(of_texts, workers=of_texts.workers or "auto")
    passages = Passages(opened, names, of_texts, where.column, files.index, files.sparse)
    # One file may have all of the best hits, so that names need more of them.
    count = len(passages.chunks) if files.files_with_matches and reranker is None else where.top_k
    found: Iterable[list[Hit]] = passages.hits(queries, count, files.hybrid, reranker)
    if where.min_score is not None:
        least = where.min_score
        found = ([hit for hit in hits if hit.score >= least] for hits in found)
    if files.files_with_matches:
        records = [record for hits in found for record in files_of(hits, where.top_k)]
        write_results(records, output, _Names((Column("query"), Column("file"), Column("score", float)), ""))
        if not records:
            raise SystemExit(FAILED)  # as grep -l ends that finds nothing
        return
    hits = [hit for of_query in found for hit in of_query]
    idf = passages.keywords.idf if output.is_table and shows_shades() else None
    has_headings = any(hit.chunk.headings for hit in hits)
    columns = tuple(column for column in FILE_COLUMNS if column.name != "headings" or has_headings)
    lines = _Lines(columns, "", hits=hits, context=files.context, idf=idf, several=len(queries) > 1)
    write_results([hit.record for hit in hits], output, lines)


@dataclass(frozen=True, eq=False, repr=False)
class _Names(Table):
    """Names of files, a line each."""

    def print(self) -> None:
        for _, file, *_ in self.rows:
            print(visible(file))


@dataclass(frozen=True, eq=False, repr=False)
class _Lines(Table):
    """Print hits as `file:line: score text`, with lines of the file around them, as grep does.

    idf: how rare a word is; None where no shades are shown. several: there are several queries, which are then named.
    """

    hits: "Sequence[Hit]" = ()
    context: int = 0
    idf: Callable[[str], float] | None = None
    several: bool = False

    def print(self) -> None:
        last: Hit | None = None
        for hit in self.hits:
            if self.several and (last is None or hit.query != last.query):
                print(*([] if last is None else [""]), visible(hit.query), sep="\n")
            elif self.context and last is not None:
                print("--")
            self._print(hit)
            last = hit

    def _print(self, hit: "Hit") -> None:
        chunk = hit.chunk
        file = "standard input" if chunk.file == STANDARD_INPUT else visible(chunk.file)
        before: list[NumberedLine] = []
        after: list[NumberedLine] = []
        if self.context:
            before, after = _around(chunk.file, chunk.line, chunk.last, self.context)
        for number, line in before:
            print(f"{file}-{number}- {visible(line)}")
        head = f"{file}:{chunk.line}: {cell(hit.score)} "
        text = visible(" ".join(chunk.text.split()))
        width = terminal_width()
        if width is not None:
            room = max(NARROWEST, LINES * width - len(head))
            if len(text) > room:
                text = f"{text[: room - 1].rstrip()}{encodable('…')}"
        if self.idf is None:
            print(f"{head}{text}")
        else:
            print_marked(f"{head}{text}", _marks(text, hit.query, self.idf, len(head)))
        for number, line in after:
            print(f"{file}-{number}- {visible(line)}")


NumberedLine = tuple[int, str]


def _around(file: str, first: int, last: int, count: int) -> tuple[list[NumberedLine], list[NumberedLine]]:
    """The lines of a file before and after those of a hit, numbered from 1."""
    from bertcli.files.read.passages import file_lines

    lines = list(islice(enumerate(file_lines(file), 1), last + count))
    before = lines[: first - 1]
    return before[-count:], lines[last:]


def _marks(text: str, query: str, idf: Callable[[str], float], begin: int) -> Iterator[Mark]:
    """Words of a text that are in the query, the rarer the darker; words that most passages have are not shaded."""
    from bertcli.wings.search.bm25 import WORD, words_of

    weights = {word: idf(word) for word in words_of(query)}
    most = max(weights.values(), default=0.0)
    for match in WORD.finditer(text):
        weight = weights.get(match[0].casefold(), 0.0)
        if weight > most * FAINT:
            yield Mark(begin + match.start(), begin + match.end(), weight / most)
