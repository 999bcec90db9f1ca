"""Which module feeds which, and the shape of each module's output, from a pass by shapes."""

from collections.abc import Collection, Iterable, Sequence
from typing import Any

from bertcli.engine.packing import batch_of_shapes
from bertcli.loaded_model import LoadedModel
from bertcli.network.heads import outputs
from bertcli.network.traced_tree import twins
from bertcli.tracing.dispatch import Module, watching
from bertcli.tracing.traced import Axes, Traced, Weight, extent
from bertcli.tracing.tracer import Ran, Tracer

# A small input is enough for the pass by shapes: it computes no numbers.
SENTENCES, TOKENS = 2, 3

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

    def __init__(self, model: LoadedModel, displayed: Collection[str]) -> None:
        super().__init__(model.name, dry=True)
        self.register(twins(model.network))
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


def flow_of(model: LoadedModel, displayed: Collection[str]) -> Flow:
    """Run a pass by shapes and return which of the `displayed` modules feeds which."""
    flow = Flow(model, displayed)
    with watching(flow):
        outputs(model.network, batch_of_shapes(SENTENCES, min(TOKENS, model.config.max_tokens)))
    return flow


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
