"""Two models side by side: rows paired by path, and what changes from the first to the second."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any, NamedTuple

from bertcli.analysis.params.summary import Row, Summary, layer_title, size_in_bytes
from bertcli.report import Column, Document

SHORT = 16  # longest model name used as a column heading


class Pair(NamedTuple):
    """The rows of two models for one path; None, counting as 0, where a model has no such row."""

    path: str
    rows: tuple[Row | None, Row | None]

    @property
    def params(self) -> tuple[int, int]:
        first, second = self.rows
        return first.params if first else 0, second.params if second else 0

    @property
    def record(self) -> dict[str, Any]:
        """The pair as a JSON record."""
        first, second = self.rows
        return {
            "path": self.path,
            "type": first and first.type,
            "versus_type": second and second.type,
            "output_shape": first and first.output_shape,
            "versus_output_shape": second and second.output_shape,
            "params": first and first.params,
            "versus_params": second and second.params,
            "difference": self.params[1] - self.params[0],
            "ratio": ratio(*self.params),
        }


@dataclass(frozen=True)
class Comparison:
    """Two summaries, pair by pair."""

    summaries: tuple[Summary, Summary]
    pairs: tuple[Pair, ...]

    @property
    def totals(self) -> dict[str, Any]:
        """The numbers below the table."""
        first, second = self.summaries
        return {
            "total_params": first.total_params,
            "versus_total_params": second.total_params,
            "total_bytes": first.total_bytes,
            "versus_total_bytes": second.total_bytes,
            "difference": second.total_params - first.total_params,
            "ratio": ratio(first.total_params, second.total_params),
        }

    @property
    def record(self) -> dict[str, Any]:
        """The comparison as a JSON record."""
        models = {"model": self.summaries[0].model, "versus": self.summaries[1].model}
        return {**models, "rows": [pair.record for pair in self.pairs], **self.totals}


def compare(first: Summary, second: Summary) -> Comparison:
    """Two summaries side by side, in the order of the first; a row only the second has keeps its predecessor there."""
    own, other = ({row.path: row for row in summary.rows} for summary in (first, second))
    paths, place = list(own), 0
    for path in other:
        if path in own:
            place = paths.index(path) + 1
        else:
            paths.insert(place, path)
            place += 1
    return Comparison((first, second), tuple(Pair(path, (own.get(path), other.get(path))) for path in paths))


def ratio(before: int, after: int) -> float | None:
    """after / before to four places; None where there was nothing before."""
    return round(after / before, 4) if before else None


def comparison_document(comparison: Comparison) -> Document:
    """Two models side by side."""
    names = [PurePath(summary.model).name for summary in comparison.summaries]
    heads = names if max(map(len, names)) <= SHORT and names[0] != names[1] else ["1st", "2nd"]
    columns = [
        Column("Layer (type)"),
        Column("Output Shape"),
        *(Column(f"Param # {name}", number=True) for name in heads),
        Column("Difference", number=True),
        Column("Ratio", number=True),
    ]
    totals = comparison.totals
    below = [
        f"{name}: {summary.total_params:,} params, {size_in_bytes(summary.total_bytes)}"
        for name, summary in zip(_explained(heads, comparison), comparison.summaries, strict=True)
    ]
    below += [f"Difference: {totals['difference']:+,} params, ratio {_ratio(totals['ratio'])}"]
    rows = [_side_by_side(pair) for pair in comparison.pairs]
    return Document(columns, rows, below, comparison.record, [pair.record for pair in comparison.pairs])


def _explained(heads: Sequence[str], comparison: Comparison) -> list[str]:
    """Headings with the models they stand for, where the two differ."""
    models = [summary.model for summary in comparison.summaries]
    return [model if head == model else f"{head}, {model}" for head, model in zip(heads, models, strict=True)]


def _side_by_side(pair: Pair) -> list[str]:
    before, after = pair.params
    return [
        layer_title(pair.path, _change(pair, "type", " × ")),
        _change(pair, "output_shape"),
        f"{before:,}" if pair.rows[0] else "",
        f"{after:,}" if pair.rows[1] else "",
        f"{after - before:+,}" if after != before else "0",
        _ratio(pair.record["ratio"]),
    ]


def _change(pair: Pair, field: str, mark: str | None = None) -> str:
    """The value both rows share, or that of the only row, or `before → after`, not repeating what precedes `mark`."""
    found = list(dict.fromkeys(getattr(row, field) for row in pair.rows if row is not None))
    if len(found) == 2 and mark is not None and len({text.split(mark)[0] for text in found}) == 1:
        found[1] = found[1].split(mark)[1]
    return " → ".join(found)


def _ratio(ratio: float | None) -> str:
    return "" if ratio is None else f"{ratio:.4f}"
