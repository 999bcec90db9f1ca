"""Recorded numbers: what the scripts in tests/reference wrote."""

import json
from pathlib import Path
from typing import Any

REFERENCE = Path(__file__).parents[1] / "reference"


def recorded(name: str) -> Any:
    """The content of a .json file in tests/reference."""
    return json.loads((REFERENCE / name).read_text(encoding="utf-8"))
