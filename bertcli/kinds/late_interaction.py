"""`LateInteraction`: the settings of queries and of documents, each of which gets a vector for each token.

The kinds that give such vectors make it; scored_tokens.py and tasks/parts/token_vectors.py apply it, max_sim.py
compares.
"""

from typing import NamedTuple


class RoleSettings(NamedTuple):
    """Settings for queries, or for documents.

    prompt     put before the text
    length     the limit of tokens; None: the model's
    filled     expand the text to this number of tokens (query expansion)
    token      the expansion token, which is scored like others; None: the mask token
    attended   the other tokens attend to expansion tokens
    skipped    the pieces that are not scored, such as punctuation
    left_out   the number of tokens at the beginning that are not scored
    """

    prompt: str = ""
    length: int | None = None
    filled: int = 0
    token: str | None = None
    attended: bool = True
    skipped: tuple[str, ...] = ()
    left_out: int = 0


class LateInteraction(NamedTuple):
    """Settings for queries and documents. `mean`: divide scores by the number of the query's tokens.

    `is_stated`: false if no file has these settings; they are then ColBERT's. `note`: what a ranking says of them.
    """

    query: RoleSettings
    document: RoleSettings
    mean: bool = False
    is_stated: bool = True
    note: str = ""
