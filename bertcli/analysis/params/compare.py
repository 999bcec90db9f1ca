"""`params` of two models side by side: rows paired by path, and the change from the first model to the second."""

from dataclasses import replace
from typing import Any

from bertcli.analysis.params.rows import SummaryRow
from bertcli.analysis.params.table import Summary, layer_title, memory_lines, size_in_bytes
from bertcli.report.documents import Document
from bertcli.report.model_names import told_apart
from bertcli.report.terminal import Column

# Characters: a longer model name is not used as a column heading.
SHORT = 16


def comparison(first: Summary, second: Summary) -> Document:
    """Two summaries side by side, in the order of the first; see `_merged` for rows that only the second has."""
    rows_of_first = {row.path: row for row in first.rows}
    rows_of_second = {row.path: row for row in second.rows}
    paths = _merged(list(rows_of_first), list(rows_of_second))
    pairs = [(rows_of_first.get(path), rows_of_second.get(path)) for path in paths]
    lines = [_line(path, *pair) for path, pair in zip(paths, pairs, strict=True)]
    shown = [_line(path, *map(_with_inner, pair)) for path, pair in zip(paths, pairs, strict=True)]
    change = _change(first.total_params, second.total_params)
    record: dict[str, Any] = {
        "model": first.model, "versus": second.model, "rows": lines,
        "total_params": first.total_params, "versus_total_params": second.total_params,
        "total_bytes": first.total_bytes, "versus_total_bytes": second.total_bytes, **change,
    }  # fmt: skip
    headings = _headings(first.model, second.model)
    below = []
    for summary, heading in zip((first, second), headings, strict=True):
        model = heading if heading == summary.model else f"{heading}, {summary.model}"
        below.append(f"{model}: {summary.total_params:,} params, {size_in_bytes(summary.total_bytes)}")
    for summary, heading, key in zip((first, second), headings, ("memory", "versus_memory"), strict=True):
        if summary.memory is not None:
            record[key] = summary.memory.record
        below += [f"{heading}: {line}" for line in memory_lines(summary)]
    below.append(f"Difference: {change['difference']:+,} params, ratio {_ratio(change)}")
    numbers = [*(f"Param # {heading}" for heading in headings), "Difference", "Ratio"]
    columns = [Column("Layer (type)"), Column("Output Shape"), *(Column(name, number=True) for name in numbers)]
    return Document(columns, [_cells(line) for line in shown], below, record, lines)


def _merged(first: list[str], second: list[str]) -> list[str]:
    """All paths in the order of the first list; one of the second list alone comes after the path before it there."""
    paths, next_index = [*first], 0
    for path in second:
        if path in first:
            next_index = paths.index(path) + 1
        else:
            paths.insert(next_index, path)
            next_index += 1
    return paths


def _headings(first: str, second: str) -> list[str]:
    """The models' names as headings of columns; "1st" and "2nd" where they are long or equal."""
    names = told_apart([first, second])
    are_short = max(map(len, names)) <= SHORT
    return names if are_short and names[0] != names[1] else ["1st", "2nd"]


def _change(before: int, after: int) -> dict[str, Any]:
    """The difference, and after / before to four places; None where there was nothing before."""
    return {"difference": after - before, "ratio": round(after / before, 4) if before else None}


def _line(path: str, row: SummaryRow | None, versus: SummaryRow | None) -> dict[str, Any]:
    """The rows of two models for one path as a JSON record; None where a model has no such row."""
    line: dict[str, Any] = {"path": path}
    for name in ("type", "output_shape", "params"):
        line |= {name: row and row[name], f"versus_{name}": versus and versus[name]}
    return line | _change(line["params"] or 0, line["versus_params"] or 0)


def _with_inner(row: SummaryRow | None) -> SummaryRow | None:
    """A row as tables show it: with what the rows inside it count."""
    return row and replace(row, params=row.whole.params)


def _cells(line: dict[str, Any]) -> list[str]:
    difference = line["difference"]
    return [
        layer_title(line["path"], _both(line, "type", " × ")),
        _both(line, "output_shape"),
        *("" if params is None else f"{params:,}" for params in (line["params"], line["versus_params"])),
        f"{difference:+,}" if difference else "0",
        _ratio(line),
    ]


def _both(line: dict[str, Any], name: str, mark: str | None = None) -> str:
    """The cell for a value: as it is if both rows agree or only one exists, else `before → after`.

    The part of the value up to `mark`, if both have the same, is written once.
    """
    before: str | None = line[name]
    after: str | None = line[f"versus_{name}"]
    if before is None or after is None or before == after:
        return before or after or ""
    if mark is not None:
        beginning, _, _ = before.partition(mark)
        other_beginning, _, rest = after.partition(mark)
        if beginning == other_beginning:
            after = rest
    return f"{before} → {after}"


def _ratio(line: dict[str, Any]) -> str:
    return "" if line["ratio"] is None else f"{line['ratio']:.4f}"
