"""A run of `bertcli encode`: texts become records, an array in a file, or a table of their similarities."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import typer

from bertcli import tasks
from bertcli.arrow import pyarrow
from bertcli.cli.compare import compare
from bertcli.cli.job import Job, run_records
from bertcli.cli.options import ModelOptions
from bertcli.cli.running import MASKED_SAMPLE, open_model
from bertcli.cli.vector_options import VectorOptions
from bertcli.cli.vectors import ERRORS, Form, write_vectors
from bertcli.inputs import Texts
from bertcli.model import Model
from bertcli.output.parquet import ENDING as PARQUET
from bertcli.output.records import ENDINGS as RECORD_ENDINGS
from bertcli.output.table import Cell, Column, Table
from bertcli.output.vectors import ENDINGS, SEVERAL_ENDINGS
from bertcli.tasks import Stream, Tally
from bertcli.untrusted import shown

Begin = Callable[[Tally], Stream]
logger = logging.getLogger("bertcli")
SHOWN = 4  # numbers of a vector that a table shows
BEGINNING = Column(f"first {SHOWN} numbers", number=True)
COLUMNS = (
    Column("index", number=True, varying=True),
    Column("id", optional=True),
    Column("text"),
    Column("tokens", number=True),
    Column("size", number=True),
    BEGINNING,
)
TOKEN_COLUMNS = (
    Column("index", number=True, varying=True),
    Column("id", optional=True),
    Column("token"),
    Column("size", number=True),
    BEGINNING,
)


def run(job: Job, vectors: VectorOptions, options: ModelOptions) -> None:
    """Read, compute, write; a result that cannot be written is refused before any work."""
    arrays = _array_endings(vectors)
    if vectors.id_column is not None and job.ending in ENDINGS and not job.long.keep_going:
        raise typer.BadParameter(
            f"a {job.ending} file cannot hold ids; .json, .jsonl and .parquet can (--output).",
            param_hint="--id-column",
        )
    source = job.read(RECORD_ENDINGS + arrays, vectors.id_column)
    if vectors.stored_smaller and job.ending not in arrays:
        raise typer.BadParameter(
            f"this is only for files of arrays: {', '.join(arrays)} (--output).", param_hint="--dtype"
        )
    if job.ending == PARQUET:
        pyarrow(str(job.output.output))  # if it is missing, fail now
    model = open_model(options, MASKED_SAMPLE)

    def begin(tally: Tally) -> Stream:
        return tasks.encode_blocks(model, source, start=tally, **vectors.plan, **job.reading)

    plan = begin(Tally()).plan
    length = "; vectors of length 1" if plan.normalize else ""
    prompt = f"; {shown(plan.prompt)} is prepended to every text" if plan.prompt else ""
    logger.info("pooling %s%s%s.", plan.reason, length, prompt)
    if vectors.similarity:
        with job.counted(begin(Tally()).blocks, source) as blocks:
            found = list(blocks)
        compare(found, job.output, as_array=job.ending in ENDINGS)
    elif job.ending in arrays:
        _write_arrays(job, source, model, Form(plan.width, vectors.dtype, ragged=not vectors.one_a_text), begin)
    else:
        table = Table(COLUMNS, _rows) if vectors.one_a_text else Table(TOKEN_COLUMNS, _token_rows)
        job.end(run_records(job, source, model, table, lambda tally: begin(tally).records()))


def _array_endings(vectors: VectorOptions) -> tuple[str, ...]:
    """File endings that can hold these arrays: .npy only a single one, Parquet only one row per text."""
    if vectors.similarity:
        return ENDINGS
    return (*ENDINGS, PARQUET) if vectors.one_a_text else SEVERAL_ENDINGS


def _write_arrays(job: Job, source: Texts, model: Model, form: Form, begin: Begin) -> None:
    if form.dtype == "int8" and job.ending == ".npy":
        logger.info("a .npy file holds one array, so the int8 scales are left out; cosines do not need them.")
    tally = write_vectors(job, source, model, form, begin)
    empty, listed = ("null", "column error") if job.ending == PARQUET else ("zeros", f"{job.output.output}{ERRORS}")
    job.end(tally, f"their vectors are {empty}, and {listed} says why")


def _rows(record: Mapping[str, Any]) -> Iterator[tuple[Cell, ...]]:
    name = record["index"], record.get("id"), record["text"]
    if "error" in record:
        yield *name, None, None, record["error"]
        return
    vector = record["embedding"]
    yield *name, record["tokens"], len(vector), _beginning(vector)


def _token_rows(record: Mapping[str, Any]) -> Iterator[tuple[Cell, ...]]:
    name = record["index"], record.get("id")
    if "error" in record:
        yield *name, record["error"], None, None
        return
    for token, vector in zip(record["tokens"], record["embeddings"], strict=True):
        yield *name, token, len(vector), _beginning(vector)


def _beginning(vector: list[float]) -> str:
    return " ".join(f"{number:7.4f}" for number in vector[:SHOWN])
