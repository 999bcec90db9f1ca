"""The peak memory of a forward pass: the weights, and the largest sum of activations alive at the same time.

A pass by shapes runs the model's own modules, so a value lives as long as in a real pass: until nothing refers to it.
"""

from typing import Any, NamedTuple

from bertcli.engine.packing import MOST_SCORES, Packed, batch_of_shapes
from bertcli.engine.threads import thread_count
from bertcli.loaded_model import LoadedModel
from bertcli.network.encoder import SelfAttention
from bertcli.network.heads import outputs
from bertcli.network.module import parameters
from bertcli.network.traced_tree import twins
from bertcli.tasks.running.batches import BATCH_TOKENS
from bertcli.tracing.dispatch import watching
from bertcli.tracing.tracer import Ran, Tracer

# Bytes of a number.
SIZES = {"float32": 4, "float16": 2, "bfloat16": 2}
# Axes of an array in attention: [sentence, head, query, key].
ATTENTION_NDIM = 4


class Peak(NamedTuple):
    """The peak of a pass in bytes: of the weights, of the activations alive at the same time, and of both."""

    weights: int
    activations: int

    @property
    def record(self) -> dict[str, int]:
        return {"weights": self.weights, "activations": self.activations, "peak": self.weights + self.activations}


class Memory(NamedTuple):
    """The peak memory of one pass through every prediction head: in bertcli, and in ordinary padded execution.

    ours, padded   a pass of all sentences in the given type
    taken          what bertcli takes for them: it computes in float32, and only `at_once` sentences at a time

    In bertcli an op may write over what it reads, and attention is computed in blocks (the textbook's is not).
    Ordinarily every op has a new array for its result, attention's have all heads of all sentences, and a product with
    an activation has two.
    """

    batch: int
    sequence: int
    dtype: str
    ours: Peak
    padded: Peak
    at_once: int
    taken: Peak

    @property
    def record(self) -> dict[str, Any]:
        taken = {"sentences": self.at_once, **self.taken.record}
        return {**self.ours.record, "padded": self.padded.record, "taken": taken}


def memory(model: LoadedModel, batch: int, sequence: int, dtype: str) -> Memory:
    """The memory of a pass of `batch` sentences with `sequence` tokens each, every number stored in this type."""
    sizes = {id(parameter.array): parameter.array.size for parameter in parameters(model.network)}

    def peak(sentences: int, type: str, padded: bool = False) -> Peak:
        alive = _Alive(model, SIZES[type], padded=padded)
        packed = batch_of_shapes(sentences, sequence)
        with watching(alive):
            outputs(model.network, packed if padded else _WithDistances(**vars(packed)))
        return Peak(SIZES[type] * sum(sizes.values()), alive.peak)

    # Each thread has a micro-batch.
    at_once = min(batch, thread_count() * max(1, BATCH_TOKENS // sequence))
    ours, padded, taken = peak(batch, dtype), peak(batch, dtype, padded=True), peak(at_once, "float32")
    return Memory(batch, sequence, dtype, ours, padded, at_once, taken)


class _WithDistances(Packed):
    """A batch that has, for a watcher too, only the distances between its own tokens: bertcli keeps no others."""

    @property
    def max_distance(self) -> int:
        return max(group.key_length for group in self.groups) - 1


class _Alive(Tracer):
    """Counts the bytes of the values that are alive, from op to op."""

    def __init__(self, model: LoadedModel, size: int, *, padded: bool) -> None:
        super().__init__(model.name, dry=True)
        self.register(twins(model.network))
        self.now = self.peak = 0
        self._scores = 0  # bytes of all scores of the layer that is running
        self._size, self._padded = size, padded

    def ran(self, ran: Ran) -> None:
        """Note the memory of a result: new, or that of what it is written over."""
        output, written = ran.output, ran.arguments.get(ran.op.over or "")
        size = needed = self._size * output.array.size
        beside = ran.arguments.get("activation") is not None if self._padded else ran.op.beside
        if ran.op.name == "scores":
            self._scores = size
        in_blocks = self.frame is not None and isinstance(self.frame.module, SelfAttention) and not self._padded
        if output.ndim == ATTENTION_NDIM and in_blocks:
            # Every thread has one block of MOST_SCORES scores.
            needed = int(size * min(1, self._size * thread_count() * MOST_SCORES / self._scores))
        if beside < 0:
            # The result is a view, which has no memory of its own.
            return
        if self._padded or written is None:
            output.source.append(_Buffer(self, needed))
        elif ran.op.over == "into":
            # The op fills a part of an array that was allocated empty: the part counts from now on.
            output.source.append(_Buffer(self, size))
        else:
            output.source.extend(written.source)
        _Buffer(self, beside * needed)


class _Buffer:
    """The memory of a value: added to the account now, taken off in `__del__`, when nothing refers to it any more."""

    def __init__(self, counted: _Alive, size: int) -> None:
        self._counted, self._size = counted, size
        counted.now += size
        counted.peak = max(counted.peak, counted.now)

    def __del__(self) -> None:
        self._counted.now -= self._size
