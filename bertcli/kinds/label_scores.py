"""`LabelScores`: what scores labels in place of a network's head; a kind with labels of its own has one.

tasks/parts/label_logits.py runs it. Nothing is computed here.
"""

from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from bertcli.tracing.dispatch import Array, Integers


class OwnLabels(NamedTuple):
    """Labels that a kind brings: in place of which head, their names, problem_type, and notes on the opened model."""

    head: str
    labels: tuple[str, ...]
    problem_type: str
    notes: tuple[str, ...]


class LabelScores(Protocol):
    """Scores labels from the states of a layer."""

    @property
    def layer(self) -> int:
        """The layer whose states it reads; 0 is the embeddings."""

    @property
    def prompt(self) -> str:
        """What is put before a text."""

    @property
    def max_length(self) -> int:
        """The number of tokens at which a text is cut, unless the user names another."""

    def logits(self, states: Array, offsets: Integers) -> NDArray[np.float64]:
        """The logits [text, label] from the states [token, hidden] of packed texts."""
