"""The provenance of an evaluation: versions, command, digests of models and data, and the options that matter.

A digest is BLAKE2b of the files' contents, so that whoever has the same files can check that they are the same.
"""

import os
from collections.abc import Sequence
from dataclasses import fields
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy

from bertcli._version import __version__
from bertcli.engine import blas
from bertcli.files.digest import digest
from bertcli.model import Model
from bertcli.statistics.intervals import DRAWS, SEED, Record
from bertcli.wings.evaluate.comparison import FLIPS
from bertcli.wings.evaluate.load.labelled import Labelled
from bertcli.wings.evaluate.options import Evaluate

WITHOUT_EFFECT = ("batch_tokens", "workers", "at_least", "keep_going")  # options that change no figure


def model_of(model: Model) -> Record:
    """The record of a model: {name, digest, dtypes, computed_in}; digest of its files, dtypes of its stored weights."""
    read = [] if model.folder is None else model.files_read
    stored = sorted({use.dtype for use in model.tensor_uses if use.path})
    return {"name": model.name, "digest": digest(read) if read else None, "dtypes": stored, "computed_in": "float32"}


def provenance(data: Labelled, models: Sequence[Record], options: Evaluate, command: str) -> Record:
    """The provenance of a record or a page."""
    return {
        "bertcli": __version__,
        "numpy": numpy.__version__,
        "date": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "command": command,
        "models": [*models],
        "data": {"file": data.file, "rows": len(data.rows), "digest": digest(data_files(data.file, options))},
        "options": _given(options),
        "seed": SEED,
        "draws": DRAWS,
        "permutations": FLIPS,
        "kernel": blas.kernel(),
    }


def data_files(file: str, options: Evaluate) -> list[Path]:
    """The data files whose contents the digest covers: one, or those of a BEIR folder; a run (--run), baselines."""
    if os.path.isdir(file):
        names = ("corpus.jsonl", "queries.jsonl", f"qrels/{options.split}.tsv")
        files = [Path(file, name) for name in names]
    else:
        files = [Path(file)]
    return [*files, *(Path(file) for file in (options.run, options.baseline) if file)]


def _given(options: Evaluate) -> Record:
    """The options that change figures and do not have their defaults."""
    given: dict[str, Any] = {}
    for item in fields(options):
        value = getattr(options, item.name)
        if value != item.default and item.name not in WITHOUT_EFFECT:
            given[item.name] = value
    return given


def sentences(record: Record, with_command: bool = True) -> list[str]:
    """Write the provenance for people, in a few lines."""
    source = record["provenance"]
    data = source["data"]
    rows = f"{data['rows']:,} row{'' if data['rows'] == 1 else 's'}"
    lines = [f"Data: {data['file']}, {rows}, BLAKE2b {data['digest'][:12]}."]
    for model in source["models"]:
        stored = f", stored as {', '.join(model['dtypes'])}" if model["dtypes"] else ""
        read = f", BLAKE2b {model['digest'][:12]}" if model["digest"] else ""
        lines.append(f"Model: {model['name']}{read}{stored}, computed in float32.")
    kernel = f", OpenBLAS {source['kernel']}" if source["kernel"] else ""
    lines.append(
        f"Made by bertcli {source['bertcli']} (NumPy {source['numpy']}{kernel}) on {source['date'][:10]}, "
        f"seed {source['seed']}."
    )
    if source["command"] and with_command:
        lines.append(f"Command: {source['command']}")
    return lines
