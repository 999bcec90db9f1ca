"""What turns logits into scores."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.float64]
Activation = Literal["softmax", "sigmoid", "none"]  # those that can be chosen


def softmax(logits: Numbers) -> Numbers:
    """exp(x) / Σ exp(x) along the last axis."""
    powers = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return np.asarray(powers / powers.sum(axis=-1, keepdims=True))


def sigmoid(logits: Numbers) -> Numbers:
    """1 / (1 + exp(-x)) without overflow"""
    return np.exp(-np.logaddexp(0.0, -logits))


ACTIVATIONS: dict[str, Callable[[Numbers], Numbers]] = {
    "softmax": softmax,
    "sigmoid": sigmoid,
    "none": lambda logits: logits,
    "identity": lambda logits: logits,
    "tanh": np.tanh,
}


def activated(logits: Numbers, activation: str) -> Numbers:
    """Scores from logits [text, label]."""
    return ACTIVATIONS[activation](logits)
