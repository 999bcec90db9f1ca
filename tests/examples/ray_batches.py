"""Embed a data set of any size with Ray Data: `python ray_batches.py MODEL INPUT.parquet OUTPUT_FOLDER`.

The model reaches the workers as its path: each opens it once (memory-mapped, so the workers of a machine share one copy
of the weights), then turns batch after batch into vectors. Ray splits the input, restarts what fails, and writes the
result; the vectors are those that `bertcli encode` gives for the same texts.
"""

from __future__ import annotations

import sys
from typing import Any

import ray

import bertcli


class Encode:
    """What a worker is: a model, and what it does with a batch of rows."""

    def __init__(self, model: str) -> None:
        self._model = bertcli.load(model)

    def __call__(self, rows: dict[str, Any]) -> dict[str, Any]:
        return {**rows, "embedding": self._model.encode(rows["text"].tolist())}


def embed(texts: ray.data.Dataset, model: str, workers: int = 2) -> ray.data.Dataset:
    """The data set, whose column "text" is read, with a column "embedding" beside the others."""
    pool = ray.data.ActorPoolStrategy(size=workers)
    return texts.map_batches(Encode, fn_constructor_args=(model,), batch_size=1024, compute=pool)


if __name__ == "__main__":
    name, source, target = sys.argv[1:]
    embed(ray.data.read_parquet(source), name).write_parquet(target)
