"""Recorded numbers: what the scripts in tests/reference wrote."""

from pathlib import Path
from typing import Any

from helpers.json_files import read_json

REFERENCE = Path(__file__).parents[1] / "reference"


def recorded(name: str) -> Any:
    """The content of a .json file in tests/reference."""
    return read_json(REFERENCE / name)
