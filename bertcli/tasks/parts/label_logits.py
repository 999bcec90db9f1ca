"""Compute the logits of labels: by the network's head, or by the kind's own scores (kinds/label_scores.py)."""

from collections.abc import Iterable, Sequence
from itertools import islice

import numpy as np

from bertcli.engine.packing import Packed, Sentence
from bertcli.errors import check_finite
from bertcli.kinds.label_scores import LabelScores
from bertcli.loaded_model import LoadedModel
from bertcli.tasks.running.batches import (
    Numbers,
    check_head,
    hidden_states,
    in_packed_batches,
    logits,
    logits_of_each,
)
from bertcli.tasks.running.task import query_prompt
from bertcli.tracing.dispatch import Array


def check_label_head(model: LoadedModel, head: str, task: str) -> None:
    """Raise BertcliError if nothing scores a head's labels."""
    if model.readable_kind.label_scores(head) is None:
        check_head(model, head, task)


def label_reading(model: LoadedModel, head: str, max_length: int | None) -> tuple[int | None, str]:
    """Return max_length and prompt of texts: those that labels of the kind's own were made with, or the model's."""
    scores = model.readable_kind.label_scores(head)
    if scores is None:
        return max_length, query_prompt(model)
    return max_length or scores.max_length, scores.prompt


def label_logits(model: LoadedModel, head: str, batch: Packed) -> Numbers:
    """Compute the logits of a batch [text, label]. Errors: BertcliError for NaN and infinity."""
    scores = model.readable_kind.label_scores(head)
    if scores is None:
        return logits(model, head, batch).astype(np.float64)
    return _of_states(model, scores, batch)


def label_logits_of_each(
    model: LoadedModel, head: str, sentences: Sequence[Sentence], batch_tokens: int | None
) -> list[Numbers]:
    """Compute the logits of each text [label]."""
    scores = model.readable_kind.label_scores(head)
    if scores is None:
        return logits_of_each(model, head, sentences, batch_tokens)

    def run(packed: Packed) -> Iterable[Numbers]:
        return _of_states(model, scores, packed)

    return in_packed_batches(sentences, batch_tokens, run)


def _of_states(model: LoadedModel, scores: LabelScores, batch: Packed) -> Numbers:
    values = scores.logits(_states(model, batch, scores.layer), batch.offsets)
    check_finite(values)
    return values


def _states(model: LoadedModel, batch: Packed, layer: int) -> Array:
    """The states after a layer [token, hidden]; later layers do not run. Only the last can be ONNX Runtime's."""
    if layer == model.config.num_hidden_layers:
        return hidden_states(model, batch)
    (states,) = islice(model.network.states(batch), layer, layer + 1)
    check_finite(states)
    return states
