"""`params` of two models side by side: rows paired by path, and the change from the first model to the second."""

from pathlib import PurePath
from typing import Any

from bertcli.analysis.params.summary import Summary, SummaryRow, layer_title, memory_lines, size_in_bytes
from bertcli.report.documents import Document
from bertcli.report.terminal import Column

# Characters: a longer model name is not used as a column heading.
SHORT = 16


def comparison(first: Summary, second: Summary) -> Document:
    """Two summaries side by side, in the order of the first; a row only the second has keeps its predecessor there."""
    rows_of_first = {row.path: row for row in first.rows}
    rows_of_second = {row.path: row for row in second.rows}
    paths, next_index = list(rows_of_first), 0
    for path in rows_of_second:
        if path in rows_of_first:
            next_index = paths.index(path) + 1
        else:
            paths.insert(next_index, path)
            next_index += 1
    lines = [_line(path, rows_of_first.get(path), rows_of_second.get(path)) for path in paths]
    change = _change(first.total_params, second.total_params)
    record: dict[str, Any] = {
        "model": first.model, "versus": second.model, "rows": lines,
        "total_params": first.total_params, "versus_total_params": second.total_params,
        "total_bytes": first.total_bytes, "versus_total_bytes": second.total_bytes, **change,
    }  # fmt: skip
    names = [PurePath(summary.model).name for summary in (first, second)]
    heads = names if max(map(len, names)) <= SHORT and names[0] != names[1] else ["1st", "2nd"]
    below = [
        f"{summary.model if head == summary.model else f'{head}, {summary.model}'}: {summary.total_params:,} params, "
        f"{size_in_bytes(summary.total_bytes)}"
        for head, summary in zip(heads, (first, second), strict=True)
    ]
    for summary, prefix, head in zip((first, second), ("", "versus_"), heads, strict=True):
        record |= {} if summary.memory is None else {f"{prefix}memory": summary.memory.record}
        below += [f"{head}: {line}" for line in memory_lines(summary)]
    below.append(f"Difference: {change['difference']:+,} params, ratio {_ratio(change)}")
    columns = [Column("Layer (type)"), Column("Output Shape")]
    columns += [Column(name, number=True) for name in (*(f"Param # {head}" for head in heads), "Difference", "Ratio")]
    return Document(columns, [_cells(line) for line in lines], below, record, lines)


def _change(before: int, after: int) -> dict[str, Any]:
    """The difference, and after / before to four places; None where there was nothing before."""
    return {"difference": after - before, "ratio": round(after / before, 4) if before else None}


def _line(path: str, row: SummaryRow | None, versus: SummaryRow | None) -> dict[str, Any]:
    """The rows of two models for one path as a JSON record; None where a model has no such row."""
    line: dict[str, Any] = {"path": path}
    for name in ("type", "output_shape", "params"):
        line |= {name: row and row[name], f"versus_{name}": versus and versus[name]}
    return line | _change(line["params"] or 0, line["versus_params"] or 0)


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
