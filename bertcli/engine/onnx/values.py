"""Which value of the graph an array of the watched pass holds, and how the graph has a view of it.

An array is known by its memory. A model splits, cuts, permutes and merges axes as views, without an op; a view's
strides say which of these were done, and they become Reshape, Slice, Transpose and Reshape.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bertcli.engine.array import owner_of
from bertcli.engine.onnx.graph import Axis, Dim, Graph, Tensor

AnyArray = NDArray[Any]


class _Part(NamedTuple):
    """A dimension of a value, or a factor of one, in memory: neighbors along it are `stride` bytes apart."""

    dim: Dim
    stride: int


class _Held(NamedTuple):
    """Addresses `low` to `high` hold a value, in this array."""

    low: int
    high: int
    array: AnyArray
    tensor: Tensor
    parts: tuple[_Part, ...]  # in the order of the tensor's dimensions


class Values:
    """The arrays that are known. They are kept alive, so that an address never means two values."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._held: dict[int, list[_Held]] = {}  # by the id of the array that owns the memory
        self._owners: list[AnyArray] = []

    def bind(self, array: AnyArray, tensor: Tensor) -> None:
        """From now on the memory of this array holds this value."""
        low, high = np.lib.array_utils.byte_bounds(array)
        parts: list[_Part] = []
        for axis, stride in zip(tensor.axes, array.strides, strict=True):
            inner: list[_Part] = []
            for dim in reversed(axis):
                inner.insert(0, _Part(dim, stride))
                stride *= dim.size
            parts += inner
        owner = owner_of(array)
        others = [held for held in self._held.get(id(owner), ()) if held.high <= low or high <= held.low]
        self._held[id(owner)] = [_Held(low, high, array, tensor, tuple(parts)), *others]
        self._owners.append(owner)

    def find(self, array: AnyArray) -> Tensor | None:
        """The value in an array, in the order of its axes; None if nothing known lies in its memory."""
        low, high = np.lib.array_utils.byte_bounds(array)
        for held in self._held.get(id(owner_of(array)), ()):
            if held.low <= low and high <= held.high:
                return held.tensor if same(held.array, array) else _view(self._graph, held, array)
        return None


def _view(graph: Graph, held: _Held, array: AnyArray) -> Tensor:
    """The value as this array sees it: its dimensions split, cut or picked from, permuted and merged as needed."""
    parts = _split(held.parts, [stride for size, stride in zip(array.shape, array.strides, strict=True) if size > 1])
    starts, taken = _starts(parts, _address(array) - _address(held.array)), dict[_Part, int]()
    axes = [_parts_of(parts, size, stride, taken) for size, stride in zip(array.shape, array.strides, strict=True)]

    name = graph.reshaped(held.tensor.name, held.tensor.dims, [part.dim for part in parts])
    for number, part in reversed([*enumerate(parts)]):
        start, count = starts[part], taken.get(part)
        if count is None:  # one of it was picked
            name = graph.node("Gather", name, graph.integers(start), axis=number)
        elif count < part.dim.size:
            ends = (graph.integers([start]), graph.integers([start + count]), graph.integers([number]))
            name = graph.node("Slice", name, *ends)
    there = [part for part in parts if part in taken]
    wanted = [part for axis in axes for part in axis]
    name = graph.permuted(name, [there.index(part) for part in wanted])
    sizes = [[part.dim._replace(size=taken[part]) for part in axis] for axis in axes]
    merged = tuple(merge(axis) for axis in sizes)
    dims = [dim for axis in sizes for dim in axis]
    return Tensor(graph.reshaped(name, dims, [dim for axis in merged for dim in axis]), merged)


def _split(parts: tuple[_Part, ...], strides: list[int]) -> list[_Part]:
    """The parts with more than one number, divided where an axis of the view has its stride within one of them."""
    found = []
    for dim, stride in parts:
        whole = dim.size * stride
        cuts = sorted(s for s in strides if stride < s < whole and s % stride == 0 == whole % s and not dim.symbol)
        for inner, outer in reversed([*zip([stride, *cuts], [*cuts, whole], strict=True)]):
            if dim.size > 1:
                found.append(_Part(dim._replace(size=outer // inner), inner))
    return found


def _starts(parts: list[_Part], offset: int) -> dict[_Part, int]:
    """How far into each part the first number of the view lies."""
    starts = {}
    for part in sorted(parts, key=lambda part: -part.stride):
        starts[part], offset = divmod(offset, part.stride)
    return starts


def _parts_of(parts: list[_Part], size: int, stride: int, taken: dict[_Part, int]) -> list[_Part]:
    """The parts that an axis of the view runs through, outer first, and how much of each is `taken`."""
    found: list[_Part] = []
    while size > 1:
        part = next((one for one in parts if one.stride == stride and one not in taken), None)
        if part is None or size % min(size, part.dim.size) or (part.dim.symbol and size < part.dim.size):
            raise RuntimeError(
                f"An op was given a view that no graph can have: an axis of {size}, {stride} bytes apart."
            )
        taken[part] = min(size, part.dim.size)
        found.insert(0, part)
        size, stride = size // taken[part], stride * part.dim.size
    return found


def merge(dims: list[Dim]) -> Axis:
    """One axis of these dimensions, outer first: fixed sizes side by side are multiplied; of none, a size of 1."""
    found: list[Dim] = []
    for dim in dims:
        if found and not dim.symbol and not found[-1].symbol:
            found[-1] = Dim(found[-1].size * dim.size)
        else:
            found.append(dim)
    return tuple(found) or (Dim(1),)


def same(one: AnyArray, other: AnyArray) -> bool:
    """Whether two arrays are the same view of the same memory."""
    return (_address(one), one.shape, one.strides) == (_address(other), other.shape, other.strides)


def _address(array: AnyArray) -> int:
    return int(array.__array_interface__["data"][0])
