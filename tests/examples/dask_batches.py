"""Embed texts of any number with Dask: `python dask_batches.py MODEL INPUT.parquet OUTPUT_FOLDER`.

A model is sent to the workers as its path. Each opens it memory-mapped: the workers of a machine share the weights.
"""

import sys
from typing import Any

import dask.dataframe
import pyarrow

import bertcli


def embed(name: str, source: str, target: str) -> None:
    """Write the rows of `source`, whose column "text" is read, with a column "embedding" more."""
    texts, model = dask.dataframe.read_parquet(source), bertcli.load(name)

    def encoded(part: Any) -> Any:
        return part.assign(embedding=[*model.encode([*part["text"]])])

    with_vectors = texts.map_partitions(encoded, meta={**texts.dtypes, "embedding": object})
    with_vectors.to_parquet(target, schema={"embedding": pyarrow.list_(pyarrow.float32())})


if __name__ == "__main__":
    embed(*sys.argv[1:4])
