"""How a model is declared: a tree of frozen dataclasses whose fields say what each consists of.

    weight: Array = parameter("outputs inputs")             an array, with the name of each axis
    intermediate: Linear = part(outputs="F", inputs="H")    a module, with the axes its names stand for
    layers: tuple[EncoderLayer, ...] = parts("L")           a sequence of modules
    eps: float = setting("layer_norm_eps")                  a number or string from config.json

`build` makes the tree from these fields and `walk` reads it back, so each shape is written only once.

Glossary of axes: B batch, S token, H hidden, A head, D head size, F feed-forward, L layer, V vocabulary, P position,
T token type, C label; a plain number stands for itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import Field, dataclass, field, fields
from types import NoneType
from typing import Any, NamedTuple, TypeVar, get_args, get_type_hints

from bertcli.parts import Array, Module

M = TypeVar("M", bound=Module)


def parameter(axes: str, *, tied: str | None = None) -> Any:
    """Field: an array with these axes; `tied` is the path of the parameter it shares its array with, if any."""
    return field(metadata={"kind": "parameter", "axes": tuple(axes.split()), "tied": tied})


def part(**axes: str) -> Any:
    """Field: a module, with what its axis names stand for here."""
    return field(metadata={"kind": "part", "names": axes})


def parts(count: str, **axes: str) -> Any:
    """Field: `count` modules of one type."""
    return field(metadata={"kind": "parts", "count": count, "names": axes})


def setting(key: str) -> Any:
    """Field: the value of this key in config.json."""
    return field(metadata={"kind": "setting", "key": key})


class Parameter(NamedTuple):
    """An array of the tree. `symbols` name its axes; `counts` are the lengths (L) of the `parts` fields it is in."""

    path: str
    array: Array
    symbols: tuple[str, ...]
    counts: tuple[str, ...] = ()


class Request(NamedTuple):
    """What `build` requests from a source of arrays."""

    path: str
    shape: tuple[int, ...]
    tied: str | None


Source = Callable[[Request], Array]


def build(cls: type[M], config: Any, source: Source, heads: tuple[str, ...] = ()) -> M:
    """The tree of `cls` for a config (with `sizes`, symbol -> size), its arrays from `source`.

    An optional part (`X | None`) is built if its name is in `heads`.
    """
    return _build(cls, config, source, frozenset(heads), "", {})


def _build(cls: type[M], config: Any, source: Source, heads: frozenset[str], path: str, names: Mapping[str, str]) -> M:
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
    """Size of an axis, given as a symbol or a plain number."""
    return int(symbol) if symbol.isdigit() else sizes[symbol]


def walk(
    module: Module, path: str = "", names: Mapping[str, str] | None = None, counts: tuple[str, ...] = ()
) -> Iterator[tuple[str, Module | Parameter]]:
    """(path, module or Parameter) for `module` and everything below it, parents first."""
    names = names or {}
    yield path, module
    prefix = f"{path}." if path else ""
    for item in _fields(type(module)):
        meta, name = item.field.metadata, item.field.name
        value = getattr(module, name)
        if value is None or meta["kind"] == "setting":
            continue
        if meta["kind"] == "parameter":
            symbols = tuple(names.get(axis, axis) for axis in meta["axes"])
            yield prefix + name, Parameter(prefix + name, value, symbols, counts)
        elif meta["kind"] == "part":
            yield from walk(value, prefix + name, _renamed(meta["names"], names), counts)
        else:
            inner = (*counts, meta["count"])
            for i, one in enumerate(value):
                yield from walk(one, f"{prefix}{name}.{i}", _renamed(meta["names"], names), inner)


def parameters(module: Module) -> list[Parameter]:
    """The parameters of a tree in the order of its fields; one that is tied to an earlier one is still listed."""
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
