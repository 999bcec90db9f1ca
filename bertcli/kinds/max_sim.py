"""How well the token vectors of a document match those of a query (late interaction).

    score = Σ_query token  max_document token  q · d

Source: Khattab and Zaharia 2020, "ColBERT: Efficient and Effective Passage Search via Contextualized Late Interaction".
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from bertcli.errors import BertcliError
from bertcli.tracing.dispatch import Array


class Matching(NamedTuple):
    """The match of each query token: its largest product, and the piece of the document that gives it.

    The sum of the products is the score.
    """

    products: list[float]
    pieces: list[str]


def matching(query: Array, document: Array, pieces: Sequence[str], mean: bool) -> Matching:
    """Match each vector of a query with the vector of the document that gives the largest product.

    pieces: the document's. mean: divide the products by their number.
    Errors: BertcliError for a document without vectors.
    """
    if not len(document):
        raise BertcliError("A document has no token that is scored: leave it out.")
    products: Any = query.astype(np.float64) @ document.T
    best = products.max(axis=1) / (len(query) if mean else 1)
    return Matching(best.tolist(), [pieces[i] for i in products.argmax(axis=1).tolist()])
