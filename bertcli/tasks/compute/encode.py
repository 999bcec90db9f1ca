"""encode: texts to vectors. Hidden states are pooled, then go through the Dense layers that the checkpoint may have."""

import logging
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from bertcli.engine.packing import Packed
from bertcli.errors import BertcliError, check_finite, check_whole, number_of, quoted
from bertcli.files.texts import Item, Values, from_values
from bertcli.kinds.vectors import VectorSteps, pool
from bertcli.loaded_model import LoadedModel
from bertcli.models.registry import family
from bertcli.report.digits import short_rows
from bertcli.tasks.encode import SPEC, EncodeOptions
from bertcli.tasks.parts.prepared import prepare
from bertcli.tasks.parts.prepared_task import PreparedBlock, PreparedTask
from bertcli.tasks.request import Request, begin
from bertcli.tasks.running.batches import check_head, hidden_states, in_packed_batches
from bertcli.tasks.running.run import results
from bertcli.tasks.running.task import Record, TokenizedGroup
from bertcli.tracing.dispatch import Array
from bertcli.weights.loading import UNUSED

if TYPE_CHECKING:
    from bertcli.kinds.late_interaction import RoleSettings
    from bertcli.network.after_pooling import Dense
    from bertcli.tasks.parts.token_vectors import TokenVectors

logger = logging.getLogger("bertcli")
SETTINGS = ("pooling", "layer", "normalize", "truncate_dim")  # in which vectors that are compared must agree


def encode(model: LoadedModel, texts: Values, options: EncodeOptions) -> Array:
    """Compute the array of `Model.encode`. Errors: BertcliError for pooling "none" and keep_going: they need blocks."""
    if not options.output.one_each:
        raise BertcliError("With pooling none a text has more than one vector: use encode_blocks.")
    if options.keep_going:
        raise BertcliError("With keep_going a text may have no vector: use encode_blocks.")
    request = Request(SPEC, options, from_values(texts, options.pairs), lambda: model)
    task: Any = begin(request)
    vectors = [np.asarray(block.vectors) for block in results(task, request.texts)]
    return np.concatenate([np.empty((0, task.steps.width), np.float32), *vectors])


def plan(model: LoadedModel, options: EncodeOptions) -> "PreparedTask[Any]":
    """Make the task. Errors: BertcliError for options that do not fit together, or the model."""
    if options.sparse:
        from bertcli.tasks.parts.sparse_weights import plan_sparse

        return plan_sparse(model, options)
    return plan_dense(model, options)


def plan_dense(model: LoadedModel, options: EncodeOptions) -> "EncodeTask":
    """Make the task of dense vectors. Errors: as of `plan`."""
    model = model.for_prompt(options.prompt_name)
    steps, (read_options, prompt, chunking, left_out) = EncodeSteps.make(model, options), prepare(model, options)
    if steps.role is not None and steps.role.length is not None and read_options.max_length is None:
        read_options = replace(read_options, max_length=min(steps.role.length, model.config.max_tokens))
    if chunking and not steps.pooling:
        raise BertcliError("Chunks have one vector each: leave out chunk (--chunk), or the pooling 'none'.")
    if model.engine.name != "numpy" and not steps.last_layer_only:
        logger.info("NumPy computes these layers: the graph of %s only gives the last.", model.engine.title)
    expected = " or ".join(map(quoted, family(model.config.model_type).prompts))
    if expected and model.kind.pooling and not model.kind.prompts and options.prompt is None:
        model_type = model.config.model_type
        logger.info("sentence models of type %s expect %s before each text: give it (--prompt).", model_type, expected)
    return EncodeTask(model, read_options, chunking, left_out, steps, prompt=prompt)


# ------------------------------------------------------------------------------------------------------ dense vectors


@dataclass(frozen=True, eq=False, repr=False)
class Block(PreparedBlock):
    """Consecutive texts with their vectors: an array [text, width], or (pooling none) one [token, width] per text."""

    vectors: Array | list[Array]

    def values(self) -> Iterator[Record]:
        """{embedding}; for token vectors {tokens, embeddings}, two lists."""
        if isinstance(self.vectors, np.ndarray):
            yield from ({"embedding": vector} for vector in short_rows(self.vectors))
            return
        for item, vectors in zip(self.items, self.vectors, strict=True):
            yield {"tokens": item.tokens.pieces, "embeddings": short_rows(vectors)}


@dataclass(frozen=True, eq=False, repr=False)
class EncodeTask(PreparedTask[Block]):
    """The task of `encode`: runs the model, and pools as `steps` says."""

    steps: "EncodeSteps"

    @property
    def width(self) -> int:
        return self.steps.width

    @property
    def summary(self) -> str:
        length = "; vectors of length 1" if self.steps.normalize and not self.steps.cut_last else ""
        return f"pooling {self.steps.reason}{length}{self.model.kind.routes.summary}{super().summary}"

    @property
    def settings(self) -> dict[str, Any]:
        return {**self.steps.settings, **super().settings}

    def predictions(self, item: Item) -> int:
        """Count a vector as one prediction; vectors of tokens by their numbers, as several."""
        return 1 if self.steps.pooling else len(item.tokens.ids) * (1 + self.width // 100)

    def compute(self, group: TokenizedGroup) -> Block:
        if self.token_vectors is not None:
            of_texts = [item.tokens for item in group.items]
            scored, rows = self.token_vectors.of(of_texts, self.read_options.batch_tokens)
            items = [replace(item, tokens=tokens) for item, tokens in zip(group.items, scored, strict=True)]
            return Block(group.progress, items, group.failures, rows)
        rows = in_packed_batches([item.tokens for item in group.items], self.read_options.batch_tokens, self.vectors)
        if not self.steps.pooling:
            return Block(group.progress, group.items, group.failures, rows)
        vectors = np.stack(rows) if rows else np.empty((0, self.steps.width), np.float32)
        return Block(group.progress, group.items, group.failures, vectors)

    @cached_property
    def token_vectors(self) -> "TokenVectors | None":
        """The computation of a late-interaction model's token vectors; None for other models."""
        if self.steps.role is None:
            return None
        from bertcli.tasks.parts.token_vectors import TokenVectors

        return TokenVectors(self.model, self.steps.role, self.steps.finish)

    def vectors(self, packed: Packed) -> Iterable[Array]:
        """Compute the vectors of one micro-batch: [width] per text, or [token, width] if nothing is pooled."""
        steps, network = self.steps, self.model.network
        left_out = 0 if "pooler" in steps.pooling else self.left_out  # the pooler always reads the first
        if steps.only_first_tokens:
            first = hidden_states(self.model, packed, packed.first + left_out)
            pooled = [network.predict("pooler", first, packed) if mode == "pooler" else first for mode in steps.pooling]
        elif steps.pooling == ("lasttoken",) and steps.last_layer_only and (np.diff(packed.offsets) > 0).all():
            pooled = [hidden_states(self.model, packed, packed.offsets[1:] - 1)]
        else:
            states = self.states(packed)
            pooled = [pool(x, packed.offsets, mode, left_out) for x in states for mode in steps.pooling] or states
        vectors = steps.finish(np.concatenate(pooled, axis=1))
        check_finite(vectors)
        return vectors if steps.pooling else np.split(vectors, packed.offsets[1:-1])

    def states(self, packed: Packed) -> list[Array]:
        """Compute hidden states [token, hidden] of the requested layers; later layers do not run."""
        if self.steps.last_layer_only:
            return [hidden_states(self.model, packed)]
        states = {}
        for number, state in enumerate(self.model.network.states(packed)):
            if number in self.steps.layers:
                check_finite(state)
                states[number] = state
            if number == max(self.steps.layers):
                break
        return [states[number] for number in self.steps.layers]


@dataclass(frozen=True, eq=False, repr=False)
class EncodeSteps(VectorSteps):
    """The steps from hidden states to a vector, and the layers that are pooled; 0 is the embeddings."""

    layers: tuple[int, ...]
    reason: str
    last_layer_only: bool
    role: "RoleSettings | None" = None  # of texts in late interaction

    @classmethod
    def make(cls, model: LoadedModel, options: EncodeOptions) -> "EncodeSteps":
        """Combine the user's options with the checkpoint's settings; BertcliError if they do not fit together."""
        kind, last = model.kind, model.config.num_hidden_layers
        if options.pooling in (None, "auto"):
            _check_made_for_vectors(model)
        layers = layer_numbers(options.layer, last)
        modes, dense, normalize, reason, role = kind.steps(options.pooling or "auto", options.prompt_name)
        if role is not None and layers != (last,):
            raise BertcliError("Late interaction reads the last layer: leave out layer (--layer).")
        if "pooler" in modes:
            check_head(model, "pooler", "The pooling 'pooler'")
            if layers != (last,):
                raise BertcliError(
                    "The pooling 'pooler' only works on the last layer: leave out layer (--layer), or choose another "
                    "pooling."
                )
        width = _width(model.config.hidden_size * len(layers) * max(1, len(modes)), dense, options.truncate_dim)
        cut = kind.truncate_dim if modes and options.truncate_dim is None else None
        cut = None if cut is None or cut >= width else cut
        return cls(
            pooling=modes,
            layers=layers,
            normalize=normalize if options.normalize is None else options.normalize,
            dense=dense,
            width=cut or width,
            reason=reason if cut is None else f"{reason}; cut to {cut} numbers, as the checkpoint specifies",
            last_layer_only=layers == (last,),
            cut_last=cut is not None and options.normalize is None,
            role=role,
        )

    @property
    def settings(self) -> dict[str, Any]:
        """The settings that must be equal for two vectors to be comparable, by the names of the options."""
        values = ",".join(self.pooling) or "none", list(self.layers), self.normalize, self.width
        return dict(zip(SETTINGS, values, strict=True))

    @property
    def only_first_tokens(self) -> bool:
        """True if only the last layer's [CLS] is used, so that the layer computes nothing else."""
        return bool(self.pooling) and set(self.pooling) <= {"cls", "pooler"} and self.last_layer_only


def _refuse_projection(model: LoadedModel) -> None:
    """Raise BertcliError for a layer after the network that nothing here applies."""
    member = family(model.config.model_type)
    ours = [use.name for use in model.tensor_uses if use.use != "ignored"]
    applied = {
        name.partition(".")[0]
        for name in (*ours, *(member.head_tensor_prefix(head) or "" for head in member.head_names))
    }
    for name, shape in ((use.name, use.shape) for use in model.tensor_uses if use.why == UNUSED):
        if name.partition(".")[0] not in applied and len(shape) == 2 and shape[1] == model.config.hidden_size:
            raise BertcliError(
                f"{model.name} ends in a layer {quoted(name)}, which bertcli does not run: choose a pooling "
                "(--pooling) to encode texts without it."
            )


def _check_made_for_vectors(model: LoadedModel) -> None:
    """Raise BertcliError for a checkpoint that is made for another task, unless a pooling is given."""
    if (refusal := model.kind.refusal_of_one_vector()) is not None:
        raise BertcliError(refusal)
    if not model.kind.pooling:
        _refuse_projection(model)


def _width(pooled: int, dense: "Sequence[Dense]", truncate_dim: int | None) -> int:
    """Compute the width of a vector after Dense layers and truncation."""
    if dense and dense[0].weight.shape[1] != pooled:
        raise BertcliError(
            f"This checkpoint's Dense layer takes vectors of length {dense[0].weight.shape[1]}, but this pooling "
            f"gives {pooled}: leave out pooling and layer (--pooling, --layer)."
        )
    width: int = dense[-1].weight.shape[0] if dense else pooled
    if truncate_dim is not None and truncate_dim > width:
        raise BertcliError(
            f"Vectors of {number_of(width, 'number')} cannot be cut to {truncate_dim} "
            "(see truncate_dim, --truncate-dim)."
        )
    return truncate_dim or width


def layer_numbers(layer: int | Sequence[int], count: int) -> tuple[int, ...]:
    """Convert layer numbers, which may be negative, to 0 to `count`."""
    numbers = tuple(layer) if isinstance(layer, Iterable) else (layer,)
    if not numbers:
        raise BertcliError("layer (--layer) is empty: give at least one, such as -1.")
    for number in numbers:
        check_whole("layer (--layer)", number)
        if not -count - 1 <= number <= count:
            raise BertcliError(
                f"There is no layer {number}: layers are 0 (the embeddings) to {count}, or from the end -1 (the last) "
                f"to {-count - 1}."
            )
    return tuple(int(number) if number >= 0 else int(number) + count + 1 for number in numbers)
