"""Measure how exact int8 is: the cosines of the model's int8 vectors with its float32 vectors, on built-in texts.

The mean, by which layers are kept in float32, is that of SENTENCES. The least is that of SHORT_TEXTS, too: a single
word loses more, since a vector of few tokens averages fewer errors.

The measurement is kept beside the graph in the cache: it depends on the model above all. Where int8 is far from
float32, some layers stay in float32: first those whose products have the widest inputs, since these are rounded to 8
bits with one scale.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from bertcli.engine.packing import Packed, Sentence, pack
from bertcli.network.heads import Network
from bertcli.network.traced_tree import twins
from bertcli.tasks.parts.sample_sentences import SENTENCES
from bertcli.tracing.dispatch import Array, watching
from bertcli.tracing.tracer import Ran, Tracer
from bertcli.wings.onnx.pass_times import cached_measurement
from bertcli.wings.onnx.session import Session, hidden_states

WARNED, REFUSED = 0.98, 0.95  # mean cosines below which int8 is warned of, and refused
LAYER_PATH = re.compile(r"(.*layers\.\d+)\.")
TOGETHER = 8  # sentences of a batch, as small ones are
SHORT_TEXTS = (
    # Words, frequent and rare ones.
    "a", "the", "tea", "dog", "river", "music", "enemies", "anger", "insurance", "photosynthesis", "unbelievable",
    "Tuesday", "Berlin", "running", "cheapest", "jazz", "zebra", "democracy", "oxygen", "quarterly", "feather", "hello",
    "ouch", "mother", "seventeen", "gravity", "lawsuit", "purple", "algorithm", "whisper", "soup", "nevertheless",
    # Queries and short answers.
    "hot drink", "cheap flights", "reset password", "refund policy", "Let me know.", "No.", "Thank you!",
    "I won again.", "side effects of aspirin", "who wrote Hamlet?", "red winter boots", "see above", "not bad at all",
    "what time is it?", "low interest rates", "two adults and a child",
    # Numbers, signs, names, code and other scripts.
    "42", "3.14", "2026-11-28", "1,234,567", "+49 30 901820", "?", "...", "NO REFUNDS", "NASA", "x = f(y)",
    "user@example.org", "https://example.org/a?b=1", "Straße", "naïve café", "Москва", "日本語",
)  # fmt: skip
TEXTS = (*SENTENCES, *SHORT_TEXTS)


class Exactness(NamedTuple):
    """Cosines of int8's vectors with float32's: their mean for SENTENCES, and the least for all TEXTS."""

    mean: float
    least: float

    def __str__(self) -> str:
        return (
            f"vectors have cosine {self.mean:.3f} with float32's on average ({len(SENTENCES)} built-in sentences) and "
            f"{self.least:.3f} at least (these and {len(SHORT_TEXTS)} words and short texts)"
        )


def exactness(
    session: Session, network: Callable[[Packed], Array], texts: Sequence[Sentence], pooling: str
) -> Exactness:
    """Compare a session with the network that its graph was made from, on tokenized TEXTS."""

    def measure() -> list[float]:
        batches = [pack(texts[first : first + TOGETHER]) for first in range(0, len(texts), TOGETHER)]
        cosines = np.concatenate([_cosines(session, network, batch, pooling) for batch in batches])
        return [float(cosines[: len(SENTENCES)].mean()), float(cosines.min())]

    mean, least = cached_measurement(session, f"exactness-{pooling}", measure, _are_cosines)
    return Exactness(mean, least)


class KeptLayers(NamedTuple):
    """A choice of layers that stay in float32: their paths, the session of that graph, and how exact it is."""

    layers: tuple[str, ...]
    session: Session
    exactness: Exactness


def keep_layers(
    first: KeptLayers,
    network: Network,
    names: Mapping[str, str],
    texts: Sequence[Sentence],
    pooling: str,
    reopen: Callable[[Sequence[str]], Session],
) -> KeptLayers:
    """Keep 1, 2, 4, ... layers in float32, at most half of them, until vectors are near to float32's.

    If they never are, the best choice counts. first: int8 throughout. reopen: open the graph that keeps these layers.
    The choice is kept beside the first graph.
    """
    tried: list[KeptLayers] = [first]

    def choose() -> list[str]:
        layers = _widest_inputs(network, names, texts)
        count = 1
        while count <= len(layers) // 2 and tried[-1].exactness.mean < WARNED:
            in_float32 = tuple(layers[:count])
            session = reopen(in_float32)
            tried.append(KeptLayers(in_float32, session, exactness(session, network, texts, pooling)))
            count *= 2
        best = max(tried, key=lambda attempt: (attempt.exactness.mean >= WARNED, attempt.exactness.mean))
        return [*best.layers]

    chosen = tuple(cached_measurement(first.session, f"kept-{pooling}", choose, _are_layers))
    attempt = next((attempt for attempt in tried if attempt.layers == chosen), None)
    if attempt is not None:
        return attempt
    # The choice was read from the cache, so that nothing was tried now.
    session = reopen(chosen)
    return KeptLayers(chosen, session, exactness(session, network, texts, pooling))


class _Ranges(Tracer):
    """Note, for each layer, how wide the inputs of its products with weights are: range over root mean square."""

    def __init__(self, network: Network, names: Mapping[str, str]) -> None:
        super().__init__("the model", dry=False)
        self.register(twins(network, names=names))
        self.widest: dict[str, float] = {}

    def ran(self, ran: Ran) -> None:
        if not ran.op.contracts or ran.operands[0] is None:
            return
        weights = [operand.weight for operand in ran.operands if operand is not None and operand.weight is not None]
        match = LAYER_PATH.match(weights[0].path) if weights else None
        if match is None:
            return
        x = ran.operands[0].array
        spread = float(np.sqrt(np.mean(np.square(x, dtype=np.float64))))
        width = float(x.max() - x.min()) / spread if spread else 0.0
        self.widest[match[1]] = max(width, self.widest.get(match[1], 0.0))


def _widest_inputs(network: Network, names: Mapping[str, str], sentences: Sequence[Sentence]) -> list[str]:
    """The paths of the layers, the one with the widest inputs first."""
    ranges = _Ranges(network, names)
    with np.errstate(all="ignore"), watching(ranges):
        network(pack(sentences[:TOGETHER]))
    return sorted(ranges.widest, key=lambda path: -ranges.widest[path])


def _are_layers(kept: Any) -> bool:
    return isinstance(kept, list) and all(isinstance(path, str) and LAYER_PATH.match(f"{path}.") for path in kept)


def _cosines(session: Session, network: Callable[[Packed], Array], batch: Packed, pooling: str) -> Array:
    with np.errstate(all="ignore"):  # damaged weights are reported where their results are used
        pairs = [_pooled(states, batch, pooling) for states in (network(batch), hidden_states(session, batch))]
        exact, rounded = (x / np.linalg.norm(x, axis=1, keepdims=True) for x in pairs)
        return np.asarray((exact * rounded).sum(axis=1))


def _pooled(states: Array, batch: Packed, pooling: str) -> Array:
    """Pool to one vector a sentence: "cls", "lasttoken", else the mean."""
    first, end = batch.offsets[:-1], batch.offsets[1:]
    if pooling in ("cls", "lasttoken"):
        return states[first if pooling == "cls" else end - 1]
    lengths = np.diff(batch.offsets)[:, None].astype(np.float32)
    return np.asarray(np.add.reduceat(states, first, axis=0) / lengths, np.float32)


def _are_cosines(kept: Any) -> bool:
    if not isinstance(kept, list) or len(kept) != 2:
        return False
    return all(isinstance(cosine, float) and -1.01 < cosine < 1.01 for cosine in kept)
