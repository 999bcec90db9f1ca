"""The task encode: its options. What it makes of a text is in encode_output.py, its work in compute/encode.py."""

from collections.abc import Iterator, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Literal

from bertcli.errors import WrongOptions
from bertcli.files.texts import Pairs
from bertcli.tasks.encode_output import EVERY_OUTPUT, PER_TEXT, PER_TOKEN, SPARSE, EncodeOutput
from bertcli.tasks.examples import Example, Subject
from bertcli.tasks.options import numbers, option
from bertcli.tasks.prompt_options import PromptedOptions
from bertcli.tasks.registry import TEXTS_WITH_IDS, TaskSpec, Use

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
            raise WrongOptions(
                "words (--tokens) is for sparse vectors: give sparse (--sparse), too.", "sparse", "words"
            )
        of_dense = [name for name in OF_DENSE if getattr(self, name) != getattr(EncodeOptions, name)]
        if self.sparse and of_dense:
            names = ", ".join(f"{name} (--{name.replace('_', '-')})" for name in of_dense)
            raise WrongOptions(
                f"Sparse vectors (--sparse) are made as the model specifies: leave out {names}, or --sparse.",
                "sparse",
                *of_dense,
            )

    @property
    def output(self) -> EncodeOutput:
        """What these options make of a text."""
        if self.sparse:
            return SPARSE
        return PER_TOKEN if self.pooling == "none" else PER_TEXT


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


def examples(subject: Subject) -> Iterator[Example]:
    """Yield the examples of every output."""
    for output in EVERY_OUTPUT:
        yield from output.examples(subject)


SPEC = TaskSpec(
    EncodeOptions,
    reads=TEXTS_WITH_IDS,
    needs=lambda options: options.output.needs,
    record=lambda options: options.output.record(options),
    table=lambda options: options.output.table(options),
    arrays=lambda options: options.output.arrays,
    uses=(
        Use("encode", ""),
        Use("tokens", options={"pooling": "none"}),
        Use("encode-sparse", "mlm", {"sparse": True}, takes=EncodeSparseOptions),
    ),
    examples=examples,
    position=1,
    other_words=("embed", "embeddings", "vectorize", "cluster"),
)
