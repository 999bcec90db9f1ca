"""`recording(model)`: record a step for every op of a forward pass, with numbers or by shapes alone.

Called by `bertcli trace`, its page, the view diff and in Python; steps.py holds the records and prints them.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache, partial
from math import prod
from typing import Any, NamedTuple

import numpy as np

from bertcli.analysis.trace.step_names import HEAD_INPUT, INPUTS, LAYER_INPUT, StepKey, StepNames, names_for, transposed
from bertcli.analysis.trace.steps import ITEM, Account, Call, Multiplier, Step, Value, multiplied, show, stats_of
from bertcli.engine.packing import Packed, batch_of_shapes
from bertcli.engine.pauses import check_wanted
from bertcli.errors import BertcliError
from bertcli.loaded_model import LoadedModel, expect_model
from bertcli.network.after_pooling import Dense, LayerNorm
from bertcli.network.heads import outputs
from bertcli.network.traced_tree import twins
from bertcli.report.terminal import terminal_width
from bertcli.tracing.dispatch import Array, Integers, Module, Op, watched, watching
from bertcli.tracing.traced import Origins, Traced, Weight, named_axes
from bertcli.tracing.tracer import Ran, Tracer

Keep = Callable[[str], bool]
# Numbers of an array that is only a shape: NumPy counts bytes in 63 bits.
MOST_NUMBERS = 1 << 60
LAYER_PATH = re.compile(r"encoder\.layers\.\d+")
ENCODER = ("embeddings", "encoder")
LOGIT_SCORE = "logit_score"  # the path of a layer that is made of two rows of the table of the next token


@contextmanager
def recording(
    model: LoadedModel, *, time: bool = False, stats: bool = False, keep: Keep | None = None
) -> "Iterator[Trace]":
    """Record the ops of what runs inside: `bertcli.trace` without a text. Errors: BertcliError inside another trace."""
    expect_model(model)
    if watched():
        raise BertcliError("A trace is already in progress in this thread: begin another one when it has ended.")
    recorder = Trace(model, time=time, stats=stats, keep=keep)
    with watching(recorder):
        yield recorder


class Trace(Tracer, Account):
    """The trace of a pass, printed as a table: `steps`, one an op; `calls`, one per module; `totals`; kept `arrays`."""

    def __init__(
        self,
        model: LoadedModel,
        *,
        time: bool = False,
        stats: bool = False,
        keep: Keep | None = None,
        shapes_only: bool = False,
    ) -> None:
        super().__init__(model.name, dry=shapes_only or not model.has_weights)
        self._whole, self.sizes = model, model.config.sizes
        self.batch, self.sequence, self.timed = None, None, time
        self.steps, self.consumed = [], {}
        self.calls: list[Call] = []
        self.arrays: dict[str, Array] = {}
        self._stats, self._keep = stats, keep
        # How many steps have a path already, by path: the next one gets a number.
        self._named: dict[str, int] = {}
        # First paths of parameters used since the outermost running module began: used again, they count as tied.
        self._used: set[str] = set()
        # Parameters that are made of others, such as the difference of two rows of a table: they count where those do.
        self._derived: set[str] = set()
        self.register(twins(model.network, names=model.config.aliases))

    def __str__(self) -> str:
        return str(self.document(width=terminal_width()))

    def module(self, module: Module, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
        if self.frame is None:
            self._used.clear()
        if isinstance(module, Dense | LayerNorm):
            self._note_layer(module, *arguments)
        return super().module(module, arguments, keywords)

    def source_of(self, name: str) -> list[Any]:
        return [INPUTS[name]]

    def began(self, batch: Packed) -> None:
        shape = len(self.counts), max(self.counts)
        alike = not self.steps or shape == (self.batch, self.sequence)
        self.batch, self.sequence = shape if alike else (None, None)

    def returned(self, path: str, module: Module, arguments: Sequence[Any], output: Traced) -> None:
        steps = tuple(origin for origin in output.source if isinstance(origin, int))
        self.calls.append(Call(path, output.axes, steps))

    def ran(self, ran: Ran) -> None:
        """Record an op as a step. FLOPs are 2·MACs plus the op's `work` for every number of the result."""
        check_wanted()
        op, output = ran.op, ran.output
        operands = [operand for operand in ran.operands if operand is not None]
        weights = [operand.weight for operand in operands if operand.weight is not None]
        untied = self._first_uses(weights)
        # Before the names, which depend on the field that this notes in the frame.
        path = self._path(op, weights)
        names = self._step_names(ran, operands)
        result = show(names.output, output.axes)
        size = prod(result.shape)
        macs = _macs(ran)
        work = op.work(ran.arguments)
        step = Step(
            index=len(self.steps),
            path=path,
            group=names.group,
            operation=names.operation,
            inputs=tuple(self._inputs(ran, names.weights, untied)),
            output=result,
            params=sum(weight.size for weight in untied),
            macs=macs,
            flops=2 * macs + work * size,
            bytes=ITEM * size,
            op=op.name,
            parameters=tuple(weight.path for weight in weights),
            sources=_sources(operands),
            settings=self._settings(ran),
            multiplier=_multiplier(ran),
            seconds=ran.seconds if self.timed else None,
            stats=stats_of(output.array) if self._stats and not self.dry else None,
        )
        output.source.append(step.index)
        self.steps.append(step)
        if self._keep is not None and not self.dry and self._keep(step.path):
            # A copy, since later ops work in place.
            self.arrays[step.path] = np.array(output.array).reshape(result.shape)

    def _first_uses(self, weights: Sequence[Weight]) -> list[Weight]:
        """Note that parameters are used, and return those that count here.

        A tied parameter, and one that was used before in the running module, count where they were first used.
        """
        own = [weight for weight in weights if weight.home not in self._derived]
        untied = [weight for weight in own if weight.path == weight.home and weight.home not in self._used]
        for weight in own:
            self.consumed[weight.home] = weight.size
            self._used.add(weight.home)
        return untied

    def _step_names(self, ran: Ran, operands: Sequence[Traced]) -> StepNames:
        """The names of an op and its values in the table: step_names.py's, or the op's own where that has none."""
        part = self.frame.path.partition(".")[0] if self.frame else ""
        operand_names = [self._name(operand) for operand in operands]
        names = names_for(self._keys(ran.op), ran.arguments, part, operand_names)
        return names or StepNames("", ran.op.name, ran.op.name)

    def _settings(self, ran: Ran) -> dict[str, Any]:
        """The arguments of an op that are no arrays; True for each vector of parameters that it has."""
        settings: dict[str, Any] = {}
        for name, value in ran.arguments.items():
            if isinstance(value, int | float | str | tuple):
                settings[name] = value
            elif isinstance(value, Traced) and value.weight is not None and value.ndim == 1:
                settings[name] = True
        for name in ("ids", "rows", "starts", "ends"):
            # Which rows are looked up. In a pass by shapes, ids have no memory.
            if name in ran.arguments and not self.dry:
                settings[name] = tuple(ran.arguments[name].array.tolist())
        return settings

    def _inputs(self, ran: Ran, weight_names: Sequence[str], untied: Sequence[Weight]) -> Iterator[Value]:
        """The matrices that an op reads, data before parameters, each with its name.

        `weight_names` are the names of the weights; if there are more of them than weights, the first ones name the
        inputs of the pass that the op reads.
        """
        data, matrices = [], []
        for number, operand in enumerate(ran.operands):
            if operand is None:
                continue
            if operand.weight is None:
                data.append((number, operand))
            elif operand.ndim > 1:
                matrices.append((number, operand))
        names = iter(weight_names)
        inputs_have_names = len(weight_names) > len(matrices)
        for number, operand in data + matrices:
            name, weight = self._name(operand), operand.weight
            axes = multiplied(ran.signature, number, operand.axes) if ran.op.contracts else operand.axes
            if weight is not None:
                name = next(names, name)
                if weight not in untied:
                    name += " (tied)"
            elif _last_step(operand) is None:
                name = next(names, name) if inputs_have_names else name
            elif axes != operand.axes:
                name = transposed(name)
            yield show(name, axes)

    def _name(self, value: Traced) -> str:
        """The name of a value: the parameter's or input's, LAYER_INPUT, HEAD_INPUT, or the name its step gave it."""
        step = _last_step(value)
        if step is None:
            (origin,) = value.source or ("",)
            return origin.path.rpartition(".")[2] if isinstance(origin, Weight) else str(origin)
        layer = self.frame
        while layer is not None and not _is_layer(layer.path):
            layer = layer.outer
        x_and_context = layer.arguments[:2] if layer is not None else ()
        if any(value.source is getattr(given, "source", None) for given in x_and_context):
            return LAYER_INPUT
        made_by_encoder = self.steps[step].path.startswith(ENCODER)
        read_by_encoder = self.frame is not None and self.frame.path.startswith(ENCODER)
        if made_by_encoder and not read_by_encoder:
            return HEAD_INPUT
        return self.steps[step].output.name

    def _note_layer(self, module: Dense | LayerNorm, vectors: Array) -> None:
        """Register the layers after the network when the first one runs: their files have been read only then."""
        if not self.knows(module) and self._whole.path is not None:
            width = 0
            for path, layer in self._layers():
                names = {"inputs": pooled(width), "outputs": pooled(width + 1)}
                self.register(twins(layer, path, names))
                width += isinstance(layer, Dense)
                if path == LOGIT_SCORE:
                    self._derived.add(f"{path}.weight")
        if self.value_of(vectors) is None:
            # Pooling is no op, so nothing has recorded its result.
            axes = named_axes(["B", pooled(0)], vectors.shape)
            self.note(vectors, Traced(vectors, axes, Origins(["Pooled vector"])))

    def _layers(self) -> Iterator[tuple[str, Dense | LayerNorm]]:
        """Yield the kind's layers by path, and what the scores of pairs make of the network's own parameters."""
        layers = self._whole.kind.layers
        yield from layers.items()
        scored = self._whole.pair_scores
        known = {id(layer) for layer in layers.values()}
        for layer in () if scored is None else scored.layers:
            if id(layer) not in known:
                yield LOGIT_SCORE, layer

    def _path(self, op: Op[Any], used: Sequence[Weight]) -> str:
        """The path of an op: the parameter it uses (for `weight` the module itself), else the module and the op.

        A path that is already taken gets a number: `encoder.layers.0.add`, `encoder.layers.0.add_2`.
        """
        frame = self.frame
        name = op.name
        if frame is not None and used:
            frame.touched = frame.field_of(used[0].path)
            name = "" if frame.touched == "weight" else frame.touched
        path = ".".join(filter(None, (frame.path if frame else "", name)))
        self._named[path] = count = self._named.get(path, 0) + 1
        return path if count == 1 else f"{path}_{count}"

    def _keys(self, op: Op[Any]) -> list[StepKey]:
        """The keys under which step_names.py may have names for an op, the most specific first."""
        frame = self.frame
        if frame is None:
            return [(None, "", op.name)]
        keys: list[StepKey] = [(type(frame.module), frame.touched, op.name)]
        if frame.outer is not None:
            keys.append((type(frame.outer.module), frame.outer.field_of(frame.path), op.name))
        return [*keys, (type(frame.module), "", op.name)]


def pooled(layer: int) -> str:
    """The symbol of the input of a Dense layer after the pooling; its output has the next layer's symbol."""
    return "E" + "".join(chr(ord("₀") + int(digit)) for digit in str(layer))


@lru_cache(maxsize=4096)
def _is_layer(path: str) -> bool:
    """True for the path of an encoder's layer."""
    return LAYER_PATH.fullmatch(path) is not None


def _macs(ran: Ran) -> int:
    """The multiply-accumulates of an op: by its own formula, else of a product the product of its axes' sizes.

    Axes, `contracts`, `macs` and `work` stand with each op, in network/ops.py and network/position_ops.py.
    """
    if ran.op.macs:
        return ran.op.macs(ran.sizes, ran.arguments)
    return prod(ran.sizes.values()) if ran.op.contracts else 0


def _multiplier(ran: Ran) -> Multiplier | None:
    """The parameter that a product multiplies by, which is its second operand; its outputs are axes of the result."""
    operand = ran.operands[1] if ran.op.contracts else None
    if operand is None or operand.weight is None:
        return None
    words = ran.signature.inputs[1]
    outputs = [place for place, word in enumerate(words) if word in ran.signature.output]
    inputs = [place for place, word in enumerate(words) if word not in ran.signature.output]
    return Multiplier(operand.weight.path, (*outputs, *inputs), len(inputs))


def _sources(operands: Sequence[Traced]) -> tuple[int | str, ...]:
    """The origins of operands, each once: numbers of steps, paths of parameters. Inputs of the pass are left out."""
    sources: dict[int | str, None] = {}
    for operand in operands:
        for origin in operand.source:
            if isinstance(origin, Weight):
                sources[origin.home] = None
            elif not isinstance(origin, str):
                sources[origin] = None
    return tuple(sources)


def _last_step(value: Traced) -> int | None:
    """The last step that wrote into a value; None for a parameter or an input of the pass."""
    return next((origin for origin in reversed(value.source) if isinstance(origin, int)), None)


class Inputs(NamedTuple):
    """The input of a pass: sentences of equal length, and the first of them as text.

    ids, segments [batch, token]. pieces: tokens of the first sentence; of random ids their numbers. mask: the id of the
    mask token, None if there is none, and for random ids. spell: a token id as text. paired: there is a second text.
    """

    ids: Integers
    segments: Integers
    pieces: list[str]
    mask: int | None = None
    spell: Callable[[int], str] = "#{}".format
    paired: bool = False
    text: str = ""


def inputs_of_text(model: LoadedModel, text: str, pair: str | None = None) -> Inputs:
    """Tokenize a text or a pair as input of a pass; what is too long is cut, with a warning."""
    from bertcli.analysis.texts import spelled, tokens_of

    tokens = tokens_of(model, text, pair)
    ids, segments = np.array([tokens.ids]), np.array([tokens.segments])
    mask = model.tokenizer.special_id("mask")
    return Inputs(ids, segments, list(tokens.pieces), mask, partial(spelled, model), pair is not None, text)


def random_inputs(model: LoadedModel, batch: int, sequence: int) -> Inputs:
    """Random token ids, the same every time. Errors: BertcliError for a size that the model cannot take."""
    model.config.check_input(batch, sequence)
    generator = np.random.default_rng(0)
    ids = generator.integers(0, model.config.vocab_size, (batch, sequence))
    pieces = [f"#{id}" for id in ids[0]]
    return Inputs(ids, np.zeros_like(ids), pieces)


def run_shapes(model: LoadedModel, batch: int, sequence: int) -> Trace:
    """Trace a pass through every prediction head by shapes alone: no weights, and next to no time or memory.

    Errors: BertcliError for a size that the model cannot take or NumPy cannot count.
    """
    model.config.check_input(batch, sequence)
    if batch * model.config.num_attention_heads * sequence**2 > MOST_NUMBERS:
        raise BertcliError(
            f"{batch:,} sentences of {sequence:,} tokens have more attention weights than can be counted: give fewer "
            "(--batch-size, --seq-len)."
        )
    recorder = Trace(model, shapes_only=True)
    with watching(recorder):
        outputs(model.network, batch_of_shapes(batch, sequence))
    return recorder
