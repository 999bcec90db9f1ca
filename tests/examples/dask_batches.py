"""Embed texts of any number with Dask: `python dask_batches.py MODEL INPUT.parquet OUTPUT_FOLDER`.

Each worker opens the model once, memory-mapped: the workers of a machine share one copy of the weights.
"""

import sys

import dask.dataframe
import pandas
import pyarrow

import bertcli

ADDED = {
    "embedding": pyarrow.list_(pyarrow.float32()),
    "truncated": pyarrow.bool_(),
    "embedding_error": pyarrow.string(),
}


def embed(model: str, source: str, target: str) -> None:
    """The rows of `source`, whose column "text" is read, with a column "embedding" more."""
    texts = dask.dataframe.read_parquet(source)
    meta = {**texts.dtypes, **{name: pandas.ArrowDtype(kind) for name, kind in ADDED.items()}}
    texts.map_partitions(bertcli.Columns("encode", model), meta=meta).to_parquet(target, schema=ADDED)


if __name__ == "__main__":
    embed(*sys.argv[1:4])
