"""The seam: every op and every module is called through one place, where a watcher can take the call.

Without a watcher a call costs a tenth of a microsecond more than the function. Watchers that follow values (`tracer`)
run the pass with `Traced` values in place of arrays. A traced value is not an array: it has the few views that modules
make and nothing else, so that whatever is computed without an op is an error, not something that goes unseen.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from math import prod
from typing import (
    TYPE_CHECKING,
    Any,
    ClassVar,
    Generic,
    Literal,
    NamedTuple,
    ParamSpec,
    Protocol,
    TypeVar,
    cast,
    dataclass_transform,
)

from bertcli.lean import lean_dataclass

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.float32]
    Integers = NDArray[np.integer[Any]]
else:
    Array = Integers = Any  # field types are resolved when a tree is built; that needs no NumPy

P = ParamSpec("P")
A = TypeVar("A")  # an array, or a traced value in its place


class Watcher(Protocol):
    """Receives every call at the seam and returns its result, usually by making the call and recording it."""

    def op(self, op: "Op[Any]", arguments: tuple[Any, ...], keywords: dict[str, Any]) -> "Array": ...

    def module(self, module: "Module", arguments: tuple[Any, ...], keywords: dict[str, Any]) -> "Array": ...


# A context variable, so that a thread can be watched without the others.
_current: ContextVar[Watcher | None] = ContextVar("watcher", default=None)


@contextmanager
def watching(watcher: Watcher) -> Iterator[None]:
    """Every op and module called in this context passes through `watcher`."""
    before = _current.set(watcher)
    try:
        yield
    finally:
        _current.reset(before)


def watched() -> bool:
    """True while a watcher is set; an op must then not be split into several for the sake of the cache."""
    return _current.get() is not None


@dataclass_transform(frozen_default=True, eq_default=False)
class Module:
    """Part of a model: a frozen dataclass of arrays, modules and settings, and a `forward` that uses them.

    Subclasses become dataclasses by themselves; of an `abstract` one the annotations are not fields.
    """

    forward: "ClassVar[Callable[..., Array]]"

    def __init_subclass__(cls, *, abstract: bool = False) -> None:
        super().__init_subclass__()
        if not abstract:
            lean_dataclass(cls)

    def __call__(self, *args: Any, **kwargs: Any) -> "Array":
        watcher = _current.get()
        if watcher is None:
            return self.forward(*args, **kwargs)
        return watcher.module(self, args, kwargs)


def shape_only(shape: tuple[int, ...], dtype: "type[np.generic] | None" = None) -> "NDArray[Any]":
    """An array with a shape but no memory: all its strides are 0, whatever its size (default dtype: float32)."""
    import numpy as np  # a command that only describes a model need not wait for it

    return np.broadcast_to(np.zeros((), dtype or np.float32), shape)


def is_shape_only(array: "Array") -> bool:
    """True if an array was made by `shape_only`, as in a pass without weights."""
    return not any(array.strides)


# -------------------------------------------------------------------------------------------------------------- ops


class Op(Generic[P]):
    """One arithmetic step: a function of arrays, the axes it works on, and its cost.

    `signature` names the axes of each array argument and of the result, as in "token in, out in -> token out": shapes
    and costs follow from it. A product (`contracts`) does one multiply-accumulate for every combination of its axes;
    `work(arguments)` is the number of element-wise operations per number of the result, which is written over the
    argument `over`, if any. At work it needs `beside` more arrays of the result's size; -1: the result is only a view.
    """

    def __init__(
        self,
        compute: "Callable[P, Array]",
        signature: str,
        contracts: bool,
        work: Callable[[Mapping[str, Any]], int],
        over: str | None,
        beside: int,
    ) -> None:
        self.compute = compute
        self.name = compute.__name__
        self.__doc__ = compute.__doc__
        self.signature = Signature.parse(signature)
        self.contracts = contracts
        self.work = work
        self.over = over
        self.beside = beside

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> "Array":
        watcher = _current.get()
        if watcher is None:
            return self.compute(*args, **kwargs)
        return watcher.op(self, args, kwargs)

    def __repr__(self) -> str:
        return f"<op {self.name}: {self.signature}>"


def op(
    signature: str,
    *,
    contracts: bool = False,
    work: int | Callable[[Mapping[str, Any]], int] = 0,
    over: str | None = None,
    beside: int = 0,
) -> "Callable[[Callable[P, Array]], Op[P]]":
    """Make a function of arrays an op: this is the decorator in ops.py that gives an op's shape and cost."""
    rule = work if callable(work) else lambda arguments: work
    return lambda compute: Op(compute, signature, contracts, rule, over, beside)


class Signature(NamedTuple):
    """The axes of an op's arguments and result.

    An axis of the result may be a product, as in "head·size"; a `…` stands for any number of axes.
    """

    inputs: tuple[tuple[str, ...], ...]
    output: tuple[str, ...]

    @classmethod
    def parse(cls, text: str) -> "Signature":
        inputs, output = text.split("->")
        return cls(tuple(tuple(part.split()) for part in inputs.split(",")), tuple(output.split()))

    def spread(self, arguments: Sequence[Any]) -> "Signature":
        """The same with `…` replaced by a name for each axis it stands for, counted from the first argument."""
        if "…" not in self.inputs[0]:
            return self
        names = [f"…{i}" for i in range(arguments[0].ndim - len(self.inputs[0]) + 1)]

        def named(axes: tuple[str, ...]) -> tuple[str, ...]:
            return tuple(name for axis in axes for name in (names if axis == "…" else [axis]))

        return Signature(tuple(map(named, self.inputs)), named(self.output))

    def sizes(self, arguments: Sequence[Any]) -> dict[str, int]:
        """Size of each axis, from the arrays an op is called with; ValueError if they disagree."""
        sizes: dict[str, int] = {}
        signature = self.spread(arguments)
        for axes, argument in zip(signature.inputs, arguments, strict=False):  # trailing arguments may be omitted
            if argument is None:
                continue
            if len(axes) != argument.ndim:
                raise ValueError(f"an array of shape {argument.shape} does not have the axes {' '.join(axes)}")
            for axis, size in zip(axes, argument.shape, strict=True):
                if sizes.setdefault(axis, size) != size:
                    raise ValueError(f"axis {axis} is {sizes[axis]} in one array and {size} in another")
        return sizes

    def shape(self, arguments: Sequence[Any]) -> tuple[int, ...]:
        """Shape of the result."""
        sizes = self.sizes(arguments)
        return tuple(prod(sizes[factor] for factor in axis.split("·")) for axis in self.spread(arguments).output)

    def __str__(self) -> str:
        return f"{', '.join(' '.join(axes) for axes in self.inputs)} -> {' '.join(self.output)}"


# ----------------------------------------------------------------------------------------------------- traced values

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


class Traced:
    """A value of a watched pass: its array, what each of its axes stands for, and where it came from.

    array: its numbers, or in a pass by shapes an array without memory. source: all views of the value share it. views:
    the steps from the whole value to this one.
    """

    __slots__ = ("array", "axes", "source", "views")
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

    def _view(self, kind: Any, array: Any, axes: Axes, *numbers: int) -> "Traced":
        return Traced(array, axes, self.source, (*self.views, View(kind, self.axes, axes, numbers)))


def divided(x: A, axis: int, count: int) -> A:
    """View of an array with one axis divided into two, of which the outer one is `count` long."""
    array: Any = x
    if isinstance(array, Traced):
        return cast(A, array.divided(axis, count))
    size = array.shape[axis] // count
    return cast(A, array.reshape(*array.shape[:axis], count, size, *array.shape[axis + 1 :], copy=False))


def untraced(x: A) -> A:
    """The array itself, for what a module decides by its numbers."""
    array: Any = x
    return cast(A, array.array) if isinstance(array, Traced) else x


def traced_like(x: A, empty: A, features: str) -> A:
    """`empty`, an array [token, hidden] that an op will fill: traced if x is, with its tokens and these features."""
    value: Any = x
    if not isinstance(value, Traced):
        return empty
    return cast(A, Traced(empty, (value.axes[0], (Factor(features, value.shape[1]),)), Origins()))


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
