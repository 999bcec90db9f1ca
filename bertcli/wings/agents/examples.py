"""Examples of `bertcli mcp` for `bertcli info`."""

from collections.abc import Iterator

from bertcli.tasks.examples import Example, Subject


def examples(subject: Subject) -> Iterator[Example]:
    """Yield the command that gives an assistant the model."""
    if subject.reads:
        yield Example("mcp", [])
