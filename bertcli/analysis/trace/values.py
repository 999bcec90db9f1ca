"""Which value an array holds, known by its memory, and what its axes stand for.

Through views and in-place operations a value is identified by its memory. Its axes follow from the ops' signatures:
they are never guessed from sizes.

An axis is a product of factors, each a symbol with its size: the hidden axis is `H`, the rows of a packed batch are
`B·S`, heads side by side are `A·D`. In addition to the glossary in network/module.py, the symbols are

    R    rows asked for in a sentence, if not all are
    ΣS   tokens of sentences of different lengths, end to end (ΣR likewise)
    Bᵢ   sentences of one length in a batch with several, Sᵢ that length (Rᵢ likewise)
    E₀   numbers of a pooled vector; E₁, E₂ … those of the Dense layers after the pooling
    N    an axis about which nothing is known
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, NamedTuple
from weakref import ref

import numpy as np
from numpy.typing import NDArray

from bertcli.engine.array import owner_of
from bertcli.network.module import Module, Parameter, Signature, walk
from bertcli.report.documents import ByName

BATCH, UNKNOWN, ONE = "B", "N", "1"
WORDS = {"head": "A", "size": "D"}  # what a signature's own words stand for
SPLIT = 4  # arrays of this many axes are [batch, head, token, size], or [batch, head, token, token]
GROUP, ALL = "ᵢ", "Σ"


class Factor(NamedTuple):
    """One symbol and its size."""

    symbol: str
    size: int


Axis = tuple[Factor, ...]
Axes = tuple[Axis, ...]


@dataclass(frozen=True)
class Value(ByName):
    """An operand or a result: its name, and its shape in numbers and in symbols, such as `S × H`."""

    name: str
    shape: tuple[int, ...]
    symbols: str


def extent(axis: Axis) -> int:
    """Size of an axis."""
    return prod(factor.size for factor in axis)


def plain(symbols: Sequence[str], shape: Sequence[int]) -> Axes:
    """Axes of one symbol each."""
    return tuple((Factor(symbol, size),) for symbol, size in zip(symbols, shape, strict=True))


def unknown(shape: Sequence[int]) -> Axes:
    """Axes about which nothing is known."""
    return plain([UNKNOWN] * len(shape), shape)


def rows_asked(asked: NDArray[Any], counts: Sequence[int]) -> Axis:
    """The axis of the packed rows asked for, in a batch with `counts` rows for each sentence."""
    return rows(np.diff(np.searchsorted(asked, np.cumsum([0, *counts]))).tolist(), "R")


def pooled(layer: int) -> str:
    """The symbol of the input of a Dense layer after the pooling; its output has the next layer's symbol."""
    return "E" + "".join(chr(ord("₀") + int(digit)) for digit in str(layer))


def rows(counts: Sequence[int], symbol: str = "S") -> Axis:
    """The axis of the rows of a packed batch with `counts` rows for each sentence."""
    if len(set(counts)) == 1:
        return (Factor(BATCH, len(counts)), Factor(symbol, counts[0]))
    return (Factor(ALL + symbol, sum(counts)),)


def show(name: str, axes: Axes) -> Value:
    """A value for display: the batch has an axis of its own, left out for one sentence; other products are one."""
    parts: list[tuple[str, int]] = []
    for axis in axes:
        if axis and axis[0].symbol == BATCH:
            parts += [axis[0]] if axis[0].size != 1 else []
            axis = axis[1:]
        if axis:
            symbols = "·".join(factor.symbol for factor in axis)
            parts.append((f"({symbols})" if len(axis) > 1 else symbols, extent(axis)))
    parts = parts or [(ONE, 1)]
    return Value(name, tuple(size for _, size in parts), " × ".join(symbol for symbol, _ in parts))


def seen(axes: Axes, shape: Sequence[int], words: Sequence[str]) -> Axes:
    """The axes of a value in the view of it that is passed to an op whose signature has these words."""
    if len(axes) == len(shape):
        return tuple(_cut(axis, size) for axis, size in zip(axes, shape, strict=True))
    if len(shape) == SPLIT:
        return _split(axes[-2], shape, words)
    if len(axes) == 2 and list(words[1:]) == list(WORDS):
        return (axes[0], *plain(list(WORDS.values()), shape[1:]))
    if len(axes) == SPLIT and len(shape) == 2:
        batch, head, token, size = axes
        return (_cut(_joined(batch, token), shape[0]), (*head, *size))
    return unknown(shape)


def result(signature: Signature, arguments: Sequence[Axes | None], shape: Sequence[int]) -> Axes:
    """The axes of an op's result, from those of its arguments."""
    bound: dict[str, Axis] = {}
    for words, axes in zip(signature.inputs, arguments, strict=False):
        for word, axis in zip(words, axes or (), strict=False):
            if word not in bound or (bound[word][:1] and bound[word][0].symbol == UNKNOWN):
                bound[word] = axis
    found = tuple(_joined(*(bound[word] for word in product.split("·"))) for product in signature.output)
    return tuple(axis if extent(axis) == size else unknown([size])[0] for axis, size in zip(found, shape, strict=True))


def multiplied(signature: Signature, operand: int, axes: Axes) -> Axes:
    """The axes of a product's operand in multiplication order: in the second operand summed axes come before its own.

    Axes that both operands and the result have, such as heads, stay in front.
    """
    words = signature.inputs[operand]
    if operand != 1 or words[-1] in signature.output:
        return axes
    shared, kept = ([word in found for word in words] for found in (signature.inputs[0], signature.output))
    order = sorted(range(len(words)), key=lambda i: 1 if not kept[i] else 0 if shared[i] else 2)
    return tuple(axes[i] for i in order)


def _joined(*axes: Axis) -> Axis:
    factors = tuple(factor for axis in axes for factor in axis)
    return tuple(factor for factor in factors if factor.symbol != ONE) or factors


def _cut(axis: Axis, size: int) -> Axis:
    """An axis as an op sees it with `size`: itself, or, if it is known only for the rows of one group, all rows."""
    if extent(axis) == size:
        return axis
    symbols = [factor.symbol for factor in axis]
    if symbols[:1] == [BATCH] and extent(axis[1:]) == size:
        return axis[1:]  # of one sentence, where all are alike
    if symbols[-1:] == [BATCH + GROUP]:
        return (Factor(BATCH, size),)
    if symbols[:1] == [BATCH + GROUP]:
        return (Factor(ALL + symbols[-1].removesuffix(GROUP), size),)
    return unknown([size])[0]


def _split(axis: Axis, shape: Sequence[int], words: Sequence[str]) -> Axes:
    """Some rows as [batch, head, token, size]: all of them if all sentences have one length, else one group's."""
    batch, token = BATCH, ONE
    if axis[0].symbol.startswith(ALL):
        batch, token = BATCH + GROUP, axis[0].symbol.removeprefix(ALL) + GROUP
    elif axis[0].symbol == BATCH:
        batch = BATCH if axis[0].size == shape[0] else BATCH + GROUP
        token = axis[1].symbol if len(axis) > 1 else ONE
    elif axis[0].symbol == UNKNOWN:
        token = UNKNOWN
    return plain([batch if word == "batch" else WORDS.get(word, token) for word in words], shape)


AnyArray = NDArray[Any]


class Named(NamedTuple):
    """A parameter under the name that one module has for it."""

    path: str
    size: int  # in numbers
    tied: bool  # to one with an earlier path


class _Part(NamedTuple):
    """Addresses `low` to `high` of a buffer hold a value with these axes.

    It may be a parameter with these names; else `makers` are the steps that computed it, none for an input of the pass.
    """

    low: int
    high: int
    axes: Axes
    names: tuple[Named, ...]
    makers: tuple[int, ...]


class _Buffer(NamedTuple):
    owner: ref[AnyArray]
    parts: list[_Part]


class Values:
    """The arrays a trace knows: parameters of the tree, inputs of the pass, and results of ops.

    Buffers are held by weak references: a trace keeps no array alive, and does not mistake a new array for a deleted
    one at the same address.
    """

    def __init__(self, tree: Module, symbols: Mapping[str, str] | None = None) -> None:
        self.paths: dict[int, list[str]] = {}  # of every module, by its id; several if it occurs several times
        self._held: list[Any] = []  # keeps these objects alive, so that their ids stay valid
        self._buffers: dict[int, _Buffer] = {}
        self.take_in(tree, symbols=symbols)

    def take_in(self, tree: Module, at: str = "", symbols: Mapping[str, str] | None = None) -> None:
        """Register the modules and parameters of a tree at path `at`; `symbols` maps its axis names to symbols."""
        for path, found in walk(tree, at, symbols):
            if isinstance(found, Parameter):
                axes = plain(found.symbols, found.array.shape)
                names = self.names(found.array)
                self.bind(found.array, axes, (*names, Named(path, found.array.size, tied=bool(names))))
                self._held.append(found.array)
            else:
                self.paths.setdefault(id(found), []).append(path)
                self._held.append(found)

    def bind(self, array: AnyArray, axes: Axes, names: tuple[Named, ...] = (), makers: tuple[int, ...] = ()) -> None:
        """Note that from now on the memory of this array holds a value with these axes."""
        owner = owner_of(array)
        low, high = np.lib.array_utils.byte_bounds(array)
        kept = [part for part in self._parts(owner) if part.low < low or part.high > high]
        self._buffers[id(owner)] = _Buffer(ref(owner), [_Part(low, high, axes, names, makers), *kept])

    def axes(self, array: AnyArray, words: tuple[str, ...]) -> Axes | None:
        """The axes of the value in an array, as an op with these words sees it; None for an unknown array."""
        part = self._part(array)
        return None if part is None else seen(part.axes, array.shape, words)

    def names(self, array: AnyArray) -> tuple[Named, ...]:
        """The parameters that an array holds: none, one, or several that are tied."""
        part = self._part(array)
        return () if part is None else part.names

    def makers(self, array: AnyArray) -> tuple[int, ...]:
        """The steps that computed what is in an array, ascending; several if it was filled piece by piece."""
        return tuple(sorted({maker for part in self._within(array) for maker in part.makers}))

    def _part(self, array: AnyArray) -> _Part | None:
        within = self._within(array)
        low, high = np.lib.array_utils.byte_bounds(array)
        around = (part for part in within if part.low <= low and high <= part.high)
        return next(around, within[0] if within else None)

    def _within(self, array: AnyArray) -> list[_Part]:
        """The parts of its buffer that an array shares memory with."""
        parts = self._parts(owner_of(array))
        if not parts:
            return []
        low, high = np.lib.array_utils.byte_bounds(array)
        return [part for part in parts if part.low < high and low < part.high]

    def _parts(self, owner: AnyArray) -> list[_Part]:
        buffer = self._buffers.get(id(owner))
        return buffer.parts if buffer is not None and buffer.owner() is owner else []
