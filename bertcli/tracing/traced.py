"""Traced values: the arrays of a watched pass with symbols for their axes, and the parameters or ops they come from.

tracer.py makes them; the recorder of `trace` and the ONNX exporter read them.
"""

from collections.abc import Sequence
from math import prod
from typing import Any, Literal, NamedTuple, cast

from bertcli.tracing.dispatch import StandIn, divided

# The symbols are explained at Factor.
BATCH, STARTS, UNKNOWN, ONE = "B", "B+1", "N", "1"
GROUP, ALL = "ᵢ", "Σ"
# A factor that gets its name from the op's signature.
UNNAMED = ""


class Factor(NamedTuple):
    """A factor of an axis: its symbol and its size.

    In addition to the glossary in network/axes.py, the symbols are

        R    requested rows of a sentence, if not all are
        ΣS   tokens of sentences of different lengths, end to end (ΣR likewise)
        Bᵢ   sentences of one length in a batch with several, Sᵢ that length (Rᵢ likewise)
        B+1  where sentences begin, and where the last one ends
        E₀   numbers of a pooled vector; E₁, E₂ … those of the Dense layers after the pooling
        N    an axis whose meaning is unknown
    """

    symbol: str
    size: int


# A product: rows of a packed batch are B·S, heads side by side A·D.
Axis = tuple[Factor, ...]
Axes = tuple[Axis, ...]


def extent(axis: Axis) -> int:
    """Size of an axis."""
    return prod(factor.size for factor in axis)


def named_axes(symbols: Sequence[str], shape: Sequence[int]) -> Axes:
    """Make axes that have one symbol each."""
    return tuple((Factor(symbol, size),) for symbol, size in zip(symbols, shape, strict=True))


def unknown(shape: Sequence[int]) -> Axes:
    """Make axes of unknown meaning."""
    return named_axes([UNKNOWN] * len(shape), shape)


class Weight(NamedTuple):
    """A parameter as the source of a value: its path, and its size in numbers.

    `home` is the first path of the parameter's array; it differs from `path` for a tied parameter.
    """

    path: str
    size: int
    home: str


class ArrayView(NamedTuple):
    """A step from a value to a view of it, with the axes before and after.

    `numbers`: axis, start and stop of a slice; axis and index of an index; the order of axes of a transposition.
    """

    operation: Literal["slice", "index", "divide", "transpose"]
    before: Axes
    after: Axes
    numbers: tuple[int, ...] = ()


class Origins(list[Any]):
    """The origins of a value, as its tracer records them. `over` names the op that has overwritten the value."""

    over: str | None = None


class Traced(StandIn):
    """A value of a watched pass: its array, the symbols of its axes, and its origins.

    array: the numbers; in a dry run an array without memory. source: shared by all views of a value. views: the steps
    from the whole value to this view.
    """

    __slots__ = ("axes", "source", "views")
    __array_ufunc__ = None  # NumPy's functions then raise TypeError instead of computing with it

    def __init__(self, array: Any, axes: Axes, source: Origins, views: tuple[ArrayView, ...] = ()) -> None:
        self.array = array
        self.axes = axes
        self.source = source
        self.views = views

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError(f"A value of shape {self.shape} was computed without an op, so a trace cannot see it.")

    @property
    def weight(self) -> Weight | None:
        """The parameter that this value is, or None."""
        return next((origin for origin in self.source if isinstance(origin, Weight)), None)

    @property
    def shape(self) -> tuple[int, ...]:
        return cast(tuple[int, ...], self.array.shape)

    @property
    def ndim(self) -> int:
        return len(self.axes)

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, index: Any) -> "Traced":
        """Take slices without a step, or one index of the first axis."""
        if isinstance(index, int):
            return self._view("index", self.array[index], self.axes[1:], 0, index)
        view = self
        for axis, given in enumerate(index if isinstance(index, tuple) else (index,)):
            size = view.shape[axis]
            start, stop, step = given.indices(size)
            if step != 1:
                raise RuntimeError(f"A view in steps of {step} is something that no graph can have.")
            takes_all = stop - start == size
            if not takes_all:
                axes = _with_axis(view.axes, axis, (_cut(view.axes[axis], start, stop),))
                array = view.array[(slice(None),) * axis + (given,)]
                view = view._view("slice", array, axes, axis, start, stop)
        return view

    def transpose(self, *order: int) -> "Traced":
        """Reorder the axes."""
        axes = tuple(self.axes[axis] for axis in order)
        return self._view("transpose", self.array.transpose(order), axes, *order)

    def divided(self, axis: int, count: int) -> "Traced":
        """Divide an axis, as `dispatch.divided` does."""
        axes = _with_axis(self.axes, axis, _divided(self.axes[axis], count))
        return self._view("divide", divided(self.array, axis, count), axes)

    def like(self, empty: Any, features: str) -> "Traced":
        """Wrap `empty`, as `dispatch.traced_like` does."""
        return Traced(empty, (self.axes[0], (Factor(features, self.shape[1]),)), Origins())

    def _view(self, operation: Any, array: Any, axes: Axes, *numbers: int) -> "Traced":
        return Traced(array, axes, self.source, (*self.views, ArrayView(operation, self.axes, axes, numbers)))


def _with_axis(axes: Axes, number: int, others: Axes) -> Axes:
    """Axes with one of them replaced by others."""
    return (*axes[:number], *others, *axes[number + 1 :])


def _cut(axis: Axis, start: int, stop: int) -> Axis:
    """Name the slice of an axis: whole sentences of a batch, rows of several sentences, or an unknown part."""
    symbol, inner = axis[0].symbol, axis[1:]
    count = stop - start
    if symbol.startswith(ALL):
        return (Factor(symbol, count),)
    if symbol == STARTS:
        return (Factor(BATCH, count),)
    rows = extent(inner)
    takes_whole_sentences = start % rows == 0 and count % rows == 0
    if symbol == BATCH and takes_whole_sentences:
        return (Factor(BATCH + GROUP, count // rows), *inner)
    return (Factor(UNKNOWN, count),)


def _divided(axis: Axis, count: int) -> Axes:
    """Name the two axes that an axis is divided into."""
    (symbol, size), inner = axis[0], axis[1:]
    rest = extent(axis) // count
    # Only a group of sentences of one length can be divided into sentences and tokens.
    if symbol.startswith(ALL):
        return named_axes([BATCH + GROUP, symbol.removeprefix(ALL) + GROUP], [count, rest])
    if symbol in (BATCH, BATCH + GROUP) and size == count:
        return ((axis[0],), inner or (Factor(ONE, 1),))
    if symbol == UNKNOWN or inner:
        return unknown([count, rest])
    return named_axes(symbol.split("·") if "·" in symbol else [UNNAMED, UNNAMED], [count, rest])
