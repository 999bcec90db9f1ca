"""bge-m3: the dense vector, the weights of tokens and their vectors for late interaction, all of one pass."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from bertcli.engine.packing import Packed
from bertcli.errors import BertcliError, quoted
from bertcli.files.texts import Item
from bertcli.loaded_model import LoadedModel
from bertcli.sentence.config import SentenceConfig
from bertcli.tasks.compute.batches import check_finite, hidden_states, in_packed_batches
from bertcli.tasks.compute.encode import SETTINGS, Plan, PreparedBlock, PreparedTask, pool
from bertcli.tasks.compute.encode_sparse import token_weights, unweighed
from bertcli.tasks.compute.prepared import prepare
from bertcli.tasks.compute.sparse_vectors import SparseVector
from bertcli.tasks.compute.task import Record, Window
from bertcli.tasks.encode import EncodeOptions
from bertcli.tasks.options import Prepared
from bertcli.tracing.dispatch import Array

DENSE, SPARSE, LATE = OUTPUTS = ("dense", "sparse", "late")


class Outputs(NamedTuple):
    """The outputs of a pass for a text; None for one that is not requested."""

    dense: Array | None = None
    sparse: SparseVector | None = None
    late: Array | None = None  # [token, width], of all tokens but the first


@dataclass(frozen=True, eq=False, repr=False)
class OutputsBlock(PreparedBlock):
    """Consecutive texts with their outputs."""

    vectors: list[Outputs]

    def values(self) -> Iterator[Record]:
        """{embedding}, {indices, values} and {embeddings}, as far as the options have them."""
        for output in self.vectors:
            record: Record = {}
            if output.dense is not None:
                record["embedding"] = output.dense.tolist()
            if output.sparse is not None:
                record |= {"indices": output.sparse.indices.tolist(), "values": output.sparse.values.tolist()}
            if output.late is not None:
                record["embeddings"] = output.late.tolist()
            yield record


@dataclass(frozen=True, eq=False, repr=False)
class OutputsTask(PreparedTask[OutputsBlock]):
    """A task that computes several outputs in one pass; `dense` and `late` are the plans of their vectors."""

    names: tuple[str, ...]
    dense: Plan
    late: Plan

    @property
    def width(self) -> int:
        return self.dense.width

    @property
    def widths(self) -> dict[str, int]:
        """The numbers in a vector of each output."""
        return {DENSE: self.dense.width, SPARSE: self.model.config.vocab_size, LATE: self.late.width}

    @property
    def summary(self) -> str:
        return f"{', '.join(self.names)} of one pass; dense: pooling {self.dense.reason}{super().summary}"

    @property
    def settings(self) -> dict[str, Any]:
        return {**self.dense.settings, "outputs": [*self.names], **super().settings}

    def compute(self, window: Window) -> OutputsBlock:
        tokens = [item.tokens for item in window.items]
        outputs = in_packed_batches(tokens, self.read_options.batch_tokens, self._outputs)
        return OutputsBlock(window.progress, window.items, window.failures, outputs)

    def predictions(self, item: Item) -> int:
        """One, and with late interaction more for the vectors of its tokens."""
        return 1 + (len(item.tokens.ids) * (1 + self.late.width // 100) if LATE in self.names else 0)

    def _outputs(self, packed: Packed) -> Iterator[Outputs]:
        """The outputs of each text of a micro-batch."""
        hidden, count = hidden_states(self.model, packed), len(packed.offsets) - 1
        made: dict[str, Sequence[Any]] = {}
        if DENSE in self.names:
            pooled = [pool(hidden, packed.offsets, mode, self.left_out) for mode in self.dense.pooling]
            vectors = self.dense.finish(np.concatenate(pooled, axis=1))
            check_finite(vectors)
            made[DENSE] = list(vectors)
        layers = self.model.sentence.tokens
        if SPARSE in self.names and layers is not None and layers.sparse is not None:
            made[SPARSE] = list(token_weights(layers.sparse(hidden), packed, unweighed(self.model.tokenizer)))
        if LATE in self.names:
            vectors = self.late.finish(hidden)
            check_finite(vectors)
            made[LATE] = [rows[1:] for rows in np.split(vectors, packed.offsets[1:-1])]
        return (Outputs(**{name: values[i] for name, values in made.items()}) for i in range(count))


def outputs_of(sentence: SentenceConfig) -> tuple[str, ...]:
    """The names of the outputs that a model has of one pass; none for any other model than bge-m3."""
    if sentence.tokens is None:
        return ()
    found = {SPARSE: sentence.tokens.sparse is not None, LATE: sentence.tokens.late is not None}
    return tuple(name for name in OUTPUTS if found.get(name, True))


def plan(model: LoadedModel, options: EncodeOptions) -> OutputsTask:
    """Make the task. Errors: BertcliError for options that are about single vectors."""
    unfit = [name for name in (*SETTINGS, "chunk") if getattr(options, name) != getattr(EncodeOptions(), name)]
    if unfit:
        raise BertcliError(f"The outputs (--outputs) are made as the model specifies: leave out {', '.join(unfit)}.")
    return plan_outputs(model, options, [*(options.outputs or ())], "outputs (--outputs)")


def plan_outputs(
    model: LoadedModel, options: Prepared, names: Sequence[str], option: str, normalize: bool | None = None
) -> OutputsTask:
    """Make the task for these outputs; `option` names the option that requests them, for messages.

    Errors: BertcliError for names of no output that the model has.
    """
    has = outputs_of(model.sentence)
    if not has:
        raise BertcliError(f"{option} needs a model with several outputs (bge-m3); {model.name} has one: leave it out.")
    if not names or len({*names}) < len(names):
        raise BertcliError(f"{option} needs each output once: {', '.join(has)}.")
    if unknown := [name for name in names if name not in has]:
        raise BertcliError(f"{model.name} has no output {quoted(unknown[0])}; {option} takes {', '.join(has)}.")
    read_options, prompt, chunking, left_out = prepare(model, options)
    if chunking is not None:
        raise BertcliError(f"Chunks have one vector each: leave out chunk (--chunk), or {option}.")
    dense = Plan.make(model, EncodeOptions(normalize=normalize))
    late = Plan.make(model, EncodeOptions(pooling="none")) if LATE in has else dense
    return OutputsTask(model, read_options, chunking, left_out, tuple(names), dense, late, prompt=prompt)
