"""How goldens are written as JSON: small, and with lines that can be compared."""

import json
from typing import Any


def lines_of(document: dict[str, Any]) -> str:
    """JSON with one line for each key."""
    lines = (
        f"{json.dumps(key)}: {json.dumps(compact(value), ensure_ascii=False, separators=(',', ':'))}"
        for key, value in document.items()
    )
    return "{\n" + ",\n".join(lines) + "\n}\n"


def compact(value: Any) -> Any:
    """Floats to nine digits: all that a float32 says."""
    if isinstance(value, float):
        return float(f"{value:.9g}")
    if isinstance(value, dict):
        return {key: compact(one) for key, one in value.items()}
    return [compact(one) for one in value] if isinstance(value, list | tuple) else value
