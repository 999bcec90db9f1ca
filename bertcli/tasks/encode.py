"""The task encode: its options, record and table, of dense and of sparse vectors. Its work is in compute/encode.py."""

from collections.abc import Iterator, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, Literal

from bertcli.errors import BertcliError
from bertcli.files.formats import ARRAYS, SEVERAL, VECTOR_TABLES
from bertcli.files.texts import Pairs
from bertcli.report.tables import OWN_ID, Record, Row, Table
from bertcli.report.terminal import Column
from bertcli.tasks.examples import CAT, QUESTION, Example, Subject
from bertcli.tasks.options import PromptedOptions, numbers, option
from bertcli.tasks.registry import MASKED_SAMPLE, SENTENCE_SAMPLE, TEXTS_WITH_IDS, Fields, Needs, TaskSpec, Use

Pooling = Literal["auto", "mean", "cls", "max", "lasttoken", "pooler", "none"]
# How a text becomes one dense vector, which a sparse one is not.
OF_DENSE = ("pooling", "layer", "normalize", "truncate_dim")


@dataclass(frozen=True, eq=False, repr=False)
class EncodeOptions(PromptedOptions):
    """Turn texts into vectors.

    bertcli encode "The cat sat on the mat." --format json
    bertcli encode -i sentences.txt -o vectors.npy
    bertcli encode -i corpus.jsonl --column body -o vectors.parquet --id-column id
    bertcli encode -i huge.jsonl -o vectors.npy --resume --keep-going
    jq -c '.[]' all.json | bertcli encode --column body -o vectors.npy
    bertcli encode -i reports.jsonl --chunk 256,32 -o vectors.parquet
    bertcli encode -m my-model -i questions.txt --prompt-name query -o queries.npy
    bertcli encode -m naver/splade-v3 --sparse --tokens "hot tea" --format json
    bertcli encode -m sentence-transformers/all-MiniLM-L6-v2 "How are you?"

    The ending of -o FILE decides what is written:

      .json, .jsonl          a record for each text
      .npy                   an array, one row per text
      .npz, .safetensors     the same array, named "embeddings"
      .parquet               the vector beside id and text (needs pyarrow)

    Some options add arrays, which are columns in .parquet:

      --pooling none   a row for each token; "offsets" has each text's first row
      --chunk          a row for each part of a text; index, chunk, start, end
      --dtype int8     "scales", a factor for each row
      --sparse         data, indices, indptr, as in scipy.sparse

    The file also holds the model and the options that made it; "bertcli search"
    encodes a query with the same ones. Beside a .npy file they are in
    FILE.npy.settings.json.

    To query a .parquet file in DuckDB:

      SELECT b.text, list_cosine_similarity(a.embedding, b.embedding)
      FROM 'vectors.parquet' a, 'vectors.parquet' b WHERE a.id = 0 ORDER BY 2 DESC

    A file appears under its name only when it is complete. A run of ten seconds or
    more keeps its progress after a crash or Ctrl-C; repeat the command to continue.
    The result is the same, byte for byte. With --keep-going a text that fails gets a
    row of zeros, and FILE.errors.jsonl says why.
    """

    pairs: Pairs = None
    pooling: Pooling | None = option(
        "auto", "MODE",
        "How tokens become one vector. auto: as the model specifies (default); mean, cls, max, lasttoken, pooler; "
        "none: one vector per token.",
    )  # fmt: skip
    layer: int | Sequence[int] = option(
        -1,
        "N[,N]",
        "Take the states after layer N: 0 is the embeddings, -1 the last layer (default). Several layers are "
        "concatenated.",
        read=numbers("-1 or 0,6,12"),
    )
    normalize: bool | None = option(
        None, "", "Scale vectors to length 1 (default: as the model specifies).", "--normalize/--no-normalize"
    )
    _: KW_ONLY
    truncate_dim: int | None = option(
        None, "N", "Keep only the first N numbers of each vector; normalization, if any, comes after.", least=1
    )
    sparse: bool = option(
        False, "", "Write sparse vectors: a weight for each word piece of the vocabulary (SPLADE, bge-m3)."
    )
    words: bool = option(False, "", "With --sparse: also write the word pieces, not only their numbers.", "--tokens")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.words and not self.sparse:
            raise BertcliError("words (--tokens) is for sparse vectors: give sparse (--sparse), too.")
        of_dense = [name for name in OF_DENSE if getattr(self, name) != getattr(EncodeOptions, name)]
        if self.sparse and of_dense:
            names = ", ".join(f"{name} (--{name.replace('_', '-')})" for name in of_dense)
            raise BertcliError(
                f"Sparse vectors (--sparse) are made as the model specifies: leave out {names}, or --sparse."
            )


@dataclass(frozen=True, eq=False, repr=False)
class DenseOptions(EncodeOptions):
    """The options of dense vectors, for what gives no others."""

    sparse: bool = field(default=False, init=False)
    words: bool = field(default=False, init=False)


@dataclass(frozen=True, eq=False, repr=False)
class EncodeSparseOptions(EncodeOptions):
    """The options of sparse vectors; `words`: records have the pieces of the vocabulary beside their ids."""

    pooling: Pooling | None = field(default="auto", init=False)
    layer: int | Sequence[int] = field(default=-1, init=False)
    normalize: bool | None = field(default=None, init=False)
    _: KW_ONLY
    truncate_dim: int | None = field(default=None, init=False)
    sparse: bool = field(default=True, init=False)


def text_fields(options: PromptedOptions) -> Fields:
    """The fields of a record that describe its text, or the part of it."""
    record: dict[str, Any] = {"index": int, "id?": (str, int)}
    if options.chunk is not None:
        record |= {"chunk": int, "start": int, "end": int}
    return {**record, "text": str, "tokens": int, "truncated": bool}


def record(options: EncodeOptions) -> Fields:
    """One vector; with pooling "none" one for each of the tokens, which are then given by name.

    A sparse vector has the ids of the vocabulary, ascending, and their weights.
    """
    if options.sparse:
        words: Fields = {"words": [str]} if options.words else {}
        return text_fields(options) | {"indices": [int], "values": [float], **words}
    if options.pooling == "none":
        return text_fields(options) | {"tokens": [str], "embeddings": [[float]]}
    return text_fields(options) | {"embedding": [float]}


def filed(options: PromptedOptions, *names: str) -> Table:
    """The table of a .csv file: a row for each record, or for each token; vectors are JSON in a cell."""
    columns = [Column("index", int), OWN_ID]
    if options.chunk is not None:
        columns += [Column(name, int) for name in ("chunk", "start", "end")]
    columns += [Column("text"), *map(Column, names)]
    return Table(tuple(columns), "")


def filed_tokens(record: Record) -> Iterator[Row]:
    """Yield a row of a .csv file for each token."""
    for token, vector in zip(record["tokens"], record["embeddings"], strict=True):
        yield record["index"], record.get("id"), token, vector


FILED_TOKENS = Table((Column("index", int), OWN_ID, Column("token"), Column("embedding")), filed_tokens)
SHOWN = 4  # numbers of a vector that a table shows
BEGINNING = Column(f"first {SHOWN} numbers", float)
TEXT_COLUMNS = (
    Column("index", int, varying=True),
    OWN_ID,
    Column("chunk", int, optional=True),
    Column("text"),
    Column("tokens", int),
)
COLUMNS = (*TEXT_COLUMNS, Column("size", int), BEGINNING)
TOKEN_COLUMNS = (*TEXT_COLUMNS[:2], Column("token"), Column("size", int), BEGINNING)


def text_cells(record: Record) -> Row:
    """Make the cells of TEXT_COLUMNS."""
    return tuple(record.get(column.name) for column in TEXT_COLUMNS)


def rows(record: Record) -> Iterator[Row]:
    """Yield one row, with the first numbers of the vector."""
    vector = record["embedding"]
    yield *text_cells(record), len(vector), _beginning(vector)


def token_rows(record: Record) -> Iterator[Row]:
    """Yield a row for each token."""
    for token, vector in zip(record["tokens"], record["embeddings"], strict=True):
        yield record["index"], record.get("id"), token, len(vector), _beginning(vector)


def _beginning(vector: list[float]) -> str:
    return " ".join(f"{number:7.4f}" for number in vector[:SHOWN])


HEAVIEST = 5  # pieces that a table shows
SPARSE_COLUMNS = (*TEXT_COLUMNS, Column("entries", int), Column(f"{HEAVIEST} heaviest"))


def sparse_rows(record: Record) -> Iterator[Row]:
    """Yield one row, with the pieces of the largest weights."""
    heaviest = sorted(zip(record["values"], record["words"], strict=True), key=lambda entry: -entry[0])[:HEAVIEST]
    words = "  ".join(f"{word} {weight:.3f}" for weight, word in heaviest)
    yield *text_cells(record), len(record["indices"]), words


def table(options: EncodeOptions) -> Table:
    """Make the table: a row for each vector, with some of its numbers; a sparse one needs `words`."""
    if options.sparse:
        return Table(SPARSE_COLUMNS, sparse_rows, filed=filed(options, "indices", "values"))
    if options.pooling == "none":
        return Table(TOKEN_COLUMNS, token_rows, filed=FILED_TOKENS)
    return Table(COLUMNS, rows, filed=filed(options, "embedding"))


def arrays(options: EncodeOptions) -> tuple[str, ...]:
    """The endings of files that hold the vectors: .npy only a single array, Parquet only a row for each text."""
    if options.sparse:
        return (".npz", *VECTOR_TABLES)
    return SEVERAL if options.pooling == "none" else (*ARRAYS, *VECTOR_TABLES)


def needs(options: EncodeOptions) -> Needs:
    """Return the needs of the options: by itself a sparse vector comes from the masked-language-model head."""
    return Needs("A sparse vector", "mlm", MASKED_SAMPLE) if options.sparse else Needs("encode", sample=SENTENCE_SAMPLE)


def examples(subject: Subject) -> Iterator[Example]:
    """Yield a vector for a text; one for each token, from a late-interaction model; sparse ones, also of a query."""
    yield Example("encode", [CAT])
    if "late" in subject.stated_uses:
        yield Example("encode --pooling none", [CAT], {"pooling": "none"})
    if "encode-sparse" in subject.stated_uses:
        yield Example("encode --sparse", [CAT], {"sparse": True})
    kind = subject.model.readable_kind
    if subject.runs("encode", sparse=True, prompt_name="query") and kind.routes.table("query") is not None:
        yield Example("encode --sparse --prompt-name query", [QUESTION], {"sparse": True, "prompt_name": "query"})


SPEC = TaskSpec(
    EncodeOptions,
    reads=TEXTS_WITH_IDS,
    needs=needs,
    record=record,
    table=table,
    arrays=arrays,
    uses=(
        Use("encode", ""),
        Use("tokens", options={"pooling": "none"}),
        Use("encode-sparse", "mlm", {"sparse": True}, takes=EncodeSparseOptions),
    ),
    examples=examples,
    position=1,
    other_words=("embed", "embeddings", "vectorize"),
)
