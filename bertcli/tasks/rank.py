"""rank: documents in the order in which they answer a query."""

from collections.abc import Iterable
from dataclasses import dataclass

from bertcli.tasks.options import Reading, option


@dataclass(frozen=True, eq=False)
class RankOptions(Reading):
    """Which documents are ranked, and what is shown."""

    documents: Iterable[str] | None = None
    top_k: int | None = option(None, "K", "Show only the K best of each query. (default: all)", least=1)
