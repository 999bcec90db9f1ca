"""How hidden states become a text's vector: which layers, which pooling, Dense layers, normalisation."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from bertcli.dense import Dense
from bertcli.errors import BertcliError
from bertcli.model import Model
from bertcli.parts import Array, Integers
from bertcli.sentence import SentenceConfig
from bertcli.tasks.checks import check_choice, head_of
from bertcli.untrusted import shown_object

Pooling = Literal["auto", "mean", "cls", "max", "pooler", "none"]
SMALLEST_LENGTH = 1e-12  # a shorter vector is not scaled to length 1: the bound of torch.nn.functional.normalize


@dataclass(frozen=True)
class Plan:
    """What is computed for each text. Layer 0 is the embeddings' output; empty `pooling` keeps every token."""

    pooling: tuple[str, ...]
    layers: tuple[int, ...]
    normalize: bool
    dense: tuple[Dense, ...]
    width: int
    reason: str
    lower_case: bool
    prompt: str
    last_layer_only: bool
    cut_last: bool  # after normalisation, as a sentence model's own truncate_dim is

    @classmethod
    def make(
        cls,
        model: Model,
        pooling: str | None = "auto",
        layer: int | Sequence[int] = -1,
        normalize: bool | None = None,
        truncate_dim: int | None = None,
    ) -> Plan:
        """Combine the user's options with the checkpoint's settings; BertcliError if they do not fit together."""
        check_choice("pooling", pooling, Pooling)
        own = model.sentence
        last = model.config.num_hidden_layers
        layers = _layers(layer, last)
        modes, reason = _modes(pooling or "auto", own)
        if "pooler" in modes:
            head_of(model, "pooler", "The pooling 'pooler'")
            if layers != (last,):
                raise BertcliError(
                    "The pooling 'pooler' only works on the last layer: leave out layer (--layer), or choose another "
                    "pooling."
                )
        width = model.config.hidden_size * len(layers) * max(1, len(modes))
        dense = own.dense if modes else ()
        if dense and dense[0].weight.shape[1] != width:
            raise BertcliError(
                f"This checkpoint's Dense layer takes vectors of length {dense[0].weight.shape[1]}, but this pooling "
                f"gives {width}: leave out pooling and layer (--pooling, --layer)."
            )
        width = dense[-1].weight.shape[0] if dense else width
        if truncate_dim is not None and not 1 <= truncate_dim <= width:
            raise BertcliError(
                f"Vectors of {width} numbers cannot be cut to {truncate_dim} (see truncate_dim, --truncate-dim)."
            )
        own_cut = own.truncate_dim if modes and truncate_dim is None else None
        if own_cut is not None and own_cut < width:
            width, reason = own_cut, f"{reason}; cut to {own_cut} numbers, as the checkpoint specifies"
        return cls(
            pooling=modes,
            layers=layers,
            normalize=(own.normalize and bool(modes)) if normalize is None else normalize,
            dense=dense,
            width=truncate_dim or width,
            reason=reason,
            lower_case=own.do_lower_case,
            prompt=own.prompt,
            last_layer_only=layers == (last,),
            cut_last=own_cut is not None,
        )

    @property
    def only_first_tokens(self) -> bool:
        """Whether only [CLS] of the last layer is used."""
        return bool(self.pooling) and set(self.pooling) <= {"cls", "pooler"} and self.last_layer_only

    def prepare(self, text: str) -> str:
        """The text as the checkpoint's sentence-transformers files want it passed to the tokenizer."""
        return self.cased(self.prompt + text)

    def cased(self, text: str) -> str:
        """The text in lower case if these files want that."""
        return text.lower() if self.lower_case else text

    def finish(self, vectors: Array) -> Array:
        """Dense layers, truncation of dimensions, normalisation, in this order; a checkpoint's own cut comes last."""
        for layer in self.dense:
            vectors = layer(vectors)
        vectors = vectors if self.cut_last else vectors[:, : self.width]
        vectors = unit(vectors) if self.normalize else vectors
        return vectors[:, : self.width]


def unit(vectors: Array) -> Array:
    """x / |x| for every row; a zero vector stays zero."""
    lengths = np.linalg.norm(vectors.astype(np.float64), axis=1, keepdims=True)
    return np.asarray(vectors / np.maximum(lengths, SMALLEST_LENGTH), dtype=np.float32)


def pool(states: Array, offsets: Integers, mode: str) -> Array:
    """One vector per sentence [sentence, hidden] from packed rows [token, hidden], special tokens included."""
    first, counts = offsets[:-1], np.diff(offsets)[:, None]
    if mode == "cls":
        return states[first]
    if mode == "max":
        return np.maximum.reduceat(states, first, axis=0)
    divisor = {"mean": counts, "mean_sqrt_len": np.sqrt(counts)}[mode]
    sums = np.add.reduceat(states, first, axis=0, dtype=np.float64)
    return np.asarray(sums / divisor, dtype=np.float32)


def _modes(pooling: str, own: SentenceConfig) -> tuple[tuple[str, ...], str]:
    """The kinds of pooling to concatenate, none to keep every token, and why, for the user."""
    if pooling == "auto":
        return own.pooling or ("mean",), own.reason
    if pooling == "none":
        return (), "none, as requested: a vector for every token" + _left_out(own)
    return (pooling,), f"{pooling}, as requested"


def _left_out(own: SentenceConfig) -> str:
    """The parts of a sentence model that only apply to vectors of whole texts, for the message."""
    steps = ["Dense layers"] * bool(own.dense) + ["normalisation"] * own.normalize
    return f"; without the checkpoint's {' and '.join(steps)}, which are for one vector per text" if steps else ""


def _layers(layer: int | Sequence[int], count: int) -> tuple[int, ...]:
    """Layer numbers from 0 to `count`, from numbers that may be negative."""
    wanted = tuple(layer) if isinstance(layer, Iterable) else (layer,)
    if not wanted:
        raise BertcliError("No layer is given to take the vectors from: give at least one, as in -1.")
    for number in wanted:
        if not isinstance(number, int | np.integer):
            raise BertcliError(f"The layer {shown_object(number)} is not a whole number.")
        if not -count - 1 <= number <= count:
            raise BertcliError(
                f"There is no layer {number}: layers are 0 (the embeddings) to {count}, or from the end -1 (the last) "
                f"to {-count - 1}."
            )
    return tuple(int(number) if number >= 0 else int(number) + count + 1 for number in wanted)
