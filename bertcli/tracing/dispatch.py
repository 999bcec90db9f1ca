"""Dispatch: every call of an op or a module passes through here, where a watcher can intercept it.

Without a watcher a call costs a tenth of a microsecond more than the function. Watchers that follow values (`tracer`)
run the pass with traced values (`traced`) in place of arrays. A traced value is not an array: it has only the views
that modules take, so arithmetic outside of an op raises an error instead of escaping the trace.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from math import prod
from typing import (
    TYPE_CHECKING,
    Any,
    ClassVar,
    Generic,
    NamedTuple,
    ParamSpec,
    Protocol,
    TypeVar,
    cast,
    dataclass_transform,
)

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
    """Receives every call and returns its result, usually by making the call and recording it."""

    def op(self, op: "Op[Any]", arguments: tuple[Any, ...], keywords: dict[str, Any]) -> "Array": ...

    def module(self, module: "Module", arguments: tuple[Any, ...], keywords: dict[str, Any]) -> "Array": ...


# A context variable, so that a thread can be watched without the others.
_current: ContextVar[Watcher | None] = ContextVar("watcher", default=None)


@contextmanager
def watching(watcher: Watcher) -> Iterator[None]:
    """Pass every op and module called in this context to `watcher`."""
    before = _current.set(watcher)
    try:
        yield
    finally:
        _current.reset(before)


@contextmanager
def unwatched() -> Iterator[None]:
    """Run the inside of an op without the watcher, so that its product is shared by the cores as in every pass."""
    before = _current.set(None)
    try:
        yield
    finally:
        _current.reset(before)


def watched() -> bool:
    """True while a watcher is set: it counts ops, so callers then do not split a pass into cache-sized parts."""
    return _current.get() is not None


@dataclass_transform(frozen_default=True, eq_default=False)
class Module:
    """Part of a model: a frozen dataclass of arrays, modules and settings, and a `forward` that uses them.

    Subclasses become dataclasses without a decorator, except with `abstract`: then the annotations are not fields.
    """

    forward: "ClassVar[Callable[..., Array]]"

    def __init_subclass__(cls, *, abstract: bool = False) -> None:
        super().__init_subclass__()
        if not abstract:
            dataclass(frozen=True, eq=False, repr=False)(cls)

    def __call__(self, *args: Any, **kwargs: Any) -> "Array":
        watcher = _current.get()
        if watcher is None:
            return self.forward(*args, **kwargs)
        return watcher.module(self, args, kwargs)


def shape_only(shape: tuple[int, ...], dtype: "type[np.generic] | None" = None) -> "NDArray[Any]":
    """Make an array of this shape without memory: all its strides are 0 (default dtype: float32)."""
    import numpy as np  # late: a command that only describes a model starts without it

    number = np.dtype(dtype or np.float32)
    # A view of a single 0, in a third of the time of np.broadcast_to.
    return np.ndarray(shape, number, bytes(number.itemsize), strides=(0,) * len(shape))


def is_shape_only(array: "Array") -> bool:
    """True if an array was made by `shape_only`, as in a pass without weights."""
    return not any(array.strides)


# -------------------------------------------------------------------------------------------------------------- ops


class Op(Generic[P]):
    """One arithmetic step: a function of arrays, the axes it works on, and its cost.

    `signature` names the axes of each array argument and of the result, as in "token in, out in -> token out": shapes
    and costs follow from it.

        contracts    a matrix product: one multiply-accumulate for every combination of its axes
        macs         macs(sizes, arguments): multiply-accumulates of an op that is several products
        work         work(arguments): element-wise operations per number of the result
        over         the name of the argument that the result overwrites
        beside       temporary arrays of the result's size; -1 if the result is only a view
    """

    def __init__(
        self,
        compute: "Callable[P, Array]",
        signature: str,
        contracts: bool,
        work: Callable[[Mapping[str, Any]], int],
        over: str | None,
        beside: int,
        macs: Callable[[Mapping[str, int], Mapping[str, Any]], int] | None = None,
    ) -> None:
        self.compute = compute
        self.name = compute.__name__
        self.__doc__ = compute.__doc__
        self.signature = Signature.parse(signature)
        self.contracts = contracts
        self.work = work
        self.over = over
        self.beside = beside
        self.macs = macs

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
    macs: Callable[[Mapping[str, int], Mapping[str, Any]], int] | None = None,
) -> "Callable[[Callable[P, Array]], Op[P]]":
    """Decorate a function of arrays to make it an op; the arguments are those of `Op` (see network/ops.py)."""
    rule = work if callable(work) else lambda arguments: work
    return lambda compute: Op(compute, signature, contracts, rule, over, beside, macs)


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

    def spread(self, shapes: Sequence[tuple[int, ...] | None]) -> "Signature":
        """Replace `…` by a name for each axis it stands for; their number follows from the first argument."""
        if "…" not in self.inputs[0] or shapes[0] is None:
            return self
        names = [f"…{i}" for i in range(len(shapes[0]) - len(self.inputs[0]) + 1)]

        def named(axes: tuple[str, ...]) -> tuple[str, ...]:
            return tuple(name for axis in axes for name in (names if axis == "…" else [axis]))

        return Signature(tuple(map(named, self.inputs)), named(self.output))

    def sizes(self, shapes: Sequence[tuple[int, ...] | None]) -> dict[str, int]:
        """Map each axis to its size in arguments of these shapes; ValueError if two arguments disagree.

        None is an argument that is left out. A `…` has been spread.
        """
        sizes: dict[str, int] = {}
        for axes, shape in zip(self.inputs, shapes, strict=True):
            if shape is None:
                continue
            if len(axes) != len(shape):
                raise ValueError(f"an array of shape {shape} does not have the axes {' '.join(axes)}")
            for axis, size in zip(axes, shape, strict=True):
                if sizes.setdefault(axis, size) != size:
                    raise ValueError(f"axis {axis} is {sizes[axis]} in one array and {size} in another")
        return sizes

    def shape(self, sizes: Mapping[str, int]) -> tuple[int, ...]:
        """Shape of the result, from the sizes of the axes."""
        return tuple(prod(sizes[factor] for factor in axis.split("·")) for axis in self.output)

    def __str__(self) -> str:
        return f"{', '.join(' '.join(axes) for axes in self.inputs)} -> {' '.join(self.output)}"


# ---------------------------------------------------------------------------------------- what stands in for an array


class Batch:
    """Base class of `engine.packing.Packed`, so that a tracer recognizes a batch without importing the engine.

    A tracer replaces its arrays `ids`, `segments`, `positions` and `offsets` by traced values; `first` is
    `offsets[:-1]`.
    """


class StandIn:
    """Base class of `traced.Traced`, which a tracer passes in place of an array."""

    __slots__ = ("array",)

    array: Any  # the numbers; in a dry run, which computes only shapes, an array without memory

    def divided(self, axis: int, count: int) -> Any:
        """Divide an axis, as the function `divided` does."""
        raise NotImplementedError

    def like(self, empty: Any, features: str) -> Any:
        """Wrap `empty` as a value with this value's tokens, as the function `traced_like` does."""
        raise NotImplementedError


def divided(x: A, axis: int, count: int) -> A:
    """View an array with one axis divided into two; the outer one has the length `count`."""
    array: Any = x
    if isinstance(array, StandIn):
        return cast(A, array.divided(axis, count))
    size = array.shape[axis] // count
    return cast(A, array.reshape(*array.shape[:axis], count, size, *array.shape[axis + 1 :], copy=False))


def untraced(x: A) -> A:
    """Unwrap a traced value, for a module that makes a decision by the numbers in an array."""
    array: Any = x
    return cast(A, array.array) if isinstance(array, StandIn) else x


def traced_like(x: A, empty: A, features: str) -> A:
    """Wrap `empty` [token, hidden], a buffer that an op will fill, as a traced value if x is one.

    Its rows are x's tokens, and the symbol of its columns is `features`.
    """
    value: Any = x
    return cast(A, value.like(empty, features)) if isinstance(value, StandIn) else empty
