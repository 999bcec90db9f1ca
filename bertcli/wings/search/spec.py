"""The spec of search: its options with their help, and for each of the two searches what a hit is.

From it come the command (command.py), `bertcli.search` and `bertcli.search_files` (calls.py), and what the tool of an
assistant offers (wings/agents). The computation is in files.py and stored.py.
"""

from dataclasses import KW_ONLY, dataclass, field, fields
from typing import ClassVar, NamedTuple

from bertcli.files.formats import ending_of, endings_with
from bertcli.report.terminal import Column
from bertcli.tasks.encode import DenseOptions, EncodeOptions
from bertcli.tasks.options import Checked, option
from bertcli.tasks.registry import MASKED_SAMPLE, SENTENCE_SAMPLE

PARQUET = ".parquet"
STORED_ENDINGS = endings_with("stored")  # of vectors
SEARCH_IN = "Search in"  # a panel of the help


@dataclass(frozen=True, eq=False, repr=False)
class SearchOptions(Checked):
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
    together. For a part of a text (encode --chunk) the hit has index, chunk, start
    and end. For a model with a prompt for documents encode them with it
    (--prompt-name document): a note says where stored vectors were made without it.

    The score is the cosine of the two vectors, or the similarity that the model's
    folder names (similarity_fn_name); every row is compared. With --hybrid it is
    the sum of 1 / (60 + rank), with --rerank the reranker's score, with --sparse
    the product of the weights that query and passage share. A terminal shortens a
    long text; a pipe and a .csv, .tsv or .parquet file (a row for each hit) have
    all of it.
    """

    _: KW_ONLY
    query_file: str | None = option(
        None, "FILE", "More queries: each line of .txt, or the field text of .jsonl, .csv, .tsv or .parquet."
    )
    top_k: int = option(10, "K", "How many hits per query. (default: 10)", least=1)
    min_score: float | None = option(None, "SCORE", "Leave out hits with a score below this.")
    column: str | None = option(None, "NAME", "The field that holds the text, of rows in -i. (default: text)")
    input: list[str] | None = option(
        None, "FILE",
        "Search in this file: the lines of .txt, the paragraphs of .md with their headings, the rows of .csv, .tsv and "
        ".jsonl, or a .gz of these; repeat for more, or give a folder or a quoted pattern ('docs/**/*.md'). Or among "
        "the vectors that encode wrote: .npy, .npz, .safetensors or .parquet; a second -i names the texts that they "
        "were made of, to show them (.parquet may hold them).",
        "-i", "--input", panel=SEARCH_IN,
    )  # fmt: skip
    index: str | None = option(
        None,
        "FILE",
        "Keep the vectors in this file, and compute only those of files that have changed.",
        panel=SEARCH_IN,
    )
    sparse: bool = option(
        False,
        "",
        "Compare sparse vectors (SPLADE, bge-m3), as encode --sparse makes them, not dense ones.",
        panel=SEARCH_IN,
    )
    hybrid: bool = option(False, "", "Rank by keywords, too: BM25, joined by reciprocal rank fusion.", panel=SEARCH_IN)
    rerank: str | None = option(
        None, "DIR|HUB_ID", "Let this reranker order the 50 best hits, as bertcli rank does.", panel=SEARCH_IN
    )
    context: int = option(
        0,
        "N",
        "Print N lines of the file before and after each hit.",
        "-C",
        "--lines",
        panel=SEARCH_IN,
        least=0,
    )
    files_with_matches: bool = option(
        False,
        "",
        "Print only the names of files with a hit that is near, best first; status 1 if there is none.",
        "-l",
        "--files-with-matches",
        panel=SEARCH_IN,
    )
    id_column: str | None = option(
        None,
        "NAME",
        "The field that identifies a text of stored vectors; it is copied to the output.",
        panel=SEARCH_IN,
    )

    @property
    def vectors(self) -> str | None:
        """The file of stored vectors, if the first file is one."""
        first = (self.input or [""])[0]
        return first if ending_of(first) in STORED_ENDINGS else None

    @property
    def trained(self) -> tuple[str, ...]:
        """The use for which a model should have been trained; of sparse vectors no bundled one was."""
        return () if self.sparse else ("encode",)

    @property
    def sample(self) -> str:
        """The bundled model that has such vectors."""
        return MASKED_SAMPLE if self.sparse else SENTENCE_SAMPLE


@dataclass(frozen=True, eq=False, repr=False)
class QueryOptions(DenseOptions):
    """The options with which a query is encoded: it is one vector, or an error."""

    not_offered: ClassVar[tuple[str, ...]] = ("layer", "normalize", "truncate_dim", "pooling", "max_length")
    chunk: None = field(default=None, init=False)
    keep_going: bool = field(default=False, init=False)

    @property
    def encode_options(self) -> EncodeOptions:
        """A copy that may be given chunks, for passages."""
        return EncodeOptions(**{item.name: getattr(self, item.name) for item in fields(self) if item.init})


class SearchSpec(NamedTuple):
    """The specification of one of the two searches.

    own       the options that it has alone, by their names on the command line
    columns   of a hit, in its record and in a table, with their types; an optional one may be absent
    rows_of   the field of a record with its hits; "" where a hit is a record by itself
    """

    own: tuple[str, ...]
    columns: tuple[Column, ...]
    rows_of: str = ""

    def columns_without(self, *absent: str) -> tuple[Column, ...]:
        """The columns but those that no hit has."""
        return tuple(column for column in self.columns if column.name not in absent)


FILES = SearchSpec(
    ("--index", "--sparse", "--hybrid", "--rerank", "--lines", "--files-with-matches"),
    (
        Column("query"),
        Column("file"),
        Column("line", int),
        Column("score", float),
        Column("headings", optional=True),
        Column("text"),
    ),
)
STORED = SearchSpec(
    ("--id-column",),
    (
        Column("query", varying=True),
        Column("row", int),
        Column("score", float),
        *(Column(name, int, optional=True) for name in ("index", "chunk", "start", "end")),
        Column("id", optional=True),
        Column("text", optional=True),
    ),
    "nearest",
)
