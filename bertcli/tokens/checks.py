"""What a tokenizer.json may not say, and what becomes of the tokenizers library's own errors."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from bertcli.errors import BertcliError

GROWTH_LIMIT = 10_000
PANIC = "PanicException"  # of Rust; pyo3 makes it no Exception, and there is nowhere to import it from


@contextmanager
def library_errors(what: str) -> Iterator[None]:
    """A BertcliError that begins with `what` for whatever the library raises: it has no finer class than Exception."""
    try:
        yield
    except (BertcliError, TypeError):
        raise
    except BaseException as error:
        if not isinstance(error, Exception) and type(error).__name__ != PANIC:
            raise
        raise BertcliError(f"{what} ({error!s:.300}): try another text, or fetch the model again.") from None


def lacking(step: Mapping[str, Any]) -> list[str]:
    """Special tokens that a post-processor puts around texts and does not describe: the library panics at them."""
    if step["type"] == "Sequence":
        return [token for inner in step["processors"] for token in lacking(inner)]
    pieces = [*step["single"], *step["pair"]] if step["type"] == "TemplateProcessing" else []
    used = [piece["SpecialToken"]["id"] for piece in pieces if "SpecialToken" in piece]
    return [token for token in used if token not in step["special_tokens"]]


def growth(step: Mapping[str, Any]) -> float:
    """How many letters a normalizer may make of one by replacing and prepending: a → aa, 40 times, makes 10¹²."""
    if step["type"] == "Sequence":
        return math.prod(map(growth, step["normalizers"]))
    if step["type"] == "Prepend":
        return 1 + len(step["prepend"])
    if step["type"] == "Replace":
        literal = step["pattern"].get("String")
        return max(1, len(step["content"]) / len(literal)) if literal else 1 + len(step["content"])  # at every letter
    return 1
