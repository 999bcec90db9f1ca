"""Texts in the fields of JSON objects, one per line."""

from __future__ import annotations

import json
from collections.abc import Iterator

from bertcli.inputs.texts import Text
from bertcli.inputs.wanted import Wanted, unusable
from bertcli.lines import Line, LineStream
from bertcli.untrusted import shown


def json_lines(lines: LineStream, wanted: Wanted) -> Iterator[Text]:
    """One row per line; a line that is not a JSON object, or lacks a field, is a Text with an error."""
    for line in lines:
        yield Text("", place=line.place, error=line.error) if line.error else _row(line, wanted)


def _row(line: Line, wanted: Wanted) -> Text:
    try:
        record = json.loads(line.text)
    except json.JSONDecodeError as error:
        return unusable(line.place, f"not valid JSON ({error.msg} at column {error.colno}).")
    except (ValueError, RecursionError) as error:  # a number with thousands of digits, endless nesting
        return unusable(line.place, f"not usable JSON ({error}).")
    if not isinstance(record, dict):
        return unusable(line.place, f"not a JSON object but {shown(record)}.")
    for name in wanted.names:
        if name not in record:
            known = ", ".join(map(shown, list(record)[:20])) or "none"
            why = f"there is no field {shown(name)}; fields are {known} (choose one with {wanted.option(name)})."
            return wanted.unusable(line.place, why, record)
    return wanted.text(line.place, [record[name] for name in wanted.names])
