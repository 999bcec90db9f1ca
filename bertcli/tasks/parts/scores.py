"""Turn logits into scores, by the name of an activation. What computes the logits of pairs is in pair_logits.py."""

from collections.abc import Callable

import numpy as np

from bertcli.tasks.running.batches import Numbers


def softmax(logits: Numbers) -> Numbers:
    """exp(x) / Σ exp(x) along the last axis."""
    powers = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return np.asarray(powers / powers.sum(axis=-1, keepdims=True))


def sigmoid(logits: Numbers) -> Numbers:
    """1 / (1 + exp(-x)) without overflow"""
    return np.asarray(np.exp(-np.logaddexp(0.0, -logits)))


# Scores from logits [label], or [text, label].
SCORE_FUNCTIONS: dict[str, Callable[[Numbers], Numbers]] = {
    "softmax": softmax,
    "sigmoid": sigmoid,
    "none": lambda logits: logits,
    "identity": lambda logits: logits,
    "tanh": np.tanh,
}
