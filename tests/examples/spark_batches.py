"""Embed texts of any number with Spark: `spark-submit spark_batches.py MODEL INPUT.parquet OUTPUT_FOLDER`.

Each Python worker opens the model once, memory-mapped: the workers of a machine share one copy of the weights.
"""

import sys
from collections.abc import Iterator
from typing import Any

import pyarrow
from pyspark.sql import SparkSession

import bertcli


def embed(spark: SparkSession, model: str, source: str, target: str) -> None:
    """The rows of `source`, whose column "text" is read, with a column "embedding" more."""
    texts, encode = spark.read.parquet(source), bertcli.Columns("encode", model)
    schema = f"{texts.schema.toDDL()}, embedding array<float>, truncated boolean, embedding_error string"

    def encoded(batches: Iterator[Any]) -> Iterator[Any]:
        for batch in map(encode, batches):  # Spark has no lists of a fixed size
            lists = batch["embedding"].cast(pyarrow.list_(pyarrow.float32()))
            yield batch.set_column(batch.schema.get_field_index("embedding"), "embedding", lists)

    texts.mapInArrow(encoded, schema).write.parquet(target)


if __name__ == "__main__":
    embed(SparkSession.builder.getOrCreate(), *sys.argv[1:4])
