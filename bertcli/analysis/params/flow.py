"""The data flow of a model: each module's output shape and which modules feed it, read from the trace of a pass."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import NamedTuple

from bertcli.analysis.trace.steps import Call, Step
from bertcli.analysis.trace.values import Axes, extent
from bertcli.analysis.trace.watcher import run_shapes
from bertcli.model import Model
from bertcli.models.config import Config

SENTENCES, TOKENS = 2, 3  # of the pass, which computes no numbers

Shape = tuple[int | str, ...]  # "B" and "S" stand for the batch and the tokens of a sentence
IDS: Shape = ("B", "S")
Paths = tuple[str, ...]


class Input(NamedTuple):
    """The size of the input; a batch of None means any size."""

    tokens: int
    batch: int | None = None

    @classmethod
    def checked(cls, config: Config, seq_len: int | None, batch_size: int | None) -> Input:
        """An input that the model has positions for; by default it uses all of them. Raises BertcliError."""
        config.check_input(batch_size, seq_len)
        return cls(seq_len or config.max_tokens, batch_size)

    def text(self, shape: Shape) -> str:
        """`(None, 512, 768)`, as the Keras summary writes it."""
        sizes = {"B": self.batch, "S": self.tokens}
        return f"({', '.join(str(sizes[axis] if isinstance(axis, str) else axis) for axis in shape)})"


class Flow(NamedTuple):
    """The output shape of every module that ran and, for the `shown` ones, which of them feed it."""

    shapes: dict[str, Shape]
    inputs: dict[str, Paths]


def flow(model: Model, shown: Collection[str]) -> Flow:
    """Run a model by its shapes, heads included. `shown` are paths of modules.

    Work inside a module that is not shown is attributed to the nearest shown module around it.
    """
    trace = run_shapes(model, SENTENCES, min(TOKENS, model.config.max_tokens))
    followed = _Follower(frozenset(shown))
    for event in _in_order(trace.steps, trace.calls):
        if isinstance(event, Step):
            followed.step(event)
        else:
            followed.call(event)
    # Of a module that ran several times the first output counts, or the first for tokens, if it had other input, too.
    shapes = [(call.path, _shape(call.axes)) for call in reversed(trace.calls) if call.axes is not None]
    shapes.sort(key=lambda one: "B" in one[1])
    return Flow(dict(shapes), {path: followed.work[path] or followed.given[path] for path in followed.given})


def _in_order(steps: list[Step], calls: list[Call]) -> Iterator[Step | Call]:
    """Steps as they ran, and each call of a module where it ended."""
    done = 0
    for call in calls:
        yield from steps[done : call.stop]
        done = call.stop
        yield call
    yield from steps[done:]


class _Follower:
    """Follows every result from the modules that make it to those that use it.

    An op without parameters passes on the sources of its arguments; one with parameters is a source itself. So a norm
    after a residual sum is fed by both sides of the sum, whichever module contains the sum.
    """

    def __init__(self, shown: frozenset[str]) -> None:
        self.shown = shown
        self.given: dict[str, Paths] = {}  # sources of a module's arguments
        self.work: dict[str, Paths] = {"": ()}  # sources of what a module's own ops work on
        self.sources: dict[int, Paths] = {}  # of every step's result

    def step(self, step: Step) -> None:
        here = nearest(step.module, self.shown)
        sources = self._joined(step.sources)
        if step.parameters:
            self._work_on(here, sources)
            sources = (here,)
        self.sources[step.index] = sources

    def call(self, call: Call) -> None:
        if call.path not in self.shown:
            return
        self.given.setdefault(call.path, self._joined(call.given))
        self.work.setdefault(call.path, ())
        sources = self._joined(call.made)
        if len(sources) != 1 or not is_within(sources[0], call.path):  # else a module inside it made the result
            self._work_on(call.path, sources)
            self.sources |= dict.fromkeys(call.made, (call.path,))

    def _work_on(self, path: str, sources: Paths) -> None:
        found = dict.fromkeys((*self.work.get(path, ()), *(source for source in sources if source != path)))
        self.work[path] = tuple(found)

    def _joined(self, sources: Iterable[int | str]) -> Paths:
        """The modules that results of steps, and parameters, come from."""
        several = (self.sources[one] if isinstance(one, int) else (nearest(one, self.shown),) for one in sources)
        return tuple(dict.fromkeys(path for paths in several for path in paths))


def nearest(path: str, shown: Collection[str]) -> str:
    """The innermost of the `shown` paths that is `path` or contains it; "" is the whole model."""
    while path and path not in shown:
        path = path.rpartition(".")[0]
    return path


def is_within(path: str, outer: str) -> bool:
    """Whether `path` lies inside the module at `outer`."""
    return path != outer and (not outer or path.startswith(f"{outer}."))


def _shape(axes: Axes) -> Shape:
    """Axes with letters for the sizes that depend on the input."""
    letters = {factor.symbol for factor in axes[0]}
    rows: Shape = tuple(letter for letter in IDS if letter in letters) or (extent(axes[0]),)
    return (*rows, *map(extent, axes[1:]))
