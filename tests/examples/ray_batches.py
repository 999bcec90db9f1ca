"""Embed texts of any number with Ray Data: `python ray_batches.py MODEL INPUT.parquet OUTPUT_FOLDER`.

Each worker opens the model once, memory-mapped: the workers of a machine share one copy of the weights.
"""

import sys

import ray

import bertcli


def embed(model: str, source: str, target: str, workers: int = 2) -> None:
    """The rows of `source`, whose column "text" is read, with a column "embedding" more."""
    texts = ray.data.read_parquet(source)
    encoded = texts.map_batches(
        bertcli.Encode,
        fn_constructor_kwargs={"model": model},
        batch_size=1024,
        batch_format="pyarrow",
        compute=ray.data.ActorPoolStrategy(min_size=1, max_size=workers),
    )
    encoded.write_parquet(target)


if __name__ == "__main__":
    embed(sys.argv[1], sys.argv[2], sys.argv[3])
