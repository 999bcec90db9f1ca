"""Embed texts of any number with datasets: `python datasets_batches.py MODEL INPUT.parquet OUTPUT.parquet`.

A model is sent to the workers as its path. Each opens it memory-mapped: the workers of a machine share the weights.
"""

import os
import sys

import datasets

import bertcli


def embed(name: str, source: str, target: str, workers: int = 2) -> None:
    """Write the rows of `source`, whose column "text" is read, with a column "embedding" more."""
    os.environ.setdefault("OMP_NUM_THREADS", str(max(1, (os.cpu_count() or 1) // workers)))  # threads of a worker
    texts, model = datasets.load_dataset("parquet", data_files=source, split="train"), bertcli.load(name)
    encoded = texts.map(
        lambda batch: {"embedding": model.encode(batch["text"])}, batched=True, batch_size=1024, num_proc=workers
    )
    encoded.to_parquet(target)


if __name__ == "__main__":
    embed(sys.argv[1], sys.argv[2], sys.argv[3])
