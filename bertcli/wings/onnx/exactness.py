"""How exact int8 is: the mean cosine of the model's int8 vectors with its float32 vectors, on built-in sentences.

The measurement is kept beside the graph in the cache: it depends on the model above all.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from bertcli.engine.packing import Packed, Sentence, pack
from bertcli.tracing.dispatch import Array
from bertcli.wings.onnx.pass_times import cached_measurement
from bertcli.wings.onnx.session import Session, hidden_states

LEAST = 0.95  # the mean cosine below which int8 is refused
TOGETHER = 8  # sentences of a batch, as small ones are


def mean_cosine(
    session: Session, network: Callable[[Packed], Array], sentences: Sequence[Sentence], pooling: str
) -> float:
    """Compare a session with the network that its graph was made from, on tokenized SENTENCES."""

    def measure() -> float:
        batches = [pack(sentences[first : first + TOGETHER]) for first in range(0, len(sentences), TOGETHER)]
        return float(np.concatenate([_cosines(session, network, batch, pooling) for batch in batches]).mean())

    return float(cached_measurement(session, f"cosine-{pooling}", measure, _is_cosine))


def _cosines(session: Session, network: Callable[[Packed], Array], batch: Packed, pooling: str) -> Array:
    with np.errstate(all="ignore"):  # damaged weights are reported where their results are used
        pairs = [_pooled(states, batch, pooling) for states in (network(batch), hidden_states(session, batch))]
        exact, rounded = (x / np.linalg.norm(x, axis=1, keepdims=True) for x in pairs)
        return np.asarray((exact * rounded).sum(axis=1))


def _pooled(states: Array, batch: Packed, pooling: str) -> Array:
    """Pool to one vector a sentence: "cls", "lasttoken", else the mean."""
    first, end = batch.offsets[:-1], batch.offsets[1:]
    if pooling in ("cls", "lasttoken"):
        return states[first if pooling == "cls" else end - 1]
    lengths = np.diff(batch.offsets)[:, None].astype(np.float32)
    return np.asarray(np.add.reduceat(states, first, axis=0) / lengths, np.float32)


def _is_cosine(kept: Any) -> bool:
    return isinstance(kept, float) and -1.01 < kept < 1.01
