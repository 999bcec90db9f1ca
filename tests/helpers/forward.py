"""What tasks compute, by hand: hidden states and log-probabilities of one text."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bertcli.engine.packing import pack
from bertcli.model import Model

Array = NDArray[Any]


def states(model: Model, text: str, pair: str | None = None) -> list[Array]:
    """Hidden states [token, hidden] of every layer."""
    return list(model.network.states(pack(model.tokenizer.encode([text], [pair]))))


def log_probabilities(model: Model, ids: list[int]) -> Array:
    """log softmax over the vocabulary at every token of one sentence."""
    assert model.network.mlm is not None
    hidden = model.forward([ids])[0]
    x = model.network.mlm(hidden).astype(np.float64)
    return np.asarray(x - np.log(np.exp(x).sum(axis=-1, keepdims=True)))
