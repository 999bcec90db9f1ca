"""Properties that are computed when they are first read."""

from __future__ import annotations

import functools
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any, TypeVar

T = TypeVar("T")


class cached_property(functools.cached_property[T]):
    """As of Python 3.12: two threads at once may both compute the value.

    Before, all objects had one lock, which stays closed in a process that is forked while another thread computes.
    """

    def __init__(self, compute: Callable[[Any], T]) -> None:
        super().__init__(compute)
        self.lock = nullcontext()
