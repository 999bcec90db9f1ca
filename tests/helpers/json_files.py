"""Files of JSON, read and written: one value, or one on each line."""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any


def read_json(file: Path) -> Any:
    return json.loads(file.read_text(encoding="utf-8"))


def write_json(file: Path, value: Any) -> None:
    file.write_text(json.dumps(value) + "\n", encoding="utf-8")


def change_json(file: Path, keys: Mapping[str, Any]) -> None:
    """Put these keys over those of the object in a file."""
    write_json(file, read_json(file) | keys)


def read_json_lines(file: Path) -> list[Any]:
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


def write_json_lines(file: Path, values: Iterable[Any]) -> None:
    file.write_text("".join(json.dumps(value) + "\n" for value in values), encoding="utf-8")
