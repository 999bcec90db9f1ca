"""How well the token vectors of a document match those of a query (late interaction).

    score = Σ_query token  max_document token  q · d        (bge-m3: the mean over the query's tokens)

Source: Khattab and Zaharia 2020, "ColBERT: Efficient and Effective Passage Search via Contextualized Late Interaction".
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from bertcli.errors import BertcliError
from bertcli.kinds.late_interaction import LateInteraction
from bertcli.kinds.relevance import RelevanceScore
from bertcli.tracing.dispatch import Array


class Matching(NamedTuple):
    """The match of each query token: its largest product, and the piece of the document that gives it.

    The sum of the products is the score.
    """

    products: list[float]
    pieces: list[str]


@dataclass(frozen=True)
class MaxSim(RelevanceScore):
    """The relevance of late interaction with these settings."""

    options: ClassVar[Mapping[str, Any]] = {"pooling": "none"}
    late: LateInteraction

    def matching(self, query: Array, document: Array, pieces: Sequence[str]) -> Matching:
        """Match each vector of a query with the vector of the document that gives the largest product.

        With `mean` products are divided by their number. Errors: BertcliError for a document without vectors.
        """
        if not len(document):
            raise BertcliError("A document has no token that is scored: leave it out.")
        products: Any = query.astype(np.float64) @ document.T
        best = products.max(axis=1) / (len(query) if self.late.mean else 1)
        return Matching(best.tolist(), [pieces[i] for i in products.argmax(axis=1).tolist()])

    def score(self, query: Array, document: Array, pieces: Sequence[str]) -> float:
        return sum(self.matching(query, document, pieces).products)

    def note(self, queries: str, documents: str) -> str:
        return self.late.note
