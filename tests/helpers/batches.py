"""Few tokens in a batch, so that a few texts are many windows of a command; users can ask for it in Python alone."""

from dataclasses import replace

import pytest

from bertcli.tasks.options import ReadOptions


def compute_together(tokens: int, patch: pytest.MonkeyPatch) -> None:
    """Let commands compute so many tokens together; worker processes get it with their task."""
    stated = ReadOptions.read_options.fget
    assert stated is not None

    def read_options(self: ReadOptions) -> ReadOptions:
        return replace(stated(self), batch_tokens=tokens)

    patch.setattr(ReadOptions, "read_options", property(read_options))
