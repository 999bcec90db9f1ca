"""Make a model's twin, which a tracer runs instead of the model: the tree with traced parameters.

A module runs its own fields, so its parameters can only be followed in a copy whose fields are traced values.
tracing/tracer.py runs the twin; network/module.py describes the tree.
"""

from collections.abc import Mapping
from typing import Any, TypeVar

from bertcli.network.module import Module, fields_of, renamed
from bertcli.tracing.dispatch import Array
from bertcli.tracing.traced import Origins, Traced, Weight, named_axes

M = TypeVar("M", bound=Module)
Twin = tuple[str, Module | Array, Module | Traced]  # a path, the module or the parameter there, and its twin


def twins(module: Module, path: str = "", names: Mapping[str, str] | None = None) -> list[Twin]:
    """List the twins in a tree in the order of its fields, a module after what is in it, for `Tracer.register`.

    In the twin a module that is used at several paths is a separate object at each.
    """
    listed: list[Twin] = []
    _twin(module, path, names or {}, {}, listed)
    return listed


def _twin(module: M, path: str, names: Mapping[str, str], homes: dict[int, str], listed: list[Twin]) -> M:
    """Copy a tree with traced parameters, and list what is copied.

    homes: maps an array's id to the first path where it occurs.
    """
    prefix = f"{path}." if path else ""
    values: dict[str, Any] = {}
    for item in fields_of(type(module)):
        name, meta, value = prefix + item.name, item.meta, getattr(module, item.name)
        if value is None or meta["kind"] == "setting":
            values[item.name] = value
        elif meta["kind"] == "parameter":
            weight = Weight(name, value.size, homes.setdefault(id(value), name))
            axes = named_axes([names.get(axis, axis) for axis in meta["axes"]], value.shape)
            values[item.name] = Traced(value, axes, Origins([weight]))
            listed.append((name, value, values[item.name]))
        elif meta["kind"] == "part":
            values[item.name] = _twin(value, name, renamed(meta["names"], names), homes, listed)
        else:
            inner = renamed(meta["names"], names)
            values[item.name] = tuple(
                _twin(child, f"{name}.{i}", inner, homes, listed) for i, child in enumerate(value)
            )
    twin = type(module)(**values)
    listed.append((path, module, twin))
    return twin
