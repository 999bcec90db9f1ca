"""Embed texts of any number with Dask: `python dask_batches.py MODEL INPUT.parquet OUTPUT_FOLDER`.

A model is sent to the workers as its path. Each opens it memory-mapped: the workers of a machine share the weights.
"""

import sys
from typing import Any

import dask.dataframe
import pandas
import pyarrow

import bertcli


def embed(name: str, source: str, target: str) -> None:
    """Write the rows of `source`, whose column "text" is read, with a column "embedding" more."""
    texts, model = dask.dataframe.read_parquet(source), bertcli.load(name)

    def encoded(part: Any) -> Any:
        return part.assign(embedding=[*model.encode([*part["text"]])])

    vectors = pyarrow.list_(pyarrow.float32())
    with_vectors = texts.map_partitions(encoded, meta={**texts.dtypes, "embedding": pandas.ArrowDtype(vectors)})
    with_vectors.to_parquet(target, schema={"embedding": vectors})


if __name__ == "__main__":
    embed(*sys.argv[1:4])
