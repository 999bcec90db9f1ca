"""Checks that all tasks share: a missing head, results that are not finite, invalid options."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, get_args

import numpy as np
from numpy.typing import NDArray

from bertcli.checkpoint.families import family
from bertcli.engine.array import Array, Integers
from bertcli.engine.packing import Packed
from bertcli.errors import BertcliError, damaged, shown_object

if TYPE_CHECKING:
    from bertcli.model import Model

HEAD_NAMES = {
    "pooler": "pooler",
    "mlm": "masked-language-model head (mlm)",
    "nsp": "next-sentence head (nsp)",
    "classifier": "classifier head",
    "token_classifier": "head that labels tokens (token_classifier)",
    "qa": "head that finds answers (qa)",
    "multiple_choice": "multiple-choice head (multiple_choice)",
}
FITTING = {  # for what no bundled model can do, a model that people use, by the name of the task
    "tag": "-m dslim/bert-base-NER",
    "answer": "-m deepset/bert-base-cased-squad2",
    "rank": "-m cross-encoder/ms-marco-MiniLM-L6-v2",
    "classify --candidates": "-m cross-encoder/nli-distilroberta-base",
    "classify --choices": "a BertForMultipleChoice that was trained on SWAG",
}

COMMANDS = {"token_classifier": "tag", "qa": "answer", "multiple_choice": "classify --choices"}  # of a head's own


def head_of(model: Model, head: str, task: str) -> Any:
    """A head of the network, to be called; if it is missing, BertcliError saying which heads there are."""
    found = getattr(model.network, head, None)
    if found is None:
        there = ", ".join(_with_command(name) for name in model.heads) or "none"
        hint = family(model.config.model_type).hints.get(head)
        if hint is None and task in FITTING:
            hint = f"Choose a model that has one, such as {FITTING[task]}."
        raise BertcliError(
            f"{task} needs a {HEAD_NAMES[head]}, which {model.name} does not have; its heads: {there}."
            + ("" if hint is None else f" {hint}")
        )
    return found


def _with_command(head: str) -> str:
    return f"{head} (for {COMMANDS[head]})" if head in COMMANDS else head


def hidden_states(model: Model, batch: Packed, rows: Integers | None = None) -> Array:
    """The last layer's output [token, hidden], or only its `rows`; BertcliError if it is not finite."""
    hidden: Array = model.network(batch, rows)
    check_finite(hidden)
    return hidden


def logits(model: Model, head: str, batch: Packed) -> Array:
    """What a head says of a batch: classifier [batch, label], token_classifier [token, label], pooler [batch, H] …

    BertcliError if it is not finite. That the model has the head is checked before (`head_of`).
    """
    network = model.network
    found: Array = network.predict(head, hidden_states(model, batch, network.reads(head, batch)), batch)
    check_finite(found)
    return found


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
