"""Which module feeds which, and the shape of each module's output, from a pass by shapes."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from bertcli.engine.packing import batch_of_shapes
from bertcli.loaded_model import LoadedModel
from bertcli.network.heads import Network, outputs
from bertcli.network.module import fields_of
from bertcli.network.traced_tree import twins
from bertcli.tracing.dispatch import Module, watching
from bertcli.tracing.traced import Axes, Traced, Weight, extent
from bertcli.tracing.tracer import Ran, Tracer

# A small input is enough for the pass by shapes: it computes no numbers.
SENTENCES, TOKENS = 2, 3
LAYERS = "encoder.layers."
RUNNING = 4  # of layers that are alike

Shape = tuple[int | str, ...]  # "B" and "S" stand for the batch and the tokens of a sentence
IDS: Shape = ("B", "S")
Paths = tuple[str, ...]


class Flow(Tracer):
    """The output shape of every module of a pass and, for the `displayed` ones (paths), which of them feed it.

    Every value is followed from the modules that make it to those that use it. An op without parameters passes on the
    sources of its operands; one with parameters is a source itself. So a norm after a residual sum is fed by both sides
    of the sum, whichever module contains the sum. Work inside a module that is not shown is attributed to the nearest
    shown module around it.
    """

    def __init__(self, model: str, network: Network, displayed: Collection[str]) -> None:
        super().__init__(model, dry=True)
        self.register(twins(network))
        self._displayed = frozenset(displayed)
        # By a module's path: of its results, call by call.
        self._shapes: dict[str, list[Shape]] = {}
        # Sources of a module's arguments.
        self._arguments: dict[str, Paths] = {}
        # Sources of what a module's own ops work on.
        self._work: dict[str, Paths] = {"": ()}

    @property
    def shapes(self) -> dict[str, Shape]:
        """Output shapes by module path: of several outputs the first with a batch axis, else the first."""
        shapes_of = {}
        for path, shapes in self._shapes.items():
            with_batch = [shape for shape in shapes if "B" in shape]
            shapes_of[path] = (with_batch or shapes)[0]
        return shapes_of

    @property
    def inputs(self) -> dict[str, Paths]:
        """The displayed modules that feed each of them."""
        return {path: self._work[path] or arguments for path, arguments in self._arguments.items()}

    def ran(self, ran: Ran) -> None:
        """Note where the result of an op comes from."""
        operands = [operand for operand in ran.operands if operand is not None]
        sources = self._sources(operands)
        if any(operand.weight for operand in operands):
            here = nearest(self.frame.path if self.frame else "", self._displayed)
            self._work_on(here, sources)
            sources = (here,)
        ran.output.source[:] = dict.fromkeys((*ran.output.source, *sources))

    def returned(self, path: str, module: Module, arguments: Sequence[Any], output: Traced) -> None:
        """Note the shape of a result; that of a shown module comes from it, unless a module inside made it."""
        self._shapes.setdefault(path, []).append(_shape(output.axes))
        if path not in self._displayed:
            return
        self._arguments.setdefault(path, self._sources(value for value in arguments if isinstance(value, Traced)))
        self._work.setdefault(path, ())
        sources = self._sources([output])
        if len(sources) != 1 or not is_within(sources[0], path):
            self._work_on(path, sources)
            output.source[:] = [path]

    def _work_on(self, path: str, sources: Paths) -> None:
        before = self._work.get(path, ())
        others = [source for source in sources if source != path]
        self._work[path] = tuple(dict.fromkeys([*before, *others]))

    def _sources(self, values: Iterable[Traced]) -> Paths:
        """The modules that values, among them parameters, come from."""
        paths = []
        for value in values:
            for origin in value.source:
                paths.append(nearest(origin.home, self._displayed) if isinstance(origin, Weight) else origin)
        return tuple(dict.fromkeys(paths))


class ModuleFlow(NamedTuple):
    """By the paths of a model's modules their output shapes, and of those that are displayed what feeds them."""

    shapes: Mapping[str, Shape]
    inputs: Mapping[str, Paths]


def connections(model: LoadedModel, displayed: Collection[str]) -> ModuleFlow:
    """Run a pass by shapes, and return which of the `displayed` modules feeds which.

    If all layers but perhaps the first are alike, the first three and the last run: each is fed by the one before, so
    the third shows what those between it and the last would.
    """
    network = model.network
    layers: tuple[Any, ...] = getattr(network.encoder, "layers", ())
    between = len(layers) - RUNNING
    if between <= 0 or not all(alike(layers[1], layer) for layer in layers[2:]):
        flow = _flow(model, network, displayed)
        return ModuleFlow(flow.shapes, flow.inputs)
    few = (*layers[: RUNNING - 1], layers[-1])
    shown = {path for path in displayed if _layer(path) < RUNNING}
    flow = _flow(model, replace(network, encoder=replace(network.encoder, layers=few)), shown)
    shapes: dict[str, Shape] = {}
    for path, shape in flow.shapes.items():
        for step in _steps(path, between):
            shapes[_later(path, step)] = shape
    inputs: dict[str, Paths] = {}
    for path, sources in flow.inputs.items():
        for step in _steps(path, between):
            # Outside of the layers only the last of them feeds a module.
            of_layer = between if _layer(path) < 0 else step
            inputs[_later(path, step)] = tuple(_later(source, of_layer) for source in sources)
    return ModuleFlow(shapes, inputs)


def _flow(model: LoadedModel, network: Network, displayed: Collection[str]) -> Flow:
    flow = Flow(model.name, network, displayed)
    with watching(flow):
        outputs(network, batch_of_shapes(SENTENCES, min(TOKENS, model.config.max_tokens)))
    return flow


def alike(one: Module, other: Module) -> bool:
    """True if two modules differ in their numbers alone."""
    if one is other or type(one) is not type(other):
        return False
    for item in fields_of(type(one)):
        values = getattr(one, item.name), getattr(other, item.name)
        if item.meta["kind"] == "part" and None not in values:
            same = alike(*values)
        elif item.meta["kind"] == "parts":
            same = len(values[0]) == len(values[1]) and all(map(alike, *values))
        elif item.meta["kind"] == "parameter" and not any(value is None for value in values):
            same = values[0].shape == values[1].shape
        else:
            same = values[0] == values[1]
        if not same:
            return False
    return True


def _layer(path: str) -> int:
    """The number of the layer that a module is in; -1 outside of the layers."""
    number, _, _ = path.removeprefix(LAYERS).partition(".")
    return int(number) if path.startswith(LAYERS) else -1


def _steps(path: str, between: int) -> range:
    """How many layers later the modules are for which one of the few layers stands, with `between` that do not run."""
    if _layer(path) == RUNNING - 1:
        return range(between, between + 1)
    return range(between + 1) if _layer(path) == RUNNING - 2 else range(1)


def _later(path: str, step: int) -> str:
    """The path of the same module so many layers later; outside of the layers the path itself."""
    if not path.startswith(LAYERS):
        return path
    number, dot, inner = path.removeprefix(LAYERS).partition(".")
    return f"{LAYERS}{int(number) + step}{dot}{inner}"


def nearest(path: str, displayed: Collection[str]) -> str:
    """The innermost of the `displayed` paths that is `path` or contains it; "" is the whole model."""
    while path and path not in displayed:
        path = path.rpartition(".")[0]
    return path


def is_within(path: str, outer: str) -> bool:
    """True if `path` lies inside the module at `outer`, not if it is that module."""
    return path != outer and (not outer or path.startswith(f"{outer}."))


def _shape(axes: Axes) -> Shape:
    """Axes with letters for the sizes that depend on the input."""
    symbols = {factor.symbol for factor in axes[0]}
    rows: Shape = tuple(letter for letter in IDS if letter in symbols)
    if not rows:
        rows = (extent(axes[0]),)
    return (*rows, *map(extent, axes[1:]))
