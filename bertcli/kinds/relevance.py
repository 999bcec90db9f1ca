"""`RelevanceScore`: how relevant a document is to a query, where each is encoded apart; what `rank` asks."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar


class RelevanceScore:
    """The score of a document for a query, from what the task of this name and options makes of each."""

    task: ClassVar[str]
    options: ClassVar[Mapping[str, Any]] = {}

    def score(self, query: Any, document: Any, pieces: Sequence[str]) -> float:
        """Compare a query with a document, both as the task encodes them. pieces: the document's tokens."""
        raise NotImplementedError

    def note(self, queries: str, documents: str) -> str:
        """What people should know of a ranking; empty if nothing. queries, documents: how the task encodes them."""
        return ""
