"""bertcli encode: vectors as records, or in a file of arrays."""

import json
import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

from bertcli.cli.job import Job, Run
from bertcli.cli.options import (
    MASKED_SAMPLE,
    SENTENCE_SAMPLE,
    by_name,
    changed,
    id_column_option,
    refuse,
    wrong,
)
from bertcli.files.formats import ARRAYS, PARQUET, RECORDS, SEVERAL, SINGLE
from bertcli.report.tables import Cell, Table
from bertcli.report.terminal import Column
from bertcli.tasks.encode import EncodeOptions
from bertcli.tasks.encode_sparse import EncodeSparseOptions
from bertcli.tasks.options import Prepared, option

if TYPE_CHECKING:
    from bertcli.files.vectors import VectorForm
    from bertcli.tasks.compute.encode import PreparedTask

NOT_SPARSE = ("--pooling", "--layer", "--normalize", "--truncate-dim", "--dtype")
SHOWN = 4  # numbers of a vector that a table shows
BEGINNING = Column(f"first {SHOWN} numbers", number=True)
COLUMNS = (
    Column("index", number=True, varying=True),
    Column("id", optional=True),
    Column("chunk", number=True, optional=True),
    Column("text"),
    Column("tokens", number=True),
    Column("size", number=True),
    BEGINNING,
)
NAMES = ("index", "id", "chunk", "text", "tokens")  # of what is known of a text beside its vector
HEAVIEST = 5  # pieces that a table of sparse vectors shows
SPARSE_COLUMNS = (*COLUMNS[:5], Column("entries", number=True), Column(f"{HEAVIEST} heaviest"))
TOKEN_COLUMNS = (
    Column("index", number=True, varying=True),
    Column("id", optional=True),
    Column("token"),
    Column("size", number=True),
    BEGINNING,
)
logger = logging.getLogger("bertcli")


@dataclass(frozen=True)
class StorageOptions:
    """What is made of the vectors, and how they are stored."""

    dtype: Literal["float32", "float16", "int8", "binary"] = option(
        "float32", "TYPE",
        "How arrays are stored: float32 (default), float16, int8 with one scale per row, binary: one bit per number.",
    )  # fmt: skip
    id_column: str | None = id_column_option()
    sparse: bool = option(False, "", "A weight for each word piece of the vocabulary instead, most of them 0 (SPLADE).")
    tokens: bool = option(False, "", "With --sparse: also write the word pieces, not only their numbers.")

    def refuse_contradictions(self, job: Job, wanted: EncodeOptions) -> None:
        """Wrong usage is a typer.BadParameter."""
        if self.tokens and not self.sparse:
            raise wrong("--tokens", "this is about the word pieces of sparse vectors (--sparse).")
        if self.sparse:
            why = "a sparse vector has none of this: leave it out, or --sparse."
            refuse(wanted, NOT_SPARSE, why)
            refuse(self, NOT_SPARSE, why)
        one_a_text = wanted.pooling != "none"
        if self.id_column is not None and job.ending in ARRAYS and not wanted.keep_going:
            why = f"a {job.ending} file cannot hold ids; .json, .jsonl and .parquet can (--output)."
            raise wrong("--id-column", why)
        if wanted.chunk is not None and (not one_a_text or job.ending in SINGLE):
            why = (
                "a part of a text has one vector (no --pooling none), and a .npy file cannot say which part it is of; "
                ".npz, .safetensors, .parquet and .jsonl can (--output)."
            )
            raise wrong("--chunk", why)
        endings = self.array_endings(one_a_text)
        if self.dtype != "float32" and job.ending not in endings:
            raise wrong("--dtype", f"this is only for files of arrays: {', '.join(endings)} (--output).")

    def array_endings(self, one_a_text: bool) -> tuple[str, ...]:
        """File endings that can hold these arrays: .npy only a single one, Parquet only one row per text."""
        if self.sparse:
            return (".npz", PARQUET)
        return (*ARRAYS, PARQUET) if one_a_text else SEVERAL

    def form(self, run: Run[EncodeOptions], task: "PreparedTask[Any]", width: int) -> "VectorForm":
        """How vectors of this width are stored."""
        from bertcli.files.arrays import MODEL, SETTINGS
        from bertcli.files.shards import signature
        from bertcli.files.vectors import VectorForm

        job, wanted = run.job, run.wanted
        if self.dtype == "int8" and job.ending in SINGLE:
            logger.info("a .npy file holds one array, so the int8 scales are left out; cosines do not need them.")
        return VectorForm(
            width,
            self.dtype,
            ragged=wanted.pooling == "none",
            sparse=self.sparse,
            chunked=wanted.chunk is not None,
            paired=job.texts.text_pair is not None or job.texts.pair_column is not None,
            own_ids=self.id_column is not None,
            keep_going=wanted.keep_going,
            ending=job.ending,
            notes={
                MODEL: signature(run.model.name, run.model.path),
                SETTINGS: json.dumps({**task.settings, "dtype": self.dtype, "chunk": wanted.chunk}),
            },
        )


@dataclass(frozen=True, eq=False)
class MovedOptions:
    """What earlier versions had here, and is a command of its own."""

    query: list[str] | None = option(None, "TEXT", "", hidden=True)
    query_file: str | None = option(None, "FILE", "", hidden=True)
    against: str | None = option(None, "FILE", "", hidden=True)
    similarity: bool = option(False, "", "", hidden=True)

    def refuse(self) -> None:
        """Say where it is. Wrong usage is a typer.BadParameter."""
        if self.similarity:
            raise wrong("--similarity", "this is a command of its own: bertcli similarity TEXT TEXT ...")
        for name in changed(self):
            raise wrong(name, "this is a command of its own: bertcli search QUERY --in FILE --texts FILE.")


def encode(job: Job, wanted: EncodeOptions, storage: StorageOptions, moved: MovedOptions) -> None:
    """Turn texts into vectors.

    bertcli encode "The cat sat on the mat." --format json
    bertcli encode -i sentences.txt -o vectors.npy
    bertcli encode -i corpus.jsonl --column body -o vectors.parquet --id-column id
    bertcli encode -i huge.jsonl -o vectors.npy --resume --keep-going
    jq -c '.[]' all.json | bertcli encode --format-in jsonl -o vectors.npy
    bertcli encode -i reports.jsonl --chunk 256,32 -o vectors.parquet
    bertcli encode -m my-model -i questions.txt --prompt-name query -o queries.npy
    bertcli encode -m naver/splade-v3 --sparse --tokens "hot tea" --format json
    bertcli encode -m sentence-transformers/all-MiniLM-L6-v2 "How are you?"

    Files: .json and .jsonl hold records; .npy, .npz and .safetensors hold an
    array "embeddings", one row per text; .parquet (needs pyarrow) holds the
    vectors next to id and text. With --pooling none there is one row per token,
    and an array "offsets" says where each text begins; int8 adds an array
    "scales". With --chunk a long text has a row for each of its parts; arrays or
    columns index, chunk, start and end say which characters of which text it is.
    With --sparse a .npz file holds data, indices and indptr, as scipy.sparse has
    them, and .parquet the lists indices and values. All but .npy say which model
    made the vectors, and bertcli search refuses those of another. In DuckDB:

    SELECT b.text, list_cosine_similarity(a.embedding, b.embedding)
    FROM 'vectors.parquet' a, 'vectors.parquet' b WHERE a.id = 0 ORDER BY 2 DESC

    A file appears under its name only when it is complete. A run of ten seconds
    or more keeps its progress after a crash or Ctrl-C: repeat the command with
    --resume to continue it; the result is the same, byte for byte. With
    --keep-going a text that cannot be used has zeros for its row, and
    FILE.errors.jsonl says why.
    """
    moved.refuse()
    storage.refuse_contradictions(job, wanted)
    arrays = storage.array_endings(wanted.pooling != "none")
    sample = MASKED_SAMPLE if storage.sparse else SENTENCE_SAMPLE
    run = job.begin("encode", wanted, by_name(storage), sample=sample, endings=RECORDS + arrays)
    task, width, table = _sparse(run, storage) if storage.sparse else _dense(run)
    logger.info("%s.", task.summary)
    from bertcli.tasks.compute.encode import record_blocks
    from bertcli.tasks.compute.run import results

    if job.ending in arrays:
        run.write_vectors(storage.form(run, task, width), partial(results, task))
    else:
        run.raise_if_failed(run.write_records(lambda texts, start: record_blocks(results(task, texts, start)), table))


def _dense(run: Run[EncodeOptions]) -> "tuple[PreparedTask[Any], int, Table]":
    """The task, how many numbers its vectors have, and how they are shown."""
    from bertcli.tasks.compute.encode import plan

    task = plan(run.model, run.wanted)
    return task, task.plan.width, Table(COLUMNS, _rows) if task.plan.pooling else Table(TOKEN_COLUMNS, _token_rows)


def _sparse(run: Run[EncodeOptions], storage: StorageOptions) -> "tuple[PreparedTask[Any], int, Table]":
    """The same for sparse vectors."""
    from bertcli.tasks.compute.encode_sparse import plan

    output = run.job.output
    words = storage.tokens or (output.output is None and output.format == "table")
    shared = {field.name: getattr(run.wanted, field.name) for field in fields(Prepared)}
    task = plan(run.model, EncodeSparseOptions(**shared, words=words))
    return task, run.model.config.vocab_size, Table(SPARSE_COLUMNS, _sparse_rows)


def _rows(record: Mapping[str, Any]) -> Iterator[tuple[Cell, ...]]:
    vector = record["embedding"]
    yield *map(record.get, NAMES), len(vector), _beginning(vector)


def _token_rows(record: Mapping[str, Any]) -> Iterator[tuple[Cell, ...]]:
    for token, vector in zip(record["tokens"], record["embeddings"], strict=True):
        yield record["index"], record.get("id"), token, len(vector), _beginning(vector)


def _sparse_rows(record: Mapping[str, Any]) -> Iterator[tuple[Cell, ...]]:
    heaviest = sorted(zip(record["values"], record["words"], strict=True), key=lambda entry: -entry[0])[:HEAVIEST]
    words = "  ".join(f"{word} {weight:.3f}" for weight, word in heaviest)
    yield *map(record.get, NAMES), len(record["indices"]), words


def _beginning(vector: list[float]) -> str:
    return " ".join(f"{number:7.4f}" for number in vector[:SHOWN])
