"""Examples of `bertcli search` for `bertcli info`."""

from collections.abc import Iterator

from bertcli.tasks.examples import Example, Subject


def examples(subject: Subject) -> Iterator[Example]:
    """Yield a search among vectors that the model made."""
    if subject.runs("encode"):
        yield Example("search", ["a hot drink", "-i", "vectors.parquet"])
