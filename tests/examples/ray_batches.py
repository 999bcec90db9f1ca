"""Embed texts of any number with Ray Data: `python ray_batches.py MODEL INPUT.parquet OUTPUT_FOLDER`.

Each worker opens the model once, memory-mapped: the workers of a machine share one copy of the weights.
"""

import sys

import ray

import bertcli


def embed(model: str, source: str, target: str, workers: int = 1) -> None:
    """The rows of `source`, whose column "text" is read, with a column "embedding" more."""
    texts = ray.data.read_parquet(source).repartition(target_num_rows_per_block=1024)  # to share, and to do again
    encoded = texts.map_batches(
        bertcli.Columns,
        fn_constructor_kwargs={"task": "encode", "model": model},
        batch_format="pyarrow",
        compute=ray.data.ActorPoolStrategy(size=workers),  # fewer than there are CPUs: others read and write
    )
    encoded.write_parquet(target)


if __name__ == "__main__":
    embed(sys.argv[1], sys.argv[2], sys.argv[3])
