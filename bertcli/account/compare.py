"""Two models side by side: rows paired by path, and what changes from the first to the second."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

from bertcli.account.record import Account, Row


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
    """Two accounts, pair by pair."""

    accounts: tuple[Account, Account]
    pairs: tuple[Pair, ...]

    @property
    def totals(self) -> dict[str, Any]:
        """The numbers below the table."""
        first, second = self.accounts
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
        models = {"model": self.accounts[0].model, "versus": self.accounts[1].model}
        return {**models, "rows": [pair.record for pair in self.pairs], **self.totals}


def compare(first: Account, second: Account) -> Comparison:
    """Two accounts side by side, in the order of the first; a row only the second has keeps its predecessor there."""
    own, other = ({row.path: row for row in account.rows} for account in (first, second))
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
