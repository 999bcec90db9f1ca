"""What transformers' pipelines and CrossEncoder say (recorded in tests/reference/tasks.json), and how to compare."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

SAID: dict[str, Any] = json.loads((Path(__file__).parents[1] / "reference" / "tasks.json").read_text(encoding="utf-8"))


def same(found: Sequence[dict[str, Any]], expected: Sequence[dict[str, Any]]) -> None:
    """Equal records in the same order, with scores within 1e-5."""
    assert [{**one, "score": 0} for one in found] == [{**one, "score": 0} for one in expected]
    assert [one["score"] for one in found] == pytest.approx([one["score"] for one in expected], abs=1e-5)
