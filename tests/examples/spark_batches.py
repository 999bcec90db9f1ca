"""Embed texts of any number with Spark: `spark-submit spark_batches.py MODEL INPUT.parquet OUTPUT_FOLDER`.

A model is sent to the workers as its path. Each opens it memory-mapped: the workers of a machine share the weights.
"""

import sys
from collections.abc import Iterator
from typing import Any

import pyarrow
from pyspark.sql import SparkSession

import bertcli


def embed(spark: SparkSession, name: str, source: str, target: str) -> None:
    """Write the rows of `source`, whose column "text" is read, with a column "embedding" more."""
    texts, model = spark.read.parquet(source), bertcli.load(name)

    def encoded(batches: Iterator[Any]) -> Iterator[Any]:
        for batch in batches:
            vectors = [*model.encode(batch["text"].to_pylist())]
            yield batch.append_column("embedding", pyarrow.array(vectors, pyarrow.list_(pyarrow.float32())))

    texts.mapInArrow(encoded, f"{texts.schema.toDDL()}, embedding array<float>").write.parquet(target)


if __name__ == "__main__":
    embed(SparkSession.builder.getOrCreate(), *sys.argv[1:4])
