"""What a BERT computes for a batch, in one form for both sides, so that a comparison is a subtraction. NumPy only."""

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from reference.cases import MLM_COLUMNS, Batch

if TYPE_CHECKING:
    from bertcli.model import Model

Array = NDArray[Any]


class Outputs(NamedTuple):
    """Everything a checkpoint gives for a batch; `token` runs over the tokens that count, sentence after sentence."""

    states: Array  # [layer + 1, token, hidden]
    pooled: Array | None  # [batch, hidden]
    log_probabilities: Array | None  # of the vocabulary [token, vocabulary]
    next_sentence: Array | None  # probabilities [batch, 2]
    labels: Array | None  # logits [batch, label]

    def narrowed(self, batch: Batch) -> dict[str, Array]:
        """The part worth recording: first and last token of each sentence, every eleventh word, whatever is there."""
        ends = np.cumsum(batch.mask.sum(axis=1))
        rows = np.stack([ends - batch.mask.sum(axis=1), ends - 1], axis=1).reshape(-1)
        words = self.log_probabilities
        words = None if words is None else words[rows, MLM_COLUMNS]
        parts = self._replace(states=self.states[:, rows], log_probabilities=words)
        return {name: value for name, value in parts._asdict().items() if value is not None}


class Sentence(NamedTuple):
    """A tokenized text, as much of it as the network needs."""

    ids: list[int]
    segments: list[int]


def log_softmax(x: Array) -> Array:
    """x - log Σ exp(x) over the last axis, in float64: what comes after the logits is not under test here."""
    x = x.astype(np.float64)
    x = x - x.max(axis=-1, keepdims=True)
    result: Array = x - np.log(np.exp(x).sum(axis=-1, keepdims=True))
    return result


def of_bertcli(model: "Model", batch: Batch) -> Outputs:
    """Run a right-padded batch through bertcli's network, packed as its commands pack it."""
    from bertcli.engine.packing import pack
    from bertcli.models.bert import Bert

    sentences = [
        Sentence(ids[mask == 1].tolist(), segments[mask == 1].tolist())
        for ids, segments, mask in zip(batch.ids, batch.segments, batch.mask, strict=True)
    ]
    network, packed = model.network, pack(sentences)
    assert isinstance(network, Bert)
    states = np.stack(list(network.states(packed)))
    last = network(packed)
    pooled = None if network.pooler is None else network.pooler(last[packed.offsets[:-1]])
    return Outputs(
        states=np.concatenate([states[:-1], last[None]]),
        pooled=pooled,
        log_probabilities=None if network.mlm is None else log_softmax(network.mlm(last)),
        next_sentence=None if network.nsp is None else np.exp(log_softmax(network.nsp(pooled))),
        labels=None if network.classifier is None else network.classifier(pooled),
    )
