"""bertcli encode"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from bertcli.cli.command import command
from bertcli.cli.job import Job, run_records
from bertcli.cli.options import (
    InputOptions,
    LengthOptions,
    LongOptions,
    ModelOptions,
    OutputOptions,
    SearchOptions,
    WorkOptions,
)
from bertcli.cli.running import MASKED_SAMPLE, open_model, prepare
from bertcli.output.table import Cell, Table
from bertcli.output.table import Column as Heading

if TYPE_CHECKING:
    from bertcli.tasks import Stream, Tally

logger = logging.getLogger("bertcli")
SHOWN = 4  # numbers of a vector that a table shows
BEGINNING = Heading(f"first {SHOWN} numbers", number=True)
COLUMNS = (
    Heading("index", number=True, varying=True),
    Heading("text"),
    Heading("tokens", number=True),
    Heading("size", number=True),
    BEGINNING,
)
TOKEN_COLUMNS = (Heading("index", number=True, varying=True), Heading("token"), Heading("size", number=True), BEGINNING)


@command("encode")
def encode(
    texts: InputOptions,
    length: LengthOptions,
    model: ModelOptions,
    output: OutputOptions,
    work: WorkOptions,
    long: LongOptions,
    search: SearchOptions,
    pooling: Annotated[
        Literal["auto", "mean", "cls", "max", "pooler", "none"],
        typer.Option(
            metavar="MODE",
            show_default=False,
            help="auto: as the model was made (default); mean, cls, max, pooler; none: a vector a token.",
        ),
    ] = "auto",
    layer: Annotated[
        str,
        typer.Option(
            metavar="N[,N]", help="0: embeddings, N: layer N, -1: the last; several are joined.", show_default=False
        ),
    ] = "-1",
    normalize: Annotated[
        bool | None,
        typer.Option(
            "--normalize/--no-normalize",
            metavar="",
            show_default=False,
            help="Vectors of length 1 (default: as the model was made).",
        ),
    ] = None,
    truncate_dim: Annotated[
        int | None,
        typer.Option(
            min=1,
            metavar="N",
            show_default=False,
            help="Keep the first N numbers of each vector, and normalise after that if at all.",
        ),
    ] = None,
    dtype: Annotated[
        Literal["float32", "float16", "int8", "binary"],
        typer.Option(
            metavar="TYPE",
            show_default=False,
            help="How arrays are stored: float32 (default), float16, int8 with a scale a row, binary: a bit a number.",
        ),
    ] = "float32",
    id_column: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", show_default=False, help="The field that names a text; it goes to the output with it."
        ),
    ] = None,
    similarity: Annotated[
        bool, typer.Option("--similarity", metavar="", help="Show how alike the texts are: the cosines of all pairs.")
    ] = False,
) -> None:
    """Turn texts into vectors.

    bertcli encode "The cat sat on the mat." --format json
    bertcli encode -i sentences.txt -o vectors.npy
    bertcli encode -i corpus.jsonl --column body -o vectors.parquet --id-column id
    bertcli encode -i huge.jsonl -o vectors.npy --resume --keep-going
    bertcli encode --similarity "a cup of tea" "a mug of coffee" "a red car"
    bertcli encode --query "a hot drink" --against vectors.npy -i sentences.txt
    bertcli encode -m sentence-transformers/all-MiniLM-L6-v2 "How are you?"

    Files: .json and .jsonl hold records; .npy, .npz and .safetensors an array
    "embeddings", a row a text, .parquet (with pyarrow installed) that beside
    id and text. With --pooling none there is a row a token, and an array
    "offsets" says where each text begins; int8 brings an array "scales".

    A file appears under its name when it is whole. What was done before a
    crash or Ctrl-C is not lost: with --resume the same command goes on, and
    the result is the same, byte for byte. With --keep-going a text that cannot
    be used has zeros for its row, and FILE.errors.jsonl says why.
    """
    layers = _layers(layer)
    if similarity and (pooling == "none" or long.resume or long.keep_going or dtype != "float32"):
        raise typer.BadParameter(
            "it compares a few whole texts: no --pooling none, --resume, --keep-going or --dtype.",
            param_hint="--similarity",
        )
    prepare(work)
    if search.given:
        from bertcli.cli.search import Search

        wanted = Search(search, texts, output, id_column)
        wanted.refuse(long, other=pooling == "none" or similarity or dtype != "float32")
        wanted.run(
            lambda: open_model(model, MASKED_SAMPLE),
            pooling=pooling, layer=layers, normalize=normalize, truncate_dim=truncate_dim,
            max_length=length.max_length, truncation=length.truncation,
        )  # fmt: skip
        return
    from bertcli.output.records import ENDINGS as RECORD_ENDINGS
    from bertcli.output.vectors import ENDINGS, SEVERAL_ENDINGS

    arrays = ENDINGS if similarity else SEVERAL_ENDINGS if pooling == "none" else (*ENDINGS, ".parquet")
    job = Job(
        "encode", texts, length, output, work, long,
        {
            "--pooling": pooling, "--layer": layers, "--normalize": normalize, "--truncate-dim": truncate_dim,
            "--dtype": dtype, "--id-column": id_column,
        },
    )  # fmt: skip
    source = job.read(RECORD_ENDINGS + arrays, id_column)
    if dtype != "float32" and job.ending not in arrays:
        raise typer.BadParameter(f"it is for files of arrays: {', '.join(arrays)} (--output).", param_hint="--dtype")
    if job.ending == ".parquet":
        from bertcli.output.parquet import check_pyarrow

        check_pyarrow(str(output.output))
    opened = open_model(model, MASKED_SAMPLE)
    from bertcli import tasks

    def begin(tally: Tally) -> Stream:
        return tasks.encode_blocks(
            opened, source, pooling=pooling, layer=layers, normalize=normalize, truncate_dim=truncate_dim,
            start=tally, **job.reading,
        )  # fmt: skip

    plan = begin(tasks.Tally()).plan
    logger.info("pooling %s%s.", plan.reason, "; vectors of length 1" if plan.normalize else "")
    if similarity:
        from bertcli.cli.compare import compare

        compare(list(job.counted(begin(tasks.Tally()), source)), output, as_array=job.ending in ENDINGS)
    elif job.ending in arrays:
        from bertcli.cli.vectors import ERRORS, Form, write_vectors

        if dtype == "int8" and job.ending == ".npy":
            logger.info("a .npy file holds one array, so the scales of int8 are left out; cosines need none.")
        form = Form(plan.width, dtype, ragged=pooling == "none")
        tally = write_vectors(job, source, opened, form, lambda tally: iter(begin(tally)))
        empty, listed = ("null", "column error") if job.ending == ".parquet" else ("zeros", f"{output.output}{ERRORS}")
        job.end(tally, f"their vectors are {empty}, and {listed} says why")
    else:
        table = Table(TOKEN_COLUMNS, _token_rows) if pooling == "none" else Table(COLUMNS, _rows)
        job.end(run_records(job, source, opened, table, lambda tally: begin(tally).records()))


def _layers(text: str) -> list[int]:
    try:
        return [int(number) for number in text.split(",")]
    except ValueError:
        raise typer.BadParameter("give whole numbers, as in -1 or 0,6,12.", param_hint="--layer") from None


def _rows(record: Mapping[str, Any]) -> Iterator[tuple[Cell, ...]]:
    if "error" in record:
        yield record["index"], record["text"], None, None, record["error"]
        return
    vector = record["embedding"]
    yield record["index"], record["text"], record["tokens"], len(vector), _beginning(vector)


def _token_rows(record: Mapping[str, Any]) -> Iterator[tuple[Cell, ...]]:
    if "error" in record:
        yield record["index"], record["error"], None, None
        return
    for token, vector in zip(record["tokens"], record["embeddings"], strict=True):
        yield record["index"], token, len(vector), _beginning(vector)


def _beginning(vector: list[float]) -> str:
    return " ".join(f"{number:7.4f}" for number in vector[:SHOWN])
