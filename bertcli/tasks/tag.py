"""tag: the entities of texts of any length."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from bertcli.tasks.options import Windows, option, separated

Aggregation = Literal["none", "simple", "first", "max", "average"]


@dataclass(frozen=True, eq=False, kw_only=True)
class TagOptions(Windows):
    """What is found."""

    aggregation: Aggregation = option(
        "simple", "NAME",
        "How tokens become entities: simple (default); first, max or average, which keep words whole; none.",
    )  # fmt: skip
    ignore: Iterable[str] = option(("O",), "A,B,C", "Labels to leave out. (default: O)", read=separated)
