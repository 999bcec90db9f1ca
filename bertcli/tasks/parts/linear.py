"""Compute the logits of labels, with an attached classifier (kinds/classifier.py) or else the model's own head.

v = pool(states after layer N)        one vector a text
logits = W v + b
"""

from collections.abc import Iterable, Sequence
from itertools import islice

import numpy as np

from bertcli.engine.packing import Packed, Sentence
from bertcli.errors import check_finite
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
    """Raise BertcliError if a model lacks the head; an attached classifier is one."""
    if head != "classifier" or model.classifier is None:
        check_head(model, head, task)


def label_reading(model: LoadedModel, head: str, max_length: int | None) -> tuple[int | None, str]:
    """Return max_length and prompt: those the classifier was made with, if one is attached."""
    classifier = model.classifier
    if head != "classifier" or classifier is None:
        return max_length, query_prompt(model)
    return max_length or classifier.max_length, classifier.prompt


def label_logits(model: LoadedModel, head: str, batch: Packed) -> Numbers:
    """Compute the logits of a batch [text, label]. Errors: BertcliError for NaN and infinity."""
    if head != "classifier" or model.classifier is None:
        return logits(model, head, batch).astype(np.float64)
    return _linear(model, batch)


def label_logits_of_each(
    model: LoadedModel, head: str, sentences: Sequence[Sentence], batch_tokens: int | None
) -> list[Numbers]:
    """Compute the logits of each text [label]."""
    if head != "classifier" or model.classifier is None:
        return logits_of_each(model, head, sentences, batch_tokens)

    def run(packed: Packed) -> Iterable[Numbers]:
        return _linear(model, packed)

    return in_packed_batches(sentences, batch_tokens, run)


def _linear(model: LoadedModel, batch: Packed) -> Numbers:
    from bertcli.kinds.vectors import pool, unit  # which the classifier of a checkpoint does not need

    classifier = model.classifier
    assert classifier is not None
    states = _states(model, batch, classifier.layer)
    pooled = [pool(states, batch.offsets, mode, classifier.prompt_tokens) for mode in classifier.pooling]
    vectors = np.concatenate(pooled, axis=1)
    if classifier.normalize:
        vectors = unit(vectors)
    # Without BLAS, whose order of summation depends on how many texts there are.
    products = np.einsum("td,ld->tl", vectors, classifier.weight, dtype=np.float64)
    values = np.asarray(products + classifier.bias)
    check_finite(values)
    return values


def _states(model: LoadedModel, batch: Packed, layer: int) -> Array:
    """The states after a layer [token, hidden]; later layers do not run. Only the last can be ONNX Runtime's."""
    if layer == model.config.num_hidden_layers:
        return hidden_states(model, batch)
    (states,) = islice(model.network.states(batch), layer, layer + 1)
    check_finite(states)
    return states
