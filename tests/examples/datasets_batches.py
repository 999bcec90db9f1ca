"""Embed texts of any number with datasets: `python datasets_batches.py MODEL INPUT.parquet OUTPUT.parquet`.

Each worker opens the model once, memory-mapped: the workers of a machine share one copy of the weights.
"""

import os
import sys

import datasets

import bertcli


def embed(model: str, source: str, target: str, workers: int = 2) -> None:
    """The rows of `source`, whose column "text" is read, with a column "embedding" more."""
    os.environ.setdefault("OMP_NUM_THREADS", str(max(1, (os.cpu_count() or 1) // workers)))  # threads of a worker
    texts = datasets.load_dataset("parquet", data_files=source, split="train").with_format("arrow")
    encoded = texts.map(bertcli.Columns("encode", model), batched=True, batch_size=1024, num_proc=workers)
    encoded.to_parquet(target)


if __name__ == "__main__":
    embed(sys.argv[1], sys.argv[2], sys.argv[3])
