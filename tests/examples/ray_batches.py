"""Embed texts of any number with Ray Data: `python ray_batches.py MODEL INPUT.parquet OUTPUT_FOLDER`.

Each worker opens the model once, memory-mapped: the workers of a machine share one copy of the weights.
"""

import sys
from typing import Any

import ray

import bertcli


class Encoder:
    """Adds a column "embedding" to batches with a column "text"."""

    def __init__(self, model: str) -> None:
        self.model = bertcli.load(model)

    def __call__(self, batch: dict[str, Any]) -> dict[str, Any]:
        return {**batch, "embedding": self.model.encode(list(batch["text"]))}


def embed(model: str, source: str, target: str, workers: int = 1) -> None:
    """Write the rows of `source` with their embeddings."""
    texts = ray.data.read_parquet(source)
    pool = ray.data.ActorPoolStrategy(size=workers)  # fewer than there are CPUs: others read and write
    encoded = texts.map_batches(Encoder, fn_constructor_args=[model], batch_size=1024, compute=pool)
    encoded.write_parquet(target)


if __name__ == "__main__":
    embed(sys.argv[1], sys.argv[2], sys.argv[3])
