"""Frozen dataclasses whose objects nobody compares, hashes or prints."""

from dataclasses import dataclass, field
from typing import TypeVar, dataclass_transform

T = TypeVar("T")


@dataclass_transform(frozen_default=True, eq_default=False, field_specifiers=(field,))
def lean_dataclass(cls: type[T]) -> type[T]:
    """`dataclass(frozen=True, eq=False, repr=False)`: its guard costs a start nothing that was measured."""
    return dataclass(frozen=True, eq=False, repr=False)(cls)
