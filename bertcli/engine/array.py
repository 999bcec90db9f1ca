"""What an array is here: float32 numbers, or a shape without numbers for passes that only count."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.float32]
    Integers = NDArray[np.integer[Any]]
else:
    Array = Integers = Any  # field types are resolved when a tree is built; that needs no NumPy


def shape_only(shape: tuple[int, ...], dtype: type[np.generic] | None = None) -> NDArray[Any]:
    """An array with a shape but no memory: all its strides are 0, whatever its size (default dtype: float32)."""
    import numpy as np  # a command that only describes a model need not wait for it

    return np.broadcast_to(np.zeros((), dtype or np.float32), shape)


def is_shape_only(array: Array) -> bool:
    """True if an array was made by `shape_only`, as in a pass without weights."""
    return not any(array.strides)
