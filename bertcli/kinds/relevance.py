"""`RelevanceScore`: how relevant a document is to a query, where each is encoded apart; what `rank` asks."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar


class RelevanceScore:
    """The score of a document for a query, from what `encode` with these options makes of each."""

    options: ClassVar[Mapping[str, Any]]

    def score(self, query: Any, document: Any, pieces: Sequence[str]) -> float:
        """Compare a query with a document, both as they are encoded. pieces: the document's tokens."""
        raise NotImplementedError

    def note(self, queries: str, documents: str) -> str:
        """What people should know of a ranking; empty if nothing. queries, documents: how they are encoded."""
        return ""
