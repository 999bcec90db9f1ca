"""neighbors: the word pieces nearest to a word in the embedding space."""

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from bertcli.errors import BertcliError, check_count, check_finite, quoted
from bertcli.loaded_model import LoadedModel
from bertcli.ranking import best_first
from bertcli.report.digits import short
from bertcli.tokens import Tokenizer


def neighbors(model: LoadedModel, words: Iterable[str], *, top_k: int = 10) -> Iterator[dict[str, Any]]:
    """For each word {token, neighbors: [{token, id, cosine}, …]}: the rows of E_tok nearest by cosine, best first.

    A word is one piece of the vocabulary, written as in the vocabulary (`##ing`) or as in a text (`King`). Errors:
    BertcliError for a word that is unknown or consists of several pieces.
    """
    check_count("top_k", top_k)
    tokenizer = model.tokenizer
    used = np.array(sorted(tokenizer.ids))
    table = np.asarray(model.network.embeddings.token)[: used[-1] + 1]
    check_finite(table)
    lengths = np.sqrt(np.einsum("vh,vh->v", table, table))
    lengths[lengths == 0] = 1  # a row of zeros has cosine 0 with everything
    for word in words:
        id = _piece(tokenizer, word)
        cosines = table @ table[id] / (lengths * lengths[id])
        others = used[used != id]
        nearest = others[best_first(cosines[others], top_k)].tolist()
        records = [{"token": tokenizer.piece(i), "id": i, "cosine": short(float(cosines[i]))} for i in nearest]
        yield {"token": tokenizer.piece(id), "neighbors": records}


def _piece(tokenizer: Tokenizer, word: str) -> int:
    ids = tokenizer.pieces_of(word)
    unknown = tokenizer.special_id("unk") in ids and tokenizer.id_of(word) is None
    if unknown or not ids:
        raise BertcliError(f"{quoted(word)} is unknown to the vocabulary: give another word.")
    if len(ids) > 1:
        pieces = " ".join(map(tokenizer.piece, ids))
        raise BertcliError(f"{quoted(word)} is {len(ids)} word pieces: {pieces}; give one of them.")
    return ids[0]
