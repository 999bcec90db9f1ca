"""Few tokens in a batch, so that a few texts are many windows of a command; users can ask for it in Python alone."""

from dataclasses import replace
from typing import Any

import pytest

from bertcli.tasks.options import ReadOptions


def compute_together(tokens: int, patch: pytest.MonkeyPatch) -> None:
    """Let commands compute so many tokens together; worker processes get it with their task."""
    stated: Any = ReadOptions.__dict__["read_options"]

    def read_options(self: ReadOptions) -> ReadOptions:
        options: ReadOptions = replace(stated.fget(self), batch_tokens=tokens)
        return options

    patch.setattr(ReadOptions, "read_options", property(read_options))
