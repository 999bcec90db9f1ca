"""Dataclasses that cost little to declare."""

from dataclasses import FrozenInstanceError, dataclass, field
from typing import Any, TypeVar, dataclass_transform

T = TypeVar("T")


@dataclass_transform(frozen_default=True, eq_default=False, field_specifiers=(field,))
def lean_dataclass(cls: type[T]) -> type[T]:
    """A frozen dataclass whose objects nobody compares, hashes or prints.

    Python writes and compiles every method that it adds to a dataclass, a tenth of a millisecond each. Of the six of
    `dataclass(frozen=True)` only `__init__` is left here; the guard against a second value of a field is one for all.
    """
    cls.__setattr__ = _set_once  # type: ignore[method-assign]
    return dataclass(eq=False, repr=False)(cls)


def _set_once(self: Any, name: str, value: Any) -> None:
    if name in self.__dict__:
        raise FrozenInstanceError(f"cannot assign to field {name!r}")
    self.__dict__[name] = value
