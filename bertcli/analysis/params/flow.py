"""The data flow of a model: each module's output shape and which modules feed it, from a pass by shapes."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any, NamedTuple

from bertcli.engine.seam import Axes, Module, Traced, Weight, extent, watching
from bertcli.engine.tracer import Ran, Tracer, batch_of_shapes
from bertcli.model import Model
from bertcli.models.config import Config
from bertcli.network.heads import outputs
from bertcli.network.module import twins

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


class Flow(Tracer):
    """The output shape of every module of a pass and, for the `shown` ones (paths), which of them feed it.

    Every value is followed from the modules that make it to those that use it. An op without parameters passes on the
    sources of its operands; one with parameters is a source itself. So a norm after a residual sum is fed by both sides
    of the sum, whichever module contains the sum. Work inside a module that is not shown is attributed to the nearest
    shown module around it.
    """

    def __init__(self, model: Model, shown: Collection[str]) -> None:
        super().__init__(model.name, dry=True)
        self.take_in(twins(model.network))
        self._shown = frozenset(shown)
        self._shapes: dict[str, list[Shape]] = {}  # of the results of a module, call by call
        self._given: dict[str, Paths] = {}  # sources of a module's arguments
        self._work: dict[str, Paths] = {"": ()}  # sources of what a module's own ops work on
        with watching(self):
            outputs(model.network, batch_of_shapes(SENTENCES, min(TOKENS, model.config.max_tokens)))

    @property
    def shapes(self) -> dict[str, Shape]:
        """Of a module that ran several times the first output, or the first for tokens, if it had other input, too."""
        return {
            path: next((shape for shape in several if "B" in shape), several[0])
            for path, several in self._shapes.items()
        }

    @property
    def inputs(self) -> dict[str, Paths]:
        """The shown modules that feed each of them."""
        return {path: self._work[path] or self._given[path] for path in self._given}

    def ran(self, ran: Ran) -> None:
        """Note where the result of an op comes from."""
        operands = [one for one in ran.operands if one is not None]
        sources = self._sources(operands)
        if any(one.weight for one in operands):
            here = nearest(self.frame.path if self.frame else "", self._shown)
            self._work_on(here, sources)
            sources = (here,)
        ran.output.source[:] = dict.fromkeys((*ran.output.source, *sources))

    def returned(self, path: str, module: Module, arguments: Sequence[Any], output: Traced) -> None:
        """Note the shape of a result; that of a shown module comes from it, unless a module inside made it."""
        self._shapes.setdefault(path, []).append(_shape(output.axes))
        if path not in self._shown:
            return
        self._given.setdefault(path, self._sources(one for one in arguments if isinstance(one, Traced)))
        self._work.setdefault(path, ())
        sources = self._sources([output])
        if len(sources) != 1 or not is_within(sources[0], path):
            self._work_on(path, sources)
            output.source[:] = [path]

    def _work_on(self, path: str, sources: Paths) -> None:
        found = dict.fromkeys((*self._work.get(path, ()), *(source for source in sources if source != path)))
        self._work[path] = tuple(found)

    def _sources(self, values: Iterable[Traced]) -> Paths:
        """The modules that values, among them parameters, come from."""
        several = (one for value in values for one in value.source)
        return tuple(
            dict.fromkeys(nearest(one.home, self._shown) if isinstance(one, Weight) else one for one in several)
        )


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
