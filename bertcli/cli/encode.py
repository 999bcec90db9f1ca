"""bertcli encode"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from bertcli.cli.command import command
from bertcli.cli.options import InputOptions, LengthOptions, ModelOptions, OutputOptions, WorkOptions
from bertcli.cli.running import MASKED_SAMPLE, counted, open_model, prepare, read_texts
from bertcli.output.table import Cell, Column, Table

if TYPE_CHECKING:
    from bertcli.tasks import Block

logger = logging.getLogger("bertcli")
SHOWN = 4  # numbers of a vector that a table shows
BEGINNING = Column(f"first {SHOWN} numbers", number=True)
COLUMNS = (
    Column("index", number=True, varying=True),
    Column("text"),
    Column("tokens", number=True),
    Column("size", number=True),
    BEGINNING,
)
TOKEN_COLUMNS = (Column("index", number=True, varying=True), Column("token"), Column("size", number=True), BEGINNING)


@command("encode")
def encode(
    texts: InputOptions,
    length: LengthOptions,
    model: ModelOptions,
    output: OutputOptions,
    work: WorkOptions,
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
    similarity: Annotated[
        bool, typer.Option("--similarity", metavar="", help="Show how alike the texts are: the cosines of all pairs.")
    ] = False,
) -> None:
    """Turn texts into vectors.

    bertcli encode "The cat sat on the mat." --format json
    bertcli encode -i sentences.txt -o vectors.npy
    bertcli encode -i corpus.jsonl --column body -o vectors.jsonl
    bertcli encode --similarity "a cup of tea" "a mug of coffee" "a red car"
    bertcli encode -m sentence-transformers/all-MiniLM-L6-v2 "How are you?"

    Files: .json and .jsonl hold records; .npy, .npz and .safetensors an array
    "embeddings", a row a text. With --pooling none it has a row a token, and
    an array "offsets" says where each text begins.
    """
    layers = _layers(layer)
    if similarity and pooling == "none":
        raise typer.BadParameter(
            "similarity compares whole texts, so it needs one vector a text.", param_hint="--pooling"
        )
    prepare(work)
    source = read_texts(texts)
    from bertcli.output.files import check_output
    from bertcli.output.records import ENDINGS as RECORD_ENDINGS
    from bertcli.output.vectors import ENDINGS, RAGGED_ENDINGS

    possible = RECORD_ENDINGS + (RAGGED_ENDINGS if pooling == "none" else ENDINGS)
    ending = check_output(output.output, possible) if output.output else ""
    opened = open_model(model, MASKED_SAMPLE)
    from bertcli import tasks

    stream = tasks.encode_blocks(
        opened, source, pooling=pooling, layer=layers, normalize=normalize,
        max_length=length.max_length, truncation=length.truncation, batch_tokens=work.batch_tokens,
    )  # fmt: skip
    logger.info("pooling %s%s.", stream.plan.reason, "; vectors of length 1" if stream.plan.normalize else "")
    blocks = counted(stream, "encode", texts, output, lambda block: len(block.items))
    if similarity:
        _compare(list(blocks), output, as_array=ending in ENDINGS)
    elif output.output and ending in ENDINGS:
        _write_vectors(blocks, output.output, stream.plan.width, ragged=pooling == "none")
    else:
        _write_records(blocks, output, pooling)


def _write_vectors(blocks: Iterable[Block], file: str, width: int, ragged: bool) -> None:
    from bertcli.output.vectors import vector_output

    with vector_output(file, width, ragged=ragged) as vectors:
        for block in blocks:
            vectors.append(block.vectors)


def _write_records(blocks: Iterable[Block], output: OutputOptions, pooling: str) -> None:
    from bertcli.output.records import record_output

    table = Table(TOKEN_COLUMNS, _token_rows) if pooling == "none" else Table(COLUMNS, _rows)
    with record_output(output.format, output.output, table) as write:
        for block in blocks:
            for record in block.records():
                write(record)


def _compare(blocks: list[Block], output: OutputOptions, as_array: bool) -> None:
    from bertcli.output.records import record_output
    from bertcli.output.vectors import vector_output
    from bertcli.tasks import similarity

    cosines, records = similarity(blocks)
    if output.output and as_array:
        with vector_output(output.output, len(cosines), name="cosine") as vectors:
            vectors.append(cosines)
        return
    numbers = tuple(Column(str(index), number=True) for index in range(len(cosines)))
    table = Table(
        (Column("index", number=True), Column("text"), *numbers),
        lambda record: [(record["index"], record["text"], *record["cosine"])],
    )
    with record_output(output.format, output.output, table) as write:
        for record in records:
            write(record)


def _layers(text: str) -> list[int]:
    try:
        return [int(number) for number in text.split(",")]
    except ValueError:
        raise typer.BadParameter("give whole numbers, as in -1 or 0,6,12.", param_hint="--layer") from None


def _rows(record: Mapping[str, Any]) -> Iterator[tuple[Cell, ...]]:
    vector = record["embedding"]
    yield record["index"], record["text"], record["tokens"], len(vector), _beginning(vector)


def _token_rows(record: Mapping[str, Any]) -> Iterator[tuple[Cell, ...]]:
    for token, vector in zip(record["tokens"], record["embeddings"], strict=True):
        yield record["index"], token, len(vector), _beginning(vector)


def _beginning(vector: list[float]) -> str:
    return " ".join(f"{number:7.4f}" for number in vector[:SHOWN])
