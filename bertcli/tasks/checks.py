"""Checks that all tasks share: a missing head, results that are not finite, invalid options."""

from __future__ import annotations

from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from bertcli.errors import BertcliError, damaged
from bertcli.model import Model
from bertcli.packing import Packed
from bertcli.parts import Array, Integers
from bertcli.untrusted import shown_object

HEAD_NAMES = {
    "pooler": "pooler",
    "mlm": "masked-language-model head (mlm)",
    "nsp": "next-sentence head (nsp)",
    "classifier": "classifier head",
}


def head_of(model: Model, head: str, task: str) -> Any:
    """A head of the network, to be called; if it is missing, BertcliError saying which heads there are."""
    found = getattr(model.network, head, None)
    if found is None:
        there = ", ".join(model.heads) or "none"
        raise BertcliError(f"{task} needs a {HEAD_NAMES[head]}, which {model.name} does not have; its heads: {there}.")
    return found


def hidden_states(model: Model, batch: Packed, rows: Integers | None = None) -> Array:
    """The last layer's output [token, hidden], or only its `rows`; BertcliError if it is not finite."""
    hidden: Array = model.network(batch, rows)
    check_finite(hidden)
    return hidden


def check_finite(values: NDArray[Any]) -> None:
    """Raise BertcliError if a result has NaN or infinite numbers, which sound weights never give."""
    if not np.isfinite(values).all():
        raise damaged()


def check_choice(what: str, value: str | None, kind: Any) -> None:
    """Refuse a word that is not in `kind`, a Literal; None leaves the choice to the model."""
    if value is not None and value not in get_args(kind):
        raise BertcliError(f"There is no {what} {shown_object(value)}; choose from {', '.join(get_args(kind))}.")


def check_count(what: str, value: int | None) -> None:
    """Refuse numbers below 1; None leaves the number to the task."""
    check_whole(what, value)
    if value is not None and value < 1:
        raise BertcliError(f"{what} is {value}; it must be at least 1.")


def check_whole(what: str, value: int | None) -> None:
    """Refuse anything but a whole number; None leaves the number to the task."""
    if value is not None and (isinstance(value, bool) or not isinstance(value, int | np.integer)):
        raise BertcliError(f"{what} is {shown_object(value)}, which is not a whole number.")
