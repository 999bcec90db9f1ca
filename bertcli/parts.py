"""What a model is made of: ops that compute, modules that hold parameters, and the one seam where both can be watched.

A model is a tree of modules (`tree.py` explains the notation), and modules compute with ops (`ops.py`). Both are called
through one place, where a watcher can intercept the calls: that is how a pass is traced.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from math import prod
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, ParamSpec, Protocol

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.float32]
    Integers = NDArray[np.integer[Any]]
else:
    Array = Integers = Any  # field types are resolved when a tree is built; this module needs no NumPy

P = ParamSpec("P")


# ---------------------------------------------------------------------------------------------------------- the seam


class Watcher(Protocol):
    """Receives every call at the seam and returns its result, usually by making the call and recording it."""

    def op(self, op: Op[Any], arguments: tuple[Any, ...], keywords: dict[str, Any]) -> Array: ...

    def module(self, module: Module, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> Array: ...


_watcher: ContextVar[Watcher | None] = ContextVar(
    "watcher", default=None
)  # a context variable, so that a thread can be watched without the others


@contextmanager
def watching(watcher: Watcher) -> Iterator[None]:
    """Every op and module called in this context passes through `watcher`."""
    before = _watcher.set(watcher)
    try:
        yield
    finally:
        _watcher.reset(before)


def watched() -> bool:
    """True while a watcher is set; an op must then not be split into several for the sake of the cache."""
    return _watcher.get() is not None


# -------------------------------------------------------------------------------------------------------------- ops


class Op(Generic[P]):
    """One arithmetic step: a function of arrays, the axes it works on, and its cost.

    `signature` names the axes of each array argument and of the result, as in "token in, out in -> token out": shapes
    and costs follow from it. A product (`contracts`) does one multiply-accumulate for every combination of its axes;
    `work(arguments)` is the number of element-wise operations per number of the result.
    """

    def __init__(
        self, compute: Callable[P, Array], signature: str, contracts: bool, work: Callable[[Mapping[str, Any]], int]
    ) -> None:
        self.compute = compute
        self.name = compute.__name__
        self.__doc__ = compute.__doc__
        self.signature = Signature.parse(signature)
        self.contracts = contracts
        self.work = work

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> Array:
        watcher = _watcher.get()
        if watcher is None:
            return self.compute(*args, **kwargs)
        return watcher.op(self, args, kwargs)

    def __repr__(self) -> str:
        return f"<op {self.name}: {self.signature}>"


def op(
    signature: str, *, contracts: bool = False, work: int | Callable[[Mapping[str, Any]], int] = 0
) -> Callable[[Callable[P, Array]], Op[P]]:
    """Make a function of arrays an op: this is the decorator in ops.py that gives each op's shape and cost rule."""
    rule = work if callable(work) else lambda arguments: work
    return lambda compute: Op(compute, signature, contracts, rule)


class Signature(NamedTuple):
    """The axes of an op's arguments and result.

    An axis of the result may be a product, as in "head·size"; a leading `…` stands for any number of axes.
    """

    inputs: tuple[tuple[str, ...], ...]
    output: tuple[str, ...]

    @classmethod
    def parse(cls, text: str) -> Signature:
        inputs, output = text.split("->")
        return cls(tuple(tuple(part.split()) for part in inputs.split(",")), tuple(output.split()))

    def spread(self, arguments: tuple[Any, ...]) -> Signature:
        """The same with `…` replaced by a name for each axis it stands for, counted from the first argument."""
        if self.inputs[0][:1] != ("…",):
            return self
        names = tuple(f"…{i}" for i in range(arguments[0].ndim - len(self.inputs[0]) + 1))
        inputs = tuple(names + axes[1:] if axes[:1] == ("…",) else axes for axes in self.inputs)
        return Signature(inputs, names + self.output[1:] if self.output[:1] == ("…",) else self.output)

    def sizes(self, arguments: tuple[Any, ...]) -> dict[str, int]:
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

    def shape(self, arguments: tuple[Any, ...]) -> tuple[int, ...]:
        """Shape of the result."""
        sizes = self.sizes(arguments)
        return tuple(prod(sizes[factor] for factor in axis.split("·")) for axis in self.spread(arguments).output)

    def __str__(self) -> str:
        return f"{', '.join(' '.join(axes) for axes in self.inputs)} -> {' '.join(self.output)}"


# ---------------------------------------------------------------------------------------------------------- modules


class Module:
    """Part of a model: a frozen dataclass of arrays, modules and settings, and a `forward` that uses them."""

    forward: Callable[..., Array]

    def __call__(self, *args: Any, **kwargs: Any) -> Array:
        watcher = _watcher.get()
        if watcher is None:
            return self.forward(*args, **kwargs)
        return watcher.module(self, args, kwargs)
