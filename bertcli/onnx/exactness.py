"""Measure how exact int8 is: the cosines of the model's int8 vectors with its float32 vectors, on SENTENCES.

The measurement is kept beside the graph in the cache: it depends on the model above all.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from bertcli.engine.packing import Packed, Sentence, pack
from bertcli.onnx.session import Session, hidden_states
from bertcli.onnx.speeds import kept_beside
from bertcli.tracing.dispatch import Array

WARNED, REFUSED = 0.98, 0.95  # mean cosines below which int8 is warned of, and refused
TOGETHER = 8  # sentences of a batch, as small ones are

SUBJECTS = (
    "The old bridge", "My neighbour's dog", "A new law on rents", "Our team of engineers", "The price of coffee",
    "Nobody in the village", "This phone", "The second symphony",
)  # fmt: skip
PREDICATES = (
    "was closed for repairs after the storm.", "has changed more in a year than anyone expected.",
    "made me laugh, although I was tired.", "will be discussed in parliament on Tuesday at 10 a.m.",
    "is not worth the 49.90 euros that I paid.", "reminds visitors of a time before electricity!",
    "never arrived; can you please send it again?", "depends on temperature, pressure and a little luck.",
)  # fmt: skip
SENTENCES = tuple(f"{subject} {predicate}" for subject in SUBJECTS for predicate in PREDICATES)


class Exactness(NamedTuple):
    """Cosines of int8's vectors with float32's: their mean, and the least."""

    mean: float
    least: float

    def __str__(self) -> str:
        return (
            f"vectors have cosine {self.mean:.3f} with float32's on average and {self.least:.3f} at least "
            f"({len(SENTENCES)} built-in sentences)"
        )


def exactness(
    session: Session, network: Callable[[Packed], Array], sentences: Sequence[Sentence], pooling: str
) -> Exactness:
    """Compare a session with the network that its graph was made from, on tokenized SENTENCES."""

    def measure() -> list[float]:
        batches = [pack(sentences[first : first + TOGETHER]) for first in range(0, len(sentences), TOGETHER)]
        cosines = np.concatenate([_cosines(session, network, batch, pooling) for batch in batches])
        return [float(cosines.mean()), float(cosines.min())]

    mean, least = kept_beside(session, f"exactness-{pooling}", measure, _sound)
    return Exactness(mean, least)


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


def _sound(kept: Any) -> bool:
    return (
        isinstance(kept, list) and len(kept) == 2 and all(isinstance(one, float) and -1.01 < one < 1.01 for one in kept)
    )
