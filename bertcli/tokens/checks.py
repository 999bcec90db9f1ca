"""What a tokenizer.json must not contain, and how errors of the tokenizers library are reported."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from bertcli.errors import BertcliError

GROWTH_LIMIT = 10_000
PANIC = "PanicException"  # a Rust panic; pyo3 does not derive it from Exception, and it cannot be imported


@contextmanager
def library_errors(what: str) -> Iterator[None]:
    """Turn whatever the library raises into a BertcliError that begins with `what`: it has no class but Exception."""
    try:
        yield
    except (BertcliError, TypeError):
        raise
    except BaseException as error:
        if not isinstance(error, Exception) and type(error).__name__ != PANIC:
            raise
        raise BertcliError(f"{what} ({error!s:.300}): try another text, or fetch the model again.") from None


def lacking(step: Mapping[str, Any]) -> list[str]:
    """Special tokens that a post-processor puts around texts without defining them: the library panics at them."""
    if step["type"] == "Sequence":
        return [token for inner in step["processors"] for token in lacking(inner)]
    pieces = [*step["single"], *step["pair"]] if step["type"] == "TemplateProcessing" else []
    used = [piece["SpecialToken"]["id"] for piece in pieces if "SpecialToken" in piece]
    return [token for token in used if token not in step["special_tokens"]]


def growth(step: Mapping[str, Any]) -> float:
    """How many letters a normalizer may turn one into by replacing and prepending: a → aa, 40 times, makes 10¹²."""
    if step["type"] == "Sequence":
        return math.prod(map(growth, step["normalizers"]))
    if step["type"] == "Prepend":
        return 1 + len(step["prepend"])
    if step["type"] == "Replace":
        literal = step["pattern"].get("String")
        return max(1, len(step["content"]) / len(literal)) if literal else 1 + len(step["content"])  # at every letter
    return 1
