"""Pairs of texts that differ a little, summed up: how often the first one is likelier, for all and for each group."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from bertcli.evaluate import metrics
from bertcli.evaluate.intervals import Figure, figures_of
from bertcli.evaluate.page import STYLE, strip
from bertcli.evaluate.report import interval
from bertcli.report.page import page, table
from bertcli.report.terminal import Column

DECISIVE = 20  # pairs that a page lists
CAUTION = "The figures say which of two wordings is likelier; not what a model built on this one will do."
COLUMNS = [Column("Group"), *(Column(name, number=True) for name in ("Pairs", "Preferred", "95 % interval", "Mean"))]


@dataclass(frozen=True)
class Preference:
    """Of some pairs: how often the first text is likelier (equal ones half), and by how much in the mean."""

    group: str
    count: int
    share: Figure
    mean: Figure

    @property
    def sentence(self) -> str:
        """In words."""
        name = f"{self.group}: " if self.group else ""
        share = f"the first text is likelier in {self.share.value:.1%} of {self.count:,} pairs {interval(self.share)}"
        return f"{name}{share}, by {self.mean.value:+.3f} in the mean {interval(self.mean)}."


def preferences(records: Sequence[dict[str, Any]]) -> Iterator[Preference]:
    """Of all pairs that could be scored, and of each group, which is a record's id."""
    scored = [record for record in records if "error" not in record]
    groups = {"": scored} if scored else {}
    for record in scored:
        if "id" in record:
            groups.setdefault(str(record["id"]), []).append(record)
    for group, some in groups.items():
        first = np.array([{"text": 1.0, "text_pair": 0.0, None: 0.5}[record["preferred"]] for record in some])
        gains = np.array([record["score"] - record["pair_score"] for record in some])

        def figures(counts: metrics.Numbers, first: Any = first, gains: Any = gains) -> metrics.Figures:
            return {"share": metrics.mean(first, counts), "mean": metrics.mean(gains, counts)}

        found = figures_of(figures, len(some))
        yield Preference(group, len(some), found["share"], found["mean"])


def pairs_page(records: Sequence[dict[str, Any]], model: str) -> str:
    """Figures with their intervals, and the pairs with the largest differences."""
    rows = [
        [
            one.group or "all",
            f"{one.count:,}",
            f"{one.share.value:.1%}",
            interval(one.share),
            f"{one.mean.value:+.3f}",
            strip(one.share),
        ]
        for one in preferences(records)
    ]
    shares = table("How often the first text is likelier, and by how much", [*COLUMNS, Column("from 0 to 1")], rows)
    scored = [record for record in records if "error" not in record]
    scored.sort(key=lambda record: -abs(record["score"] - record["pair_score"]))
    decisive = [
        [record["text"], record["text_pair"], f"{record['score'] - record['pair_score']:+.3f}"]
        for record in scored[:DECISIVE]
    ]
    columns = [Column("First"), Column("Second"), Column("Difference", number=True)]
    return page(
        "Pairs", shares, table("The pairs that decide", columns, decisive), lead=CAUTION, model=model, style=STYLE
    )
