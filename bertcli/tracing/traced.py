"""The values of a watched pass: what stands in the place of arrays, what their axes are, and where they came from."""

from collections.abc import Sequence
from math import prod
from typing import Any, Literal, NamedTuple, cast

from bertcli.tracing.dispatch import StandIn, divided

BATCH, STARTS, UNKNOWN, ONE = "B", "B+1", "N", "1"
GROUP, ALL = "ᵢ", "Σ"
UNNAMED = ""  # a factor that gets its name from the op's signature


class Factor(NamedTuple):
    """One symbol and its size.

    In addition to the glossary in network/module.py, the symbols are

        R    rows asked for in a sentence, if not all are
        ΣS   tokens of sentences of different lengths, end to end (ΣR likewise)
        Bᵢ   sentences of one length in a batch with several, Sᵢ that length (Rᵢ likewise)
        B+1  where sentences begin, and where the last one ends
        E₀   numbers of a pooled vector; E₁, E₂ … those of the Dense layers after the pooling
        N    an axis about which nothing is known
    """

    symbol: str
    size: int


Axis = tuple[Factor, ...]  # a product: rows of a packed batch are B·S, heads side by side A·D
Axes = tuple[Axis, ...]


def extent(axis: Axis) -> int:
    """Size of an axis."""
    return prod(factor.size for factor in axis)


def named_axes(symbols: Sequence[str], shape: Sequence[int]) -> Axes:
    """Axes of one symbol each."""
    return tuple((Factor(symbol, size),) for symbol, size in zip(symbols, shape, strict=True))


def unknown(shape: Sequence[int]) -> Axes:
    """Axes about which nothing is known."""
    return named_axes([UNKNOWN] * len(shape), shape)


class Weight(NamedTuple):
    """A parameter as the source of a value: its path, its size in numbers, and the first path of its array, if tied."""

    path: str
    size: int
    home: str


class View(NamedTuple):
    """A step from a value to a view of it, with the axes before and after.

    `numbers` are the axis, start and stop of a slice, an axis and an index, the order of a transposition.
    """

    kind: Literal["slice", "index", "divide", "transpose"]
    before: Axes
    after: Axes
    numbers: tuple[int, ...] = ()


class Origins(list[Any]):
    """What a watcher knows of a value's origin. `over` is the op that has written over the value, if one has."""

    over: str | None = None


class Traced(StandIn):
    """A value of a watched pass: its array, what each of its axes stands for, and where it came from.

    array: its numbers, or in a pass by shapes an array without memory. source: all views of the value share it. views:
    the steps from the whole value to this one.
    """

    __slots__ = ("axes", "source", "views")
    __array_ufunc__ = None  # NumPy's functions refuse it

    def __init__(self, array: Any, axes: Axes, source: Origins, views: tuple[View, ...] = ()) -> None:
        self.array = array
        self.axes = axes
        self.source = source
        self.views = views

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError(f"A value of shape {self.shape} was computed without an op, so a trace cannot see it.")

    @property
    def weight(self) -> Weight | None:
        """The parameter that it is, if it is one."""
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
        """Slices without a step, or one number."""
        if isinstance(index, int):
            return self._view("index", self.array[index], self.axes[1:], 0, index)
        view = self
        for number, part in enumerate(index if isinstance(index, tuple) else (index,)):
            start, stop, step = part.indices(view.shape[number])
            if step != 1:
                raise RuntimeError(f"A view in steps of {step} is something that no graph can have.")
            if stop - start < view.shape[number]:
                axes = (*view.axes[:number], _cut(view.axes[number], start, stop), *view.axes[number + 1 :])
                view = view._view("slice", view.array[(slice(None),) * number + (part,)], axes, number, start, stop)
        return view

    def transpose(self, *order: int) -> "Traced":
        """The axes in another order."""
        return self._view("transpose", self.array.transpose(order), tuple(self.axes[axis] for axis in order), *order)

    def divided(self, axis: int, count: int) -> "Traced":
        """See the function of this name."""
        axes = (*self.axes[:axis], *_divided(self.axes[axis], count), *self.axes[axis + 1 :])
        return self._view("divide", divided(self.array, axis, count), axes)

    def like(self, empty: Any, features: str) -> "Traced":
        """See `traced_like`."""
        return Traced(empty, (self.axes[0], (Factor(features, self.shape[1]),)), Origins())

    def _view(self, kind: Any, array: Any, axes: Axes, *numbers: int) -> "Traced":
        return Traced(array, axes, self.source, (*self.views, View(kind, self.axes, axes, numbers)))


def _cut(axis: Axis, start: int, stop: int) -> Axis:
    """Some of an axis: some of a batch's sentences, rows that are not yet told apart, or an unknown part."""
    (symbol, _), inner, count = axis[0], axis[1:], stop - start
    if symbol.startswith(ALL):
        return (Factor(symbol, count),)
    if symbol == STARTS:
        return (Factor(BATCH, count),)
    if symbol == BATCH and start % extent(inner) == 0 == count % extent(inner):
        return (Factor(BATCH + GROUP, count // extent(inner)), *inner)
    return (Factor(UNKNOWN, count),)


def _divided(axis: Axis, count: int) -> Axes:
    """The two axes that an axis is divided into."""
    (symbol, size), inner, rest = axis[0], axis[1:], extent(axis) // count
    if symbol.startswith(ALL):  # some rows of sentences of different lengths are those of one length
        return named_axes([BATCH + GROUP, symbol.removeprefix(ALL) + GROUP], [count, rest])
    if symbol in (BATCH, BATCH + GROUP) and size == count:
        return ((axis[0],), inner or (Factor(ONE, 1),))
    if symbol == UNKNOWN or inner:
        return unknown([count, rest])
    return named_axes(symbol.split("·") if "·" in symbol else [UNNAMED, UNNAMED], [count, rest])
