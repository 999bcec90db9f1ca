"""What transformers' pipelines and CrossEncoder say (recorded in tests/reference/tasks.json), and how to compare."""

from collections.abc import Sequence
from typing import Any

import pytest
from helpers.recorded import recorded

SAID: dict[str, Any] = recorded("tasks.json")


def same(found: Sequence[dict[str, Any]], expected: Sequence[dict[str, Any]]) -> None:
    """Equal records in the same order, with scores within 1e-5."""
    assert [{**one, "score": 0} for one in found] == [{**one, "score": 0} for one in expected]
    assert [one["score"] for one in found] == pytest.approx([one["score"] for one in expected], abs=1e-5)
