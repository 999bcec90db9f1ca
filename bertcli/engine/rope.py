"""Rotary position embeddings (RoPE): the inverse frequencies of a head's pairs for each rope_type.

The types other than `default` extend a model to more positions than it was trained on: `linear`, `yarn`, and GTE's
`ntk`; others are refused. Source of the formulas: `ROPE_INIT_FUNCTIONS` of transformers 5.
models/rope.py reads these settings from config.json.
"""

from dataclasses import dataclass, field
from math import ceil, floor, log, pi
from typing import Any

import numpy as np

from bertcli.engine.positions import Frequencies
from bertcli.tracing.dispatch import Array


def _optional(least: float) -> Any:
    """Declare an optional number that is at least `least`; models/config.py checks the range when it reads a file."""
    return field(default=None, metadata={"range": (least, 1e6)})


@dataclass(frozen=True, kw_only=True)
class Rope:
    """The rope_parameters of a config.json for one type of layer, with the same keys."""

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
        """Inverse frequencies in float32, size / 2 of them, for heads of `size` features.

        positions: max_position_embeddings.
        """
        trained, factor = self._extension(positions)
        base = self.rope_theta * factor if self.rope_type == "ntk" else self.rope_theta
        periods: Array = (base ** (np.arange(0, size, 2) / size)).astype(np.float32)
        frequencies: Array = np.reciprocal(periods)  # θ^(-2j/D) for every pair j
        if self.rope_type == "linear":
            frequencies = frequencies / np.float32(factor)
        elif self.rope_type == "ntk":
            frequencies = frequencies / np.float32(factor ** (2 / size))
        elif self.rope_type == "yarn":
            slowed = np.reciprocal(np.float32(factor) * periods)
            frequencies = self._yarn(frequencies, slowed, size, trained)
        return tuple(frequencies.tolist())

    def scaling(self, positions: int) -> float:
        """The factor on cosines and sines: transformers' attention_scaling."""
        _, factor = self._extension(positions)
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
        """The largest number of tokens in a text."""
        if self.rope_type != "yarn":
            # For the other types max_position_embeddings is the limit, whatever the factor.
            return positions
        trained, factor = self._extension(positions)
        return max(positions, int(factor * trained))

    def _extension(self, positions: int) -> tuple[int, float]:
        """Return the number of positions in training, and the factor by which they are extended."""
        trained = self.original_max_position_embeddings or positions
        factor = positions / trained if self.factor is None else self.factor
        return trained, factor

    def _yarn(self, frequencies: Array, slowed: Array, size: int, trained: int) -> Array:
        """YaRN (Peng et al. 2023): keep high frequencies, slow low ones down, and blend linearly between the two.

        A pair is high if it turns more than `beta_fast` times within the trained positions, low if fewer than
        `beta_slow`; 32 and 1 are the paper's.
        """
        rotations = (self.beta_fast or 32, self.beta_slow or 1)
        # The pair (a real number) that turns so many times within the trained positions.
        pair_of = [size * log(trained / (count * 2 * pi)) / (2 * log(self.rope_theta)) for count in rotations]
        first, last = (floor(pair_of[0]), ceil(pair_of[1])) if self.truncate else pair_of
        first, last = max(first, 0), min(last, size - 1)
        pairs = np.arange(size // 2, dtype=np.float32)
        # 0 for the pairs that keep their frequency, 1 for those that are slowed down.
        share = np.clip((pairs - np.float32(first)) / np.float32(last - first or 0.001), 0, 1)
        blended: Array = slowed * share + frequencies * (1 - share)
        return blended
