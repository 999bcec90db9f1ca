"""The attention weights of a traced pass, and the choice of which to show."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, NamedTuple
from unicodedata import combining, east_asian_width

import numpy as np
from numpy.typing import NDArray

from bertcli.config import BertConfig
from bertcli.errors import BertcliError, damaged
from bertcli.tracing import Trace

PATH = "encoder.layers.{}.attention.softmax"
Weights = NDArray[np.float32]


class Choice(NamedTuple):
    """A layer, and one of its heads or (None) the mean of all; both count from 0, as in the paths of a trace."""

    layer: int
    head: int | None


@dataclass(frozen=True)
class Selected:
    """One table of weights [query token, key token]; every row sums to 1."""

    title: str
    pieces: list[str]
    weights: Weights

    @property
    def labels(self) -> list[str]:
        """The pieces, with a mark in place of what cannot be printed."""
        return [printable(piece) for piece in self.pieces]

    @property
    def largest(self) -> float:
        """The largest weight, which gets the darkest shade."""
        return float(self.weights.max())


@dataclass(frozen=True)
class Attention:
    """The weights of all layers [layer, head, token, token] of one sentence."""

    model: str
    pieces: list[str]
    weights: Weights

    def select(self, choice: Choice) -> Selected:
        """One head's weights, or the mean of a layer's heads."""
        layer = self.weights[choice.layer]
        path = PATH.format(choice.layer)
        if choice.head is None:
            title = f"{self.model}: layer {choice.layer}, mean of {len(layer)} heads ({path})"
            return Selected(title, self.pieces, layer.mean(axis=0, dtype=np.float64).astype(np.float32))
        return Selected(
            f"{self.model}: layer {choice.layer}, head {choice.head} ({path})", self.pieces, layer[choice.head]
        )

    def record(self, choice: Choice) -> dict[str, Any]:
        """The chosen weights for JSON: of one head a matrix, of a layer one for every head."""
        layer = self.weights[choice.layer]
        chosen = layer if choice.head is None else layer[choice.head]
        return {"layer": choice.layer, "head": choice.head, "tokens": self.pieces, "weights": chosen.tolist()}


def parse_choice(text: str, config: BertConfig) -> Choice:
    """Parse `LAYER` or `LAYER.HEAD`; the BertcliError for any other text says which exist."""
    layers, heads = config.num_hidden_layers, config.num_attention_heads
    match = re.fullmatch(r"(\d{1,9})(?:\.(\d{1,9}))?", text, re.ASCII)
    if match is None:
        raise BertcliError(
            f"'{text}' is not a LAYER or LAYER.HEAD: give a layer, 0 to {layers - 1}, as in 0 or 0.{heads - 1}."
        )
    choice = Choice(int(match[1]), None if match[2] is None else int(match[2]))
    if choice.layer >= layers:
        raise BertcliError(f"There is no layer {choice.layer}: this model has layers 0 to {layers - 1}.")
    if choice.head is not None and choice.head >= heads:
        raise BertcliError(f"There is no head {choice.head}: this model has heads 0 to {heads - 1}.")
    return choice


def keeps_attention(path: str) -> bool:
    """Whether a step's result is attention weights: for `bertcli.trace(model, keep=keeps_attention)`."""
    return path.endswith(".attention.softmax")


def attention_of(trace: Trace, pieces: list[str]) -> Attention:
    """The weights a trace has kept for its first sentence. Errors: BertcliError for weights that are not finite."""
    layers = [array for path, array in trace.arrays.items() if keeps_attention(path)]
    first = [layer[0] if layer.ndim == 4 else layer for layer in layers]  # the first sentence of a batch
    weights = np.stack(first)
    if not np.isfinite(weights).all():
        raise damaged()
    return Attention(trace.model, pieces, weights)


def cells(text: str) -> int:
    """How many terminal cells a text takes: wide letters (東) two, combining marks none."""
    return sum(0 if combining(letter) else 2 if east_asian_width(letter) in "WF" else 1 for letter in text)


def printable(text: str) -> str:
    """Text with a replacement mark for control characters and others that cannot be printed."""
    return "".join(character if character.isprintable() else "\N{REPLACEMENT CHARACTER}" for character in text)
