"""What `encode` makes of a text: a vector, one for each token, or a sparse one; each is an object.

It has the record, the table, the files that hold it, what the model must have, and examples. Everyone asks
`EncodeOptions.output`, which alone decides by the options. The work is in compute/encode.py.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

from bertcli.files.formats import ARRAYS, SEVERAL, VECTOR_TABLES
from bertcli.report.tables import OWN_ID, Record, Row, Table
from bertcli.report.terminal import Column
from bertcli.tasks.examples import CAT, QUESTION, Example, Subject
from bertcli.tasks.prompt_options import PromptedOptions
from bertcli.tasks.registry import MASKED_SAMPLE, SENTENCE_SAMPLE, Fields, Needs

if TYPE_CHECKING:
    from bertcli.files.write.vector_writer import VectorForm

SHOWN = 4  # numbers of a vector that a table shows
BEGINNING = Column(f"first {SHOWN} numbers", float)
TEXT_COLUMNS = (
    Column("index", int, varying=True),
    OWN_ID,
    Column("chunk", int, optional=True),
    Column("text"),
    Column("tokens", int),
)
HEAVIEST = 5  # pieces that a table shows


def text_fields(options: PromptedOptions) -> Fields:
    """The fields of a record that describe its text, or the part of it."""
    record: dict[str, Any] = {"index": int, "id?": (str, int)}
    if options.chunk is not None:
        record |= {"chunk": int, "start": int, "end": int}
    return {**record, "text": str, "tokens": int, "truncated": bool}


class EncodeOutput:
    """A vector for a text, or with --chunk for each part of it. The other outputs say what is different.

    arrays    the endings of files that hold the vectors, not records
    one_each  a text, or a part of one, has one vector of `width` numbers
    has_type  its numbers can be stored as float16, int8 and binary (--dtype)
    """

    arrays: ClassVar[tuple[str, ...]] = (*ARRAYS, *VECTOR_TABLES)
    needs: ClassVar[Needs] = Needs("encode", sample=SENTENCE_SAMPLE)
    one_each: ClassVar[bool] = True
    has_type: ClassVar[bool] = True

    @property
    def form(self) -> "type[VectorForm]":
        """How a file of arrays stores it."""
        from bertcli.files.write.vector_writer import VectorForm

        return VectorForm

    def with_words(self, options: Any) -> Any:
        """The options with which records have what the table shows."""
        return options

    def record(self, options: Any) -> Fields:
        """The fields of a record."""
        return text_fields(options) | {"embedding": [float]}

    def table(self, options: Any) -> Table:
        """A row for each vector, with its first numbers; a .csv file has them all, as JSON in a cell."""
        columns = (*TEXT_COLUMNS, Column("size", int), BEGINNING)
        return Table(columns, _rows, filed=_filed(options, "embedding"))

    def examples(self, subject: Subject) -> Iterator[Example]:
        """Yield examples for `bertcli info`."""
        yield Example("encode", [CAT])


class TokensOutput(EncodeOutput):
    """A vector for each token of a text (--pooling none)."""

    arrays = SEVERAL
    one_each = False

    @property
    def form(self) -> "type[VectorForm]":
        from bertcli.files.write.vector_writer import TokenForm

        return TokenForm

    def record(self, options: Any) -> Fields:
        """The tokens are given by name."""
        return text_fields(options) | {"tokens": [str], "embeddings": [[float]]}

    def table(self, options: Any) -> Table:
        """A row for each token."""
        columns = (*TEXT_COLUMNS[:2], Column("token"), Column("size", int), BEGINNING)
        filed = Table((Column("index", int), OWN_ID, Column("token"), Column("embedding")), _filed_tokens)
        return Table(columns, _token_rows, filed=filed)

    def examples(self, subject: Subject) -> Iterator[Example]:
        if "late" in subject.stated_uses:
            yield Example("encode --pooling none", [CAT], {"pooling": "none"})


class SparseOutput(EncodeOutput):
    """A weight for each entry of the vocabulary, of which those that are not 0 are given (--sparse)."""

    arrays = (".npz", *VECTOR_TABLES)
    # By itself it comes from the masked-language-model head.
    needs = Needs("A sparse vector", "mlm", MASKED_SAMPLE)
    has_type = False

    @property
    def form(self) -> "type[VectorForm]":
        from bertcli.files.write.vector_writer import SparseForm

        return SparseForm

    def with_words(self, options: Any) -> Any:
        return replace(options, words=True)

    def record(self, options: Any) -> Fields:
        """The ids of the vocabulary, ascending, and their weights."""
        words: Fields = {"words": [str]} if options.words else {}
        return text_fields(options) | {"indices": [int], "values": [float], **words}

    def table(self, options: Any) -> Table:
        """A row for each text, with the pieces of the largest weights."""
        columns = (*TEXT_COLUMNS, Column("entries", int), Column(f"{HEAVIEST} heaviest"))
        return Table(columns, _sparse_rows, filed=_filed(options, "indices", "values"))

    def examples(self, subject: Subject) -> Iterator[Example]:
        if "encode-sparse" in subject.stated_uses:
            yield Example("encode --sparse", [CAT], {"sparse": True})
        kind = subject.model.readable_kind
        if subject.runs("encode", sparse=True, prompt_name="query") and kind.routes.table("query") is not None:
            of_query = {"sparse": True, "prompt_name": "query"}
            yield Example("encode --sparse --prompt-name query", [QUESTION], of_query)


PER_TEXT, PER_TOKEN, SPARSE = EVERY_OUTPUT = (EncodeOutput(), TokensOutput(), SparseOutput())


# ------------------------------------------------------------------------------------------------------ rows of tables


def _filed(options: PromptedOptions, *names: str) -> Table:
    """The table of a .csv file: a row for each record; vectors are JSON in a cell."""
    columns = [Column("index", int), OWN_ID]
    if options.chunk is not None:
        columns += [Column(name, int) for name in ("chunk", "start", "end")]
    columns += [Column("text"), *map(Column, names)]
    return Table(tuple(columns), "")


def _filed_tokens(record: Record) -> Iterator[Row]:
    for token, vector in zip(record["tokens"], record["embeddings"], strict=True):
        yield record["index"], record.get("id"), token, vector


def _text_cells(record: Record) -> Row:
    return tuple(record.get(column.name) for column in TEXT_COLUMNS)


def _rows(record: Record) -> Iterator[Row]:
    vector = record["embedding"]
    yield *_text_cells(record), len(vector), _beginning(vector)


def _token_rows(record: Record) -> Iterator[Row]:
    for token, vector in zip(record["tokens"], record["embeddings"], strict=True):
        yield record["index"], record.get("id"), token, len(vector), _beginning(vector)


def _beginning(vector: list[float]) -> str:
    return " ".join(f"{number:7.4f}" for number in vector[:SHOWN])


def _sparse_rows(record: Record) -> Iterator[Row]:
    heaviest = sorted(zip(record["values"], record["words"], strict=True), key=lambda entry: -entry[0])[:HEAVIEST]
    words = "  ".join(f"{word} {weight:.3f}" for weight, word in heaviest)
    yield *_text_cells(record), len(record["indices"]), words
