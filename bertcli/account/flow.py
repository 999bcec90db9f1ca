"""The data flow of a model: each module's output shape and which modules feed it, from one dry run."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any, NamedTuple

import numpy as np

from bertcli.account.shapes import Shape
from bertcli.bert import Bert, outputs
from bertcli.memory import shape_only
from bertcli.packing import pack_padded
from bertcli.parts import Array, Module, Op, watching
from bertcli.textbook import Textbook
from bertcli.tree import Parameter, walk

SENTENCES, TOKENS = 2, 3  # 6 packed tokens: 6 rows can only be tokens, 2 only sentences

Paths = tuple[str, ...]


class Flow(NamedTuple):
    """The output shape of every module that ran and, for the `shown` ones, which of them feed it."""

    shapes: dict[str, Shape]
    inputs: dict[str, Paths]


def flow(network: Bert | Textbook, shown: Collection[str]) -> Flow:
    """Run a model dry, heads included. `shown` are paths of modules.

    Work inside a module that is not shown is attributed to the nearest shown module around it.
    """
    watcher = _Follower(network, frozenset(shown))
    ids = np.zeros((SENTENCES, TOKENS), dtype=np.intp)
    batch, _ = pack_padded(ids, ids, np.ones(ids.shape, dtype=bool))
    with watching(watcher):
        outputs(network, batch)
    return Flow(watcher.shapes, {path: watcher.work[path] or watcher.entries[path] for path in watcher.entries})


class _Follower:
    """A watcher that computes nothing and follows every array from the modules that produce it to those that use it.

    An op without parameters passes on the sources of its arguments; one with parameters is a source itself. So a norm
    after a residual sum is fed by both sides of the sum, whichever module contains the sum.
    """

    def __init__(self, network: Module, shown: frozenset[str]) -> None:
        self.shown = shown
        self.around = [""]
        self.shapes: dict[str, Shape] = {}
        self.entries: dict[str, Paths] = {}  # sources of a module's arguments
        self.work: dict[str, Paths] = {"": ()}  # sources of what a module's own ops work on
        self.paths: dict[int, str] = {}
        self.home: dict[int, str] = {}  # array of the tree -> shown module, the first if tied
        self.sources: dict[int, Paths] = {}
        self.kept: list[Array] = []  # an id is valid only while its array lives
        for path, item in walk(network):
            if isinstance(item, Parameter):
                self.home.setdefault(id(item.array), nearest(path, shown))
            else:
                self.paths[id(item)] = path

    def op(self, op: Op[Any], arguments: tuple[Any, ...], keywords: dict[str, Any]) -> Array:
        result: Array = shape_only(op.signature.shape(arguments))
        here, sources = self.around[-1], self._sources((*arguments, *keywords.values()))
        if any(id(argument) in self.home for argument in arguments):
            self.work[here] = _joined(self.work[here], _without(here, sources))
            sources = (here,)
        into = keywords.get("into")
        if into is not None:  # part of an array that is filled piece by piece
            result, sources = into, _joined(self.sources.get(_owner(into), ()), sources)
        self._note(result, sources)
        return result

    def module(self, module: Module, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> Array:
        path = self.paths[id(module)]
        if path in self.shown:
            self.entries.setdefault(path, self._sources((*arguments, *keywords.values())))
            self.work.setdefault(path, ())
            self.around.append(path)
            result = module.forward(*arguments, **keywords)
            self.around.pop()
            sources = self._sources([result])
            if len(sources) != 1 or not is_within(sources[0], path):  # else a module inside it made the result
                self.work[path] = _joined(self.work[path], _without(path, sources))
                self._note(result, (path,))
        else:
            result = module.forward(*arguments, **keywords)
        self.shapes.setdefault(path, _axes(result.shape))
        return result

    def _sources(self, arguments: Iterable[Any]) -> Paths:
        return _joined(*map(self._source, arguments))

    def _source(self, argument: Any) -> Paths:
        if id(argument) in self.home:
            return (self.home[id(argument)],)
        return self.sources.get(_owner(argument), ())

    def _note(self, array: Array, sources: Paths) -> None:
        self.sources[_owner(array)] = sources
        self.kept.append(array)


def _owner(array: Any) -> int:
    """The id of the array that owns the memory: the same for an array and its views."""
    while getattr(array, "base", None) is not None:
        array = array.base
    return id(array)


def nearest(path: str, shown: Collection[str]) -> str:
    """The innermost of the `shown` paths that is `path` or contains it; "" is the whole model."""
    while path and path not in shown:
        path = path.rpartition(".")[0]
    return path


def is_within(path: str, outer: str) -> bool:
    """Whether `path` lies inside the module at `outer`."""
    return path != outer and (not outer or path.startswith(f"{outer}."))


def _joined(*several: Paths) -> Paths:
    return tuple(dict.fromkeys(path for paths in several for path in paths))


def _without(path: str, paths: Paths) -> Paths:
    return tuple(one for one in paths if one != path)


def _axes(shape: tuple[int, ...]) -> Shape:
    """A shape of the dry run, with letters for the sizes that depend on the input."""
    rows: Shape = {SENTENCES * TOKENS: ("B", "S"), SENTENCES: ("B",)}[shape[0]]
    return (*rows, *shape[1:])
