"""Dispatch: every op and every module is called through one place, where a watcher can take the call.

Without a watcher a call costs a tenth of a microsecond more than the function. Watchers that follow values (`tracer`)
run the pass with traced values (`traced`) in place of arrays. A traced value is not an array: it has the few views that
modules make and nothing else, so that whatever is computed without an op is an error, not something that goes unseen.
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
    """Receives every call and returns its result, usually by making the call and recording it."""

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
    An op that is several products has `macs(sizes, arguments)`, their multiply-accumulates from the sizes of its axes.
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
    """Make a function of arrays an op: this is the decorator in ops.py that gives an op's shape and cost."""
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


# ---------------------------------------------------------------------------------------- what stands in for an array


class Batch:
    """The tokens of a batch on their way into a pass: `engine.packing.Packed`, of which this room needs to know only

    its arrays `ids`, `segments`, `positions` and `offsets`, in whose places a tracer puts what stands in for arrays,
    and `first`, which is `offsets[:-1]`.
    """


class StandIn:
    """What a watcher that follows values puts in the place of an array: see `traced`."""

    __slots__ = ("array",)

    array: Any  # its numbers, or in a pass by shapes an array without memory

    def divided(self, axis: int, count: int) -> Any:
        """See the function of this name."""
        raise NotImplementedError

    def like(self, empty: Any, features: str) -> Any:
        """See `traced_like`."""
        raise NotImplementedError


def divided(x: A, axis: int, count: int) -> A:
    """View of an array with one axis divided into two, of which the outer one is `count` long."""
    array: Any = x
    if isinstance(array, StandIn):
        return cast(A, array.divided(axis, count))
    size = array.shape[axis] // count
    return cast(A, array.reshape(*array.shape[:axis], count, size, *array.shape[axis + 1 :], copy=False))


def untraced(x: A) -> A:
    """The array itself, for what a module decides by its numbers."""
    array: Any = x
    return cast(A, array.array) if isinstance(array, StandIn) else x


def traced_like(x: A, empty: A, features: str) -> A:
    """`empty`, an array [token, hidden] that an op will fill: traced if x is, with its tokens and these features."""
    value: Any = x
    return cast(A, value.like(empty, features)) if isinstance(value, StandIn) else empty
