"""How a model is declared: a tree of frozen dataclasses whose fields say what each consists of.

    weight: Array = parameter("outputs inputs")             an array, with the name of each axis
    intermediate: Linear = part(outputs="F", inputs="H")    a module, with the axes its names stand for
    layers: tuple[EncoderLayer, ...] = parts("L")           a sequence of modules
    eps: float = setting("layer_norm_eps")                  a number or string from config.json

`build` makes the tree from these fields and `walk` reads it back, so each shape is written only once. A part or
parameter `X | None` is there if its `when`, a key of the configuration, says so; without `when` a part is a head, which
is there if it is asked for, and a parameter a bias, which is there unless a part around it says `bias=False`. Where the
configuration has a tuple, each layer has a value of its own.

What the symbols of axes mean stands in axes.py; a plain number stands for itself.

Modules compute with ops (`ops.py`). Both are called through one place (`tracing/dispatch.py`), where a watcher can take
the calls: that is how a pass is traced.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import field, fields
from types import MappingProxyType, NoneType, UnionType
from typing import Any, NamedTuple, TypeVar, get_args, get_origin

from bertcli.tracing.dispatch import Array
from bertcli.tracing.dispatch import Module as Module

M = TypeVar("M", bound=Module)


def parameter(axes: str, *, tied: str | None = None, when: str | None = None) -> Any:
    """Field: an array with these axes; `tied` is the path of the parameter it shares its array with, if any."""
    return field(metadata={"kind": "parameter", "axes": tuple(axes.split()), "tied": tied, "when": when})


def part(*, when: str | None = None, bias: bool | str | None = None, **axes: str) -> Any:
    """Field: a module, with what its axis names stand for here, and whether it has biases.

    bias: True or False; a text is the key in config.json that decides; None: as in the module that this one is in.
    """
    return field(metadata={"kind": "part", "names": axes, "when": when, "bias": bias})


def parts(count: str, *, shared: str | None = None, **axes: str) -> Any:
    """Field: `count` modules of one type; those with the same number in the config's `shared` are one module."""
    return field(metadata={"kind": "parts", "count": count, "names": axes, "bias": None, "shared": shared})


def setting(key: str) -> Any:
    """Field: the value of this key in config.json."""
    return field(metadata={"kind": "setting", "key": key})


def fixed(value: Any) -> Any:
    """Field: a value that no configuration changes."""
    return field(metadata={"kind": "setting", "value": value})


class Parameter(NamedTuple):
    """An array of the tree. `symbols` name its axes; `counts` are the lengths (L) of the `parts` fields it is in."""

    path: str
    array: Array
    symbols: tuple[str, ...]
    counts: tuple[str, ...] = ()


class Request(NamedTuple):
    """A request of `build` to a source of arrays."""

    path: str
    shape: tuple[int, ...]
    tied: str | None


Source = Callable[[Request], Array]


def build(cls: type[M], config: Any, source: Source, heads: tuple[str, ...] = ()) -> M:
    """The tree of `cls` for a config (with `sizes`, symbol -> size), its arrays from `source`.

    A head is built if its name is in `heads`.
    """
    return _Builder(config, source, frozenset(heads)).made(cls)


class _Builder(NamedTuple):
    """A position of `build` in the tree. layer: the number of the module in the innermost `parts`."""

    config: Any
    source: Source
    heads: frozenset[str]
    path: str = ""
    names: Mapping[str, str] = MappingProxyType({})
    bias: bool = True
    layer: int = 0

    def made(self, cls: type[M]) -> M:
        """The module of class `cls` at this place."""
        return cls(**{item.name: self._value(item) for item in fields_of(cls)})

    def _value(self, item: "_FieldOf") -> Any:
        """The value of a field: a setting, an array, a module, several modules, or None if it is absent."""
        kind = item.meta["kind"]
        if kind == "setting":
            return self._setting(item.meta)
        if item.optional and not self._is_there(item.name, item.meta):
            return None
        if kind == "parameter":
            return self._parameter(item)
        if kind == "part":
            return self._inside(item.meta)._replace(path=f"{self.path}{item.name}.").made(item.type)
        return self._parts(item)

    def _setting(self, meta: Mapping[str, Any]) -> Any:
        return meta["value"] if "value" in meta else self._of_config(meta["key"])

    def _parameter(self, item: "_FieldOf") -> Array:
        axes = (self.names.get(axis, axis) for axis in item.meta["axes"])
        shape = tuple(size(axis, self.config.sizes) for axis in axes)
        tied = item.meta["tied"] if self.config.tie_word_embeddings else None
        return self.source(Request(self.path + item.name, shape, tied))

    def _parts(self, item: "_FieldOf") -> tuple[Module, ...]:
        """Modules of one type; those with the same number in the configuration's `shared` are one module."""
        inner = self._inside(item.meta)
        if item.meta["shared"]:
            numbers = getattr(self.config, item.meta["shared"])
        else:
            numbers = range(self.config.sizes[item.meta["count"]])
        layers: dict[int, Module] = {}
        for layer, number in enumerate(numbers):
            if number not in layers:
                place = inner._replace(path=f"{self.path}{item.name}.{layer}.", layer=layer)
                layers[number] = place.made(item.type)
        return tuple(layers[number] for number in numbers)

    def _inside(self, meta: Mapping[str, Any]) -> "_Builder":
        """This place with what names stand for inside a part, and whether it has biases."""
        bias = self.bias if meta["bias"] is None else meta["bias"]
        if isinstance(bias, str):
            bias = self._of_config(bias)
        return self._replace(names=renamed(meta["names"], self.names), bias=bias)

    def _is_there(self, name: str, meta: Mapping[str, Any]) -> bool:
        if meta["when"]:
            return bool(self._of_config(meta["when"]))
        return self.bias if meta["kind"] == "parameter" else name in self.heads

    def _of_config(self, key: str) -> Any:
        value = getattr(self.config, key)
        return value[self.layer] if isinstance(value, tuple) else value


def optional_parts(cls: type[Module]) -> tuple[str, ...]:
    """The names of a module's heads: the optional parts, which are built on request."""
    return tuple(item.name for item in fields_of(cls) if item.optional and item.meta["when"] is None)


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
    for item in fields_of(type(module)):
        name, meta = item.name, item.meta
        value = getattr(module, name)
        if value is None or meta["kind"] == "setting":
            continue
        if meta["kind"] == "parameter":
            symbols = tuple(names.get(axis, axis) for axis in meta["axes"])
            yield prefix + name, Parameter(prefix + name, value, symbols, counts)
        elif meta["kind"] == "part":
            yield from walk(value, prefix + name, renamed(meta["names"], names), counts)
        else:
            for i, child in enumerate(value):
                yield from walk(child, f"{prefix}{name}.{i}", renamed(meta["names"], names), (*counts, meta["count"]))


def parameters(module: Module, names: Mapping[str, str] | None = None) -> list[Parameter]:
    """The parameters of a tree in the order of its fields; one that is tied to an earlier one is still listed."""
    return [item for _, item in walk(module, names=names) if isinstance(item, Parameter)]


def renamed(axes: Mapping[str, str], outer: Mapping[str, str]) -> dict[str, str]:
    """The axes' names inside a part, each with its meaning: the field's, else the one around the part."""
    return {**outer, **{inner: outer.get(name, name) for inner, name in axes.items()}}


class _FieldOf(NamedTuple):
    name: str
    meta: Mapping[str, Any]
    type: Any
    optional: bool


_FIELDS: dict[Any, tuple[_FieldOf, ...]] = {}


def fields_of(cls: Any) -> tuple[_FieldOf, ...]:
    """The fields of a module class with the class each holds: X from `X | None` and from `tuple[X, ...]`."""
    if cls not in _FIELDS:
        _FIELDS[cls] = tuple(_field_of(item.name, item.metadata, item.type) for item in fields(cls))
    return _FIELDS[cls]


def _field_of(name: str, meta: Mapping[str, Any], hint: Any) -> _FieldOf:
    choices = get_args(hint) if get_origin(hint) in (tuple, UnionType) else (hint,)
    held = next(choice for choice in choices if choice is not NoneType)
    return _FieldOf(name, meta, get_origin(held) or held, NoneType in choices)
