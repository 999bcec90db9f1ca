"""Which value an array holds: identified by its memory, through views and in-place operations."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple
from weakref import ref

import numpy as np
from numpy.typing import NDArray

from bertcli.parts import Module
from bertcli.tracing.axes import Axes, plain, seen
from bertcli.tree import Parameter, walk

AnyArray = NDArray[Any]


class Named(NamedTuple):
    """A parameter under the name that one module has for it."""

    path: str
    size: int  # in numbers
    tied: bool  # to one with an earlier path


class _Part(NamedTuple):
    """Addresses `low` to `high` of a buffer hold a value with these axes, which may be a parameter with these names."""

    low: int
    high: int
    axes: Axes
    names: tuple[Named, ...] = ()


class _Buffer(NamedTuple):
    owner: ref[AnyArray]
    parts: list[_Part]


class Values:
    """The arrays a trace knows: parameters of the tree, inputs of the pass, and results of ops.

    Buffers are held by weak references: a trace keeps no array alive, and does not mistake a new array for a deleted
    one at the same address.
    """

    def __init__(self, tree: Module) -> None:
        self.paths: dict[int, str] = {}  # of every module, by its id
        self._held: list[Any] = []  # keeps these objects alive, so that their ids stay valid
        self._buffers: dict[int, _Buffer] = {}
        self.take_in(tree)

    def take_in(self, tree: Module, at: str = "", symbols: Mapping[str, str] | None = None) -> None:
        """Register the modules and parameters of a tree at path `at`; `symbols` maps its axis names to symbols."""
        for path, found in walk(tree, at, symbols):
            if isinstance(found, Parameter):
                axes = plain(found.symbols, found.array.shape)
                names = self.names(found.array)
                self.bind(found.array, axes, (*names, Named(path, found.array.size, tied=bool(names))))
                self._held.append(found.array)
            else:
                self.paths[id(found)] = path
                self._held.append(found)

    def bind(self, array: AnyArray, axes: Axes, names: tuple[Named, ...] = ()) -> None:
        """Note that from now on the memory of this array holds a value with these axes."""
        owner = owner_of(array)
        low, high = np.lib.array_utils.byte_bounds(array)
        kept = [part for part in self._parts(owner) if part.low < low or part.high > high]
        self._buffers[id(owner)] = _Buffer(ref(owner), [_Part(low, high, axes, names), *kept])

    def axes(self, array: AnyArray, words: tuple[str, ...]) -> Axes | None:
        """The axes of the value in an array, as an op with these words sees it; None for an unknown array."""
        part = self._part(array)
        return None if part is None else seen(part.axes, array.shape, words)

    def names(self, array: AnyArray) -> tuple[Named, ...]:
        """The parameters that an array holds: none, one, or several that are tied."""
        part = self._part(array)
        return () if part is None else part.names

    def _part(self, array: AnyArray) -> _Part | None:
        parts = self._parts(owner_of(array))
        if not parts:
            return None
        low, high = np.lib.array_utils.byte_bounds(array)
        around = (part for part in parts if part.low <= low and high <= part.high)
        within = (part for part in parts if part.low < high and low < part.high)
        return next(around, None) or next(within, None)

    def _parts(self, owner: AnyArray) -> list[_Part]:
        buffer = self._buffers.get(id(owner))
        return buffer.parts if buffer is not None and buffer.owner() is owner else []


def owner_of(array: AnyArray) -> AnyArray:
    """The array whose memory this is a view of."""
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array
