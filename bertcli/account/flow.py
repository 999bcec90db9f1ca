"""What goes where in a model: the output shape of every module and which modules feed which, from one dry run."""

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

SENTENCES, TOKENS = 2, 3  # 6 packed tokens: no other number of rows can be meant

Paths = tuple[str, ...]


class Flow(NamedTuple):
    """Of every module that ran: its output's shape, and of the `shown` ones, which of them feed it."""

    shapes: dict[str, Shape]
    inputs: dict[str, Paths]


def flow(network: Bert | Textbook, shown: Collection[str]) -> Flow:
    """Run a model dry, heads and all; what a module does that is not `shown` (by path) is done by the one around it."""
    watcher = _Follower(network, frozenset(shown))
    ids = np.zeros((SENTENCES, TOKENS), dtype=np.intp)
    batch, _ = pack_padded(ids, ids, np.ones(ids.shape, dtype=bool))
    with watching(watcher):
        outputs(network, batch)
    return Flow(watcher.shapes, {path: watcher.work[path] or watcher.entries[path] for path in watcher.entries})


class _Follower:
    """A watcher that computes nothing and follows every array from the modules it comes from to those it goes to.

    An op without parameters hands on where its arguments come from; one with parameters is a source of its own. So a
    norm after a residual sum is fed by both sides of the sum, whichever module the sum is written in.
    """

    def __init__(self, network: Module, shown: frozenset[str]) -> None:
        self.shown = shown
        self.around = [""]
        self.shapes: dict[str, Shape] = {}
        self.entries: dict[str, Paths] = {}  # what the arguments of a module come from
        self.work: dict[str, Paths] = {"": ()}  # what a module's own ops work on
        self.paths: dict[int, str] = {}
        self.home: dict[int, str] = {}  # array of the tree -> shown module, the first if tied
        self.sources: dict[int, Paths] = {}
        self.kept: list[Array] = []  # an id is good only while its array lives
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
            if len(sources) != 1 or not is_within(sources[0], path):  # else a module within has made it
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
    """What a view and the array it is one of have in common."""
    while getattr(array, "base", None) is not None:
        array = array.base
    return id(array)


def nearest(path: str, shown: Collection[str]) -> str:
    """The path of the innermost of some modules that holds the one at `path`, or is it; "" is the whole model."""
    while path and path not in shown:
        path = path.rpartition(".")[0]
    return path


def is_within(path: str, outer: str) -> bool:
    """Whether one path leads to something inside the module at another."""
    return path != outer and (not outer or path.startswith(f"{outer}."))


def _joined(*several: Paths) -> Paths:
    return tuple(dict.fromkeys(path for paths in several for path in paths))


def _without(path: str, paths: Paths) -> Paths:
    return tuple(one for one in paths if one != path)


def _axes(shape: tuple[int, ...]) -> Shape:
    """A shape of the dry run with letters for what depends on the input."""
    rows: Shape = {SENTENCES * TOKENS: ("B", "S"), SENTENCES: ("B",)}[shape[0]]
    return (*rows, *shape[1:])
