"""The task encode: its options, record and table. Its work is in compute/encode.py."""

from collections.abc import Iterator, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, Literal

from bertcli.files.texts import Pairs
from bertcli.report.tables import OWN_ID, Record, Row, Table
from bertcli.report.terminal import Column
from bertcli.tasks.examples import CAT, Example, Subject
from bertcli.tasks.options import PromptedOptions, numbers, option
from bertcli.tasks.registry import PAIRS_IN_ROWS, SENTENCE_SAMPLE, Fields, Needs, TaskSpec

Pooling = Literal["auto", "mean", "cls", "max", "lasttoken", "pooler", "none"]


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


def text_fields(options: PromptedOptions) -> Fields:
    """The fields of a record that describe its text, or the part of it."""
    record: dict[str, Any] = {"index": int, "id?": (str, int)}
    if options.chunk is not None:
        record |= {"chunk": int, "start": int, "end": int}
    return {**record, "text": str, "tokens": int, "truncated": bool}


def record(options: EncodeOptions) -> Fields:
    """One vector; with pooling "none" one for each of the tokens, which are then given by name."""
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


def examples(subject: Subject) -> Iterator[Example]:
    """Yield an example: a vector for a text, or for each token of a late-interaction model."""
    yield Example("encode", [CAT])
    if "late" in subject.stated_uses:
        yield Example("encode --pooling none", [CAT], {"pooling": "none"})


SPEC = TaskSpec(
    EncodeOptions,
    reads=PAIRS_IN_ROWS,
    needs=lambda options: Needs("encode", sample=SENTENCE_SAMPLE),
    record=record,
    table=lambda options: (
        Table(TOKEN_COLUMNS, token_rows, filed=FILED_TOKENS)
        if options.pooling == "none"
        else Table(COLUMNS, rows, filed=filed(options, "embedding"))
    ),
    examples=examples,
    position=1,
    most_used=(
        "-i",
        "-o",
        "-m",
        "--column",
        "--pooling",
        "--normalize",
        "--prompt-name",
        "--chunk",
        "--dtype",
        "--resume",
        "--format",
    ),
    vectors=True,
)
