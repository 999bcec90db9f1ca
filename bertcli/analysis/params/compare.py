"""Two models side by side: rows paired by path, and what changes from the first to the second."""

from pathlib import PurePath
from typing import Any

from bertcli.analysis.params.summary import Summary, SummaryRow, layer_title, memory_lines, size_in_bytes
from bertcli.report.documents import Document
from bertcli.report.terminal import Column

SHORT = 16  # longest model name used as a column heading


def comparison(first: Summary, second: Summary) -> Document:
    """Two summaries side by side, in the order of the first; a row only the second has keeps its predecessor there."""
    own, other = ({row.path: row for row in summary.rows} for summary in (first, second))
    paths, place = list(own), 0
    for path in other:
        if path in own:
            place = paths.index(path) + 1
        else:
            paths.insert(place, path)
            place += 1
    lines = [_line(path, own.get(path), other.get(path)) for path in paths]
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
    """The value both rows share, or that of the only row, or `before → after`, not repeating what precedes `mark`."""
    values = list(dict.fromkeys(value for value in (line[name], line[f"versus_{name}"]) if value is not None))
    if len(values) == 2 and mark is not None and len({text.split(mark)[0] for text in values}) == 1:
        values[1] = values[1].split(mark)[1]
    return " → ".join(values)


def _ratio(line: dict[str, Any]) -> str:
    return "" if line["ratio"] is None else f"{line['ratio']:.4f}"
