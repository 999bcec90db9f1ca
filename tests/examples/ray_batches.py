"""Embed a data set of any size with Ray Data: `python ray_batches.py MODEL INPUT.parquet OUTPUT_FOLDER`.

A model pickles as its path, so that is what reaches the workers: a task opens it there (memory-mapped: the processes of
a machine share one copy of the weights) and turns batch after batch into vectors. Ray splits the input, does again what
fails, and writes the result; the vectors are those that `bertcli encode` gives for the same texts.
"""

from __future__ import annotations

import sys
from typing import Any

import ray

import bertcli
from bertcli.model import Model


def encode(rows: dict[str, Any], model: Model) -> dict[str, Any]:
    """The rows, with a vector for each text; any engine that maps batches of columns can call this."""
    return {**rows, "embedding": model.encode(rows["text"].tolist())}


def embed(texts: ray.data.Dataset, model: Model) -> ray.data.Dataset:
    """The data set, whose column "text" is read, with a column "embedding" beside the others."""
    return texts.map_batches(encode, fn_kwargs={"model": model}, batch_size=1024)


if __name__ == "__main__":
    name, source, target = sys.argv[1:]
    embed(ray.data.read_parquet(source), bertcli.load(name)).write_parquet(target)
