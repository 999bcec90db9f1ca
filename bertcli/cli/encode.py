"""bertcli encode: vectors as records, in a file of arrays, or compared with each other."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any, Literal

from bertcli.cli.job import PARQUET, RECORDS, Job, Run, files_of, set_threads
from bertcli.cli.options import SearchOptions, by_name, changed, id_column_option, option, wrong
from bertcli.errors import BertcliError, shown
from bertcli.files.table import Cell, Table
from bertcli.report import Column

if TYPE_CHECKING:
    from bertcli.files.vectors import VectorForm
    from bertcli.tasks.encode import Stream
    from bertcli.tasks.prepared import Preparation

ARRAYS = (".npy", ".npz", ".safetensors")  # the endings of bertcli.files.arrays
NOT_SPARSE = ("--pooling", "--layer", "--normalize", "--truncate-dim", "--dtype", "--similarity")
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
MOST_SHOWN = 1000  # texts whose cosines are shown on standard output: some 10 MB
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
class VectorOptions:
    """How a text's vector is made and stored."""

    pooling: Literal["auto", "mean", "cls", "max", "pooler", "none"] = option(
        "auto", "MODE",
        "auto: as the model specifies (default); mean, cls, max, pooler; none: one vector per token.",
    )  # fmt: skip
    layer: str = option("-1", "N[,N]", "0: embeddings, N: layer N, -1: the last; several are concatenated.")
    normalize: bool | None = option(
        None, "", "Scale vectors to length 1 (default: as the model specifies).", "--normalize/--no-normalize"
    )
    truncate_dim: int | None = option(
        None, "N", "Keep only the first N numbers of each vector; normalization, if any, comes after.", min=1
    )
    dtype: Literal["float32", "float16", "int8", "binary"] = option(
        "float32", "TYPE",
        "How arrays are stored: float32 (default), float16, int8 with one scale per row, binary: one bit per number.",
    )  # fmt: skip
    id_column: str | None = id_column_option()
    prompt_name: str | None = option(
        None, "NAME", "The prompt of this name, as the model defines it, is put before every text."
    )
    prompt: str | None = option(
        None, "TEXT",
        "This is put before every text; '' for nothing. (default: the model's own prompt, if it has one)",
    )  # fmt: skip
    chunk: str | None = option(
        None, "N[,OVERLAP]",
        "Several vectors for a text of more than N tokens, one for each part of it, cut between words; "
        "neighboring parts share up to OVERLAP tokens.",
    )  # fmt: skip
    sparse: bool = option(False, "", "A weight for each word piece of the vocabulary instead, most of them 0 (SPLADE).")
    tokens: bool = option(False, "", "With --sparse: also write the word pieces, not only their numbers.")
    similarity: bool = option(
        False, "", "Show how similar the texts are: the cosines of all pairs, on stdout of at most 1,000."
    )

    def refuse_contradictions(self, job: Job) -> None:
        """Wrong usage is a typer.BadParameter."""
        if self.tokens and not self.sparse:
            raise wrong("--tokens", "this is about the word pieces of sparse vectors (--sparse).")
        for name in changed(self):
            if self.sparse and name in NOT_SPARSE:
                raise wrong(name, "a sparse vector has none of this: leave it out, or --sparse.")
        unfit = not self.one_a_text or self.stored_smaller or self.id_column is not None
        if self.similarity and (unfit or job.long.resume or job.long.keep_going):
            why = "it compares a few whole texts: no --pooling none, --resume, --keep-going, --dtype or --id-column."
            raise wrong("--similarity", why)
        if self.id_column is not None and job.ending in ARRAYS and not job.long.keep_going:
            why = f"a {job.ending} file cannot hold ids; .json, .jsonl and .parquet can (--output)."
            raise wrong("--id-column", why)
        if self.chunk is not None and (not self.one_a_text or job.ending == ".npy"):
            why = (
                "a part of a text has one vector (no --pooling none), and a .npy file cannot say which part it is of; "
                ".npz, .safetensors, .parquet and .jsonl can (--output)."
            )
            raise wrong("--chunk", why)
        if self.stored_smaller and job.ending not in self.array_endings:
            raise wrong("--dtype", f"this is only for files of arrays: {', '.join(self.array_endings)} (--output).")

    @property
    def array_endings(self) -> tuple[str, ...]:
        """File endings that can hold these arrays: .npy only a single one, Parquet only one row per text."""
        if self.sparse:
            return (".npz", PARQUET)
        if self.similarity:
            return ARRAYS
        return (*ARRAYS, PARQUET) if self.one_a_text else ARRAYS[1:]

    @property
    def one_a_text(self) -> bool:
        """Whether a text has one vector rather than one per token."""
        return self.pooling != "none"

    @property
    def stored_smaller(self) -> bool:
        """Whether numbers are stored in fewer bits than float32, which only files of arrays support."""
        return self.dtype != "float32"

    @property
    def plan(self) -> dict[str, Any]:
        """The arguments for the task."""
        return {
            "pooling": self.pooling,
            "layer": _numbers(self.layer, "--layer", "-1 or 0,6,12"),
            "normalize": self.normalize,
            "truncate_dim": self.truncate_dim,
            **self.preparation,
        }

    @property
    def preparation(self) -> dict[str, Any]:
        """The arguments that say how texts are prepared."""
        chunk = None if self.chunk is None else _numbers(self.chunk, "--chunk", "256 or 256,32")
        return {"prompt_name": self.prompt_name, "prompt": self.prompt, "chunk": chunk}

    def form(self, job: Job) -> dict[str, Any]:
        """The arguments of a VectorForm about texts."""
        return {
            "chunked": self.chunk is not None,
            "paired": job.texts.text_pair is not None or job.texts.pair_column is not None,
            "own_ids": self.id_column is not None,
            "keep_going": job.long.keep_going,
        }


def _numbers(given: str, option: str, example: str) -> list[int]:
    """Whole numbers separated by commas; wrong usage is a typer.BadParameter."""
    try:
        return [int(number) for number in given.split(",")]
    except ValueError:
        raise wrong(option, f"give whole numbers, as in {example}.") from None


def encode(job: Job, search: SearchOptions, vectors: VectorOptions) -> None:
    """Turn texts into vectors.

    bertcli encode "The cat sat on the mat." --format json
    bertcli encode -i sentences.txt -o vectors.npy
    bertcli encode -i corpus.jsonl --column body -o vectors.parquet --id-column id
    bertcli encode -i huge.jsonl -o vectors.npy --resume --keep-going
    jq -c '.[]' all.json | bertcli encode --format-in jsonl -o vectors.npy
    bertcli encode -i reports.jsonl --chunk 256,32 -o vectors.parquet
    bertcli encode -m my-model -i questions.txt --prompt-name query -o queries.npy
    bertcli encode -m naver/splade-v3 --sparse --tokens "hot tea" --format json
    bertcli encode --similarity "a cup of tea" "a mug of coffee" "a red car"
    bertcli encode --query "a hot drink" --against vectors.npy -i sentences.txt
    bertcli encode -m sentence-transformers/all-MiniLM-L6-v2 "How are you?"

    Files: .json and .jsonl hold records; .npy, .npz and .safetensors hold an
    array "embeddings", one row per text; .parquet (needs pyarrow) holds the
    vectors next to id and text. With --pooling none there is one row per token,
    and an array "offsets" says where each text begins; int8 adds an array
    "scales". With --chunk a long text has a row for each of its parts; arrays or
    columns index, chunk, start and end say which characters of which text it is.
    With --sparse a .npz file holds data, indices and indptr, as scipy.sparse has
    them, and .parquet the lists indices and values.

    A file appears under its name only when it is complete. A run of ten seconds
    or more keeps its progress after a crash or Ctrl-C: repeat the command with
    --resume to continue it; the result is the same, byte for byte. With
    --keep-going a text that cannot be used has zeros for its row, and
    FILE.errors.jsonl says why.
    """
    if changed(search):
        from bertcli.cli.search import refuse_contradictions, search_stored

        unfit = ("--similarity", "--dtype", "--chunk", "--sparse")
        other = not vectors.one_a_text or any(name in unfit for name in changed(vectors))
        refuse_contradictions(search, job, other)
        set_threads(job.work)
        search_stored(search, job, vectors.id_column, **vectors.plan)
        return
    vectors.refuse_contradictions(job)
    plan = vectors.preparation if vectors.sparse else vectors.plan  # wrong usage is told before a model is fetched
    endings = RECORDS + vectors.array_endings
    run = job.begin("encode", by_name(vectors), endings=endings)
    if vectors.sparse:
        task, how, form, table = _sparse(run, vectors, plan)
    else:
        task, how, form, table = _dense(run, vectors, plan)
    if vectors.similarity:
        _compare(run, run.stream(task, **how))
    elif job.ending in vectors.array_endings:
        run.vectors(form, task, **how)
    else:
        run.end(run.records(lambda *texts, **options: task(*texts, **options).records(), table, **how))


def _dense(run: Run, vectors: VectorOptions, plan: dict[str, Any]) -> tuple[Any, dict[str, Any], VectorForm, Table]:
    """The task, its arguments, and how its vectors are stored and shown."""
    from bertcli.files.vectors import VectorForm
    from bertcli.tasks.encode import encode_blocks

    stream = run.stream(encode_blocks, **plan)
    length = "; vectors of length 1" if stream.plan.normalize else ""
    logger.info("pooling %s%s%s.", stream.plan.reason, length, _said_of_prompt(stream.preparation))
    if vectors.dtype == "int8" and run.job.ending == ".npy":
        logger.info("a .npy file holds one array, so the int8 scales are left out; cosines do not need them.")
    form = VectorForm(stream.plan.width, vectors.dtype, ragged=not vectors.one_a_text, **vectors.form(run.job))
    table = Table(COLUMNS, _rows) if vectors.one_a_text else Table(TOKEN_COLUMNS, _token_rows)
    return encode_blocks, plan, form, table


def _sparse(run: Run, vectors: VectorOptions, plan: dict[str, Any]) -> tuple[Any, dict[str, Any], VectorForm, Table]:
    """The same for sparse vectors."""
    from bertcli.files.vectors import VectorForm
    from bertcli.tasks.sparse import encode_sparse

    output = run.job.output
    words = vectors.tokens or (output.output is None and output.format == "table")
    how = {**plan, "words": words}
    stream = run.stream(encode_sparse, **how)
    strategy, activation = stream.pooling
    rule = "ln(1 + ln(1 + relu))" if activation == "log1p_relu" else "ln(1 + relu)"
    why = "" if run.model.sentence.sparse else ", since the checkpoint specifies no SpladePooling"
    logger.info("the %s over tokens of %s%s%s.", strategy, rule, why, _said_of_prompt(stream.preparation))
    form = VectorForm(run.model.config.vocab_size, sparse=True, **vectors.form(run.job))
    return encode_sparse, how, form, Table(SPARSE_COLUMNS, _sparse_rows)


def _said_of_prompt(how: Preparation) -> str:
    """What a note adds where texts get a prompt."""
    if not how.prompt:
        return ""
    left_out = ", and its tokens are left out of the pooling" if how.left_out else ""
    return f"; {shown(how.prompt)} is prepended to every text{left_out}"


def _compare(run: Run, stream: Stream) -> None:
    """Write the cosines of all pairs of texts: as records, or as an array "cosine"; on stdout only of MOST_SHOWN."""
    from bertcli.tasks.encode import cosines, similarity, vectors_of

    output = run.job.output
    many = BertcliError(f"The cosines of more than {MOST_SHOWN:,} texts are only written to a file: -o FILE.npy.")
    if output.output is None:
        again = run.job.texts.texts or (run.texts if files_of(run.texts) else ())  # can be read a second time
        if sum(1 for _ in islice(again, MOST_SHOWN + 1)) > MOST_SHOWN:
            raise many
    blocks, items = [], []
    with run.counted(stream.blocks) as counted:
        for block in counted:
            blocks.append(block)
            items += block.items
            if output.output is None and len(items) > MOST_SHOWN:
                raise many
    count = len(items)
    if output.output is not None and run.job.ending in ARRAYS:
        from bertcli.files.arrays import ArrayFile, Rows
        from bertcli.files.draft import Draft

        with Draft(output.output) as draft:
            file = ArrayFile(draft, [Rows("cosine", "<f4", (count,))])
            for rows in cosines(vectors_of(blocks)):
                file.append({"cosine": rows})
            file.finish()
        return
    from bertcli.files.records import record_output

    names = [f"{item.index}.{item.chunk.number}" if item.chunk else str(item.index) for item in items]
    numbers = [Column(name, number=True) for name in names]
    which = iter(names)
    table = Table(
        (Column("index", number=True), Column("text"), *numbers),
        lambda record: [(next(which), record["text"], *record["cosine"])],
    )
    with record_output(output.format, output.output, table) as write:
        for record in similarity(blocks):
            write(record)


def _rows(record: Mapping[str, Any]) -> Iterator[tuple[Cell, ...]]:
    name = record["index"], record.get("id"), record.get("chunk"), record["text"]
    vector = record["embedding"]
    yield *name, record["tokens"], len(vector), _beginning(vector)


def _token_rows(record: Mapping[str, Any]) -> Iterator[tuple[Cell, ...]]:
    name = record["index"], record.get("id")
    for token, vector in zip(record["tokens"], record["embeddings"], strict=True):
        yield *name, token, len(vector), _beginning(vector)


def _sparse_rows(record: Mapping[str, Any]) -> Iterator[tuple[Cell, ...]]:
    name = record["index"], record.get("id"), record.get("chunk"), record["text"]
    heaviest = sorted(zip(record["values"], record["words"], strict=True), key=lambda entry: -entry[0])[:HEAVIEST]
    yield (
        *name,
        record["tokens"],
        len(record["indices"]),
        "  ".join(f"{word} {weight:.3f}" for weight, word in heaviest),
    )


def _beginning(vector: list[float]) -> str:
    return " ".join(f"{number:7.4f}" for number in vector[:SHOWN])
