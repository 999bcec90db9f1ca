"""What a model is made of: ops that compute, modules that hold parameters, and the one seam where both can be watched.

A model is a tree of frozen dataclasses. A module's fields say what it is made of, in the symbols of the literature:

    weight: Array = parameter("outputs inputs")             an array, with the name of each axis
    intermediate: Linear = part(outputs="F", inputs="H")    a module, with the axes its names stand for
    layers: tuple[EncoderLayer, ...] = parts("L")           a row of modules
    eps: float = setting("layer_norm_eps")                  a number or word of config.json

`build` makes the tree from these fields and `walk` reads it back, so shapes are written down once.

Glossary of axes: B batch, S token, H hidden, A head, D head size, F feed-forward, L layer, V vocabulary, P position, T token type, C label.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import Field, dataclass, field, fields
from types import NoneType
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, ParamSpec, Protocol, TypeVar, get_args, get_type_hints

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.float32]
else:
    Array = Any  # field types are resolved when a tree is built; this page needs no NumPy

P = ParamSpec("P")
M = TypeVar("M", bound="Module")


# ---------------------------------------------------------------------------------------------------------- the seam


class Watcher(Protocol):
    """Stands at the seam: is handed every call and answers for it (usually by making the call and noting it)."""

    def op(self, op: Op[Any], arguments: tuple[Any, ...], settings: dict[str, Any]) -> Array: ...

    def module(self, module: Module, arguments: tuple[Any, ...], settings: dict[str, Any]) -> Array: ...


_watcher: ContextVar[Watcher | None] = ContextVar("watcher", default=None)  # a context variable: one thread may watch alone


@contextmanager
def watching(watcher: Watcher) -> Iterator[None]:
    """Every op and module called in this context passes through `watcher`."""
    before = _watcher.set(watcher)
    try:
        yield
    finally:
        _watcher.reset(before)


def watched() -> bool:
    """True while a watcher stands at the seam: a kernel may then not cut one op into several for the cache's sake."""
    return _watcher.get() is not None


# -------------------------------------------------------------------------------------------------------------- ops


class Op(Generic[P]):
    """One arithmetic step: a function of arrays, the axes it works on, and what it costs.

    `signature` names the axes of each array argument and of the result, as in "token in, out in -> token out"; shapes and
    costs follow from it. A product (`contracts`) does one multiply-accumulate for every combination of its axes;
    `work(settings)` is the number of element-wise operations for each number of the result.
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
    """Make a function of arrays an op; the line above each function of ops.py is its shape and cost rule."""
    rule = work if callable(work) else lambda settings: work
    return lambda compute: Op(compute, signature, contracts, rule)


class Signature(NamedTuple):
    """The axes of an op's arguments and result; an axis of the result may be a product, as in "head·size"."""

    inputs: tuple[tuple[str, ...], ...]
    output: tuple[str, ...]

    @classmethod
    def parse(cls, text: str) -> Signature:
        inputs, output = text.split("->")
        return cls(tuple(tuple(part.split()) for part in inputs.split(",")), tuple(output.split()))

    def sizes(self, arguments: tuple[Any, ...]) -> dict[str, int]:
        """Size of each axis, from the arrays an op is called with; raises ValueError where they disagree."""
        sizes: dict[str, int] = {}
        for axes, argument in zip(self.inputs, arguments, strict=False):  # trailing arguments may be left out
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
        return tuple(product(sizes[factor] for factor in axis.split("·")) for axis in self.output)

    def __str__(self) -> str:
        return f"{', '.join(' '.join(axes) for axes in self.inputs)} -> {' '.join(self.output)}"


def product(sizes: Iterator[int]) -> int:
    """Product of integers without overflow."""
    result = 1
    for size in sizes:
        result *= size
    return result


# ---------------------------------------------------------------------------------------------------------- modules


class Module:
    """Part of a model: a frozen dataclass whose fields are arrays, modules and settings, and a `forward` that uses them."""

    forward: Callable[..., Array]

    def __call__(self, *args: Any, **kwargs: Any) -> Array:
        watcher = _watcher.get()
        if watcher is None:
            return self.forward(*args, **kwargs)
        return watcher.module(self, args, kwargs)


def parameter(axes: str, *, tied: str | None = None) -> Any:
    """Field: an array with these axes; `tied` is the path of the parameter it is the same array as, if it is."""
    return field(metadata={"kind": "parameter", "axes": tuple(axes.split()), "tied": tied})


def part(**axes: str) -> Any:
    """Field: a module, and what its axis names stand for here."""
    return field(metadata={"kind": "part", "names": axes})


def parts(count: str, **axes: str) -> Any:
    """Field: `count` modules of one type."""
    return field(metadata={"kind": "parts", "count": count, "names": axes})


def setting(key: str) -> Any:
    """Field: the value config.json has under this key."""
    return field(metadata={"kind": "setting", "key": key})


class Parameter(NamedTuple):
    """An array of the tree, with the symbol of each of its axes."""

    path: str
    array: Array
    symbols: tuple[str, ...]


class Request(NamedTuple):
    """What `build` asks a source for."""

    path: str
    shape: tuple[int, ...]
    tied: str | None


Source = Callable[[Request], Array]


def build(cls: type[M], config: Any, source: Source, heads: tuple[str, ...] = ()) -> M:
    """The tree of `cls` for a config (with `sizes`, symbol -> size), its arrays from `source`; optional parts only where named in `heads`."""
    return _build(cls, config, source, frozenset(heads), "", {})


def _build(
    cls: type[M], config: Any, source: Source, heads: frozenset[str], path: str, names: Mapping[str, str]
) -> M:
    def sub(kind: type[Any], name: str, axes: Mapping[str, str]) -> Any:
        return _build(kind, config, source, heads, f"{path}{name}.", _renamed(axes, names))

    values: dict[str, Any] = {}
    for item in _fields(cls):
        meta, name = item.field.metadata, item.field.name
        if meta["kind"] == "setting":
            values[name] = getattr(config, meta["key"])
        elif meta["kind"] == "parameter":
            shape = tuple(size(names.get(axis, axis), config.sizes) for axis in meta["axes"])
            values[name] = source(Request(path + name, shape, meta["tied"]))
        elif item.optional and name not in heads:
            values[name] = None
        elif meta["kind"] == "part":
            values[name] = sub(item.type, name, meta["names"])
        else:
            count = config.sizes[meta["count"]]
            values[name] = tuple(sub(item.type, f"{name}.{i}", meta["names"]) for i in range(count))
    return cls(**values)


def size(symbol: str, sizes: Mapping[str, int]) -> int:
    """Size of an axis: of a symbol, or of a plain number."""
    return int(symbol) if symbol.isdigit() else sizes[symbol]


def walk(module: Module, path: str = "", names: Mapping[str, str] | None = None) -> Iterator[tuple[str, Module | Parameter]]:
    """Every module and parameter below (and with) `module` as (path, it), parents first; paths have no trailing dot."""
    names = names or {}
    yield path, module
    prefix = f"{path}." if path else ""
    for item in _fields(type(module)):
        meta, name = item.field.metadata, item.field.name
        value = getattr(module, name)
        if value is None or meta["kind"] == "setting":
            continue
        if meta["kind"] == "parameter":
            yield prefix + name, Parameter(prefix + name, value, tuple(names.get(axis, axis) for axis in meta["axes"]))
        elif meta["kind"] == "part":
            yield from walk(value, prefix + name, _renamed(meta["names"], names))
        else:
            for i, one in enumerate(value):
                yield from walk(one, f"{prefix}{name}.{i}", _renamed(meta["names"], names))


def parameters(module: Module) -> list[Parameter]:
    """The arrays of a tree, in the order of its fields; one that is tied to an earlier one is listed again."""
    return [found for _, found in walk(module) if isinstance(found, Parameter)]


def _renamed(axes: Mapping[str, str], outer: Mapping[str, str]) -> dict[str, str]:
    return {inner: outer.get(name, name) for inner, name in axes.items()}


@dataclass(frozen=True)
class _FieldOf:
    field: Field[Any]
    type: Any
    optional: bool


_KNOWN: dict[Any, tuple[_FieldOf, ...]] = {}


def _fields(cls: Any) -> tuple[_FieldOf, ...]:
    """The fields of a module class with the class each holds: X from `X | None` and from `tuple[X, ...]`."""
    if cls not in _KNOWN:
        hints = get_type_hints(cls)
        _KNOWN[cls] = tuple(_field_of(item, hints[item.name]) for item in fields(cls))
    return _KNOWN[cls]


def _field_of(item: Field[Any], hint: Any) -> _FieldOf:
    choices = [one for one in get_args(hint) if one is not NoneType and one is not Ellipsis]
    return _FieldOf(item, choices[0] if choices else hint, NoneType in get_args(hint))
