"""Rotary positions (RoPE): how fast the pairs of a head turn, for every rope_type.

A rope_type stretches the positions of a model beyond those that it was trained on: `linear`, `yarn`, and GTE's own
`ntk`. Those that turn each text by its length, and Llama 3's, do not run. Source of the formulas: `ROPE_INIT_FUNCTIONS`
of transformers 5.
"""

from dataclasses import dataclass, field
from math import ceil, floor, log, pi
from typing import Any

import numpy as np

from bertcli.engine.positions import Frequencies
from bertcli.tracing.dispatch import Array


def _optional(least: float) -> Any:
    """Field: a number from `least` on that need not be there; whoever reads a file checks that."""
    return field(default=None, metadata={"range": (least, 1e6)})


@dataclass(frozen=True, kw_only=True)
class Rope:
    """What rope_parameters says of some layers, with its own keys. `trained`: the positions a model was trained on."""

    rope_theta: float = field(default=10000.0, metadata={"range": (2, 1e12)})
    rope_type: str = "default"
    factor: float | None = _optional(1)
    original_max_position_embeddings: int | None = field(default=None, metadata={"range": (2, 1 << 24)})
    attention_factor: float | None = _optional(0)
    beta_fast: float | None = _optional(1e-6)
    beta_slow: float | None = _optional(1e-6)
    mscale: float | None = _optional(0)
    mscale_all_dim: float | None = _optional(0)
    truncate: bool = True

    def inverse_frequencies(self, size: int, positions: int) -> Frequencies:
        """How fast each pair of a head of this size turns, in float32. `positions` is max_position_embeddings."""
        trained, factor = self._stretch(positions)
        base = self.rope_theta * factor if self.rope_type == "ntk" else self.rope_theta
        periods: Array = (base ** (np.arange(0, size, 2) / size)).astype(np.float32)
        rates: Array = np.reciprocal(periods)  # θ^(-2j/D) for every pair j
        if self.rope_type == "linear":
            rates = rates / np.float32(factor)
        elif self.rope_type == "ntk":
            rates = rates / np.float32(factor ** (2 / size))
        elif self.rope_type == "yarn":
            rates = self._yarn(rates, np.reciprocal(np.float32(factor) * periods), size, trained)
        return tuple(rates.tolist())

    def scaling(self, positions: int) -> float:
        """By how much turned queries and keys are scaled."""
        _, factor = self._stretch(positions)
        if self.rope_type != "yarn":
            return 1.0
        if self.attention_factor is not None:
            return self.attention_factor
        if factor <= 1:
            return 1.0
        if self.mscale and self.mscale_all_dim:
            return (0.1 * self.mscale * log(factor) + 1) / (0.1 * self.mscale_all_dim * log(factor) + 1)
        return 0.1 * log(factor) + 1

    def longest(self, positions: int) -> int:
        """How many tokens a text may have."""
        trained, factor = self._stretch(positions)
        return max(positions, int(factor * trained)) if self.rope_type == "yarn" else positions

    def _stretch(self, positions: int) -> tuple[int, float]:
        """How many positions the model was trained on, and by how much they are stretched."""
        trained = self.original_max_position_embeddings or positions
        return trained, positions / trained if self.factor is None else self.factor

    def _yarn(self, rates: Array, slow: Array, size: int, trained: int) -> Array:
        """Pairs that turn often while a text lasts keep their rates, those that turn seldom have the slow ones, and
        between the two rates pass from one to the other (Peng et al. 2023)."""
        turns = (self.beta_fast or 32, self.beta_slow or 1)
        ends = [size * log(trained / (often * 2 * pi)) / (2 * log(self.rope_theta)) for often in turns]
        low, high = (floor(ends[0]), ceil(ends[1])) if self.truncate else ends
        low, high = max(low, 0), min(high, size - 1)
        pairs = np.arange(size // 2, dtype=np.float32)
        seldom = np.clip((pairs - np.float32(low)) / np.float32(high - low or 0.001), 0, 1)
        passed: Array = slow * seldom + rates * (1 - seldom)
        return passed
