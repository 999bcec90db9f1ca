"""Memory that is used again: never while anything can still see it, and never more than a bound."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bertcli.engine import scratch as module
from bertcli.engine.array import Array
from bertcli.engine.scratch import KEPT, SMALLEST, scratch
from bertcli.engine.watcher import watching


class _Watcher:
    def op(self, *_: object) -> None: ...

    def module(self, *_: object) -> None: ...


@pytest.fixture(autouse=True)
def nothing_kept() -> Iterator[None]:
    module._kept.memory = []
    yield
    module._kept.memory = []


def test_scratch_is_used_again_only_when_nothing_refers_to_it() -> None:
    one = scratch(100_000)
    view = one.reshape(100, 1000).T[5:7]
    one[...] = 1
    del one
    other = scratch(100_000)
    other[...] = 2
    assert (view == 1).all()
    assert not np.shares_memory(view, other)
    address = other.ctypes.data
    del other
    assert scratch(90_000).ctypes.data == address


@given(st.lists(st.tuples(st.integers(SMALLEST, 1 << 17), st.integers(0, 40)), max_size=60))
def test_scratch_lends_nothing_twice(requests: list[tuple[int, int]]) -> None:
    held: list[Array] = []
    for count, keep in requests:
        array = scratch(count)
        assert array.shape == (count,)
        array[:] = len(held)
        held = [*held, array][-keep or len(held) :]
        for number, other in enumerate(held):
            other[:] = number
        assert [int(other[0]) for other in held] == list(range(len(held)))


def test_scratch_keeps_a_bounded_amount() -> None:
    held = [scratch(40_000 + 400_000 * i) for i in range(30)]
    assert sum(array.size for array in held) > 2 * KEPT
    del held
    assert 0 < sum(memory.size for memory in module._kept.memory) <= KEPT


def test_scratch_that_another_thread_lets_go_comes_back() -> None:
    held = [scratch(50_000)]
    address = held[0].ctypes.data
    with ThreadPoolExecutor(1) as pool:
        pool.submit(held.pop).result()
        gc.collect()
    assert scratch(50_000).ctypes.data == address


def test_scratch_begins_on_a_cache_line() -> None:
    assert all(scratch(count).ctypes.data % 64 == 0 for count in (SMALLEST, 50_000, 5_000_000))


def test_scratch_of_a_watched_pass_is_new() -> None:
    address = scratch(70_000).ctypes.data
    with watching(_Watcher()):  # type: ignore[arg-type]
        assert scratch(70_000).ctypes.data != address
    assert scratch(70_000).ctypes.data == address


def test_scratch_is_lent_once_whatever_a_signal_handler_does_meanwhile(monkeypatch: pytest.MonkeyPatch) -> None:
    """A handler that computes between any two lines of a request is stood for by a request inside the other's count."""
    held: list[Array] = []
    count_holders = module._holders

    def interrupted(memory: list[Array], index: int) -> int:
        monkeypatch.setattr(module, "_holders", count_holders)
        held.extend(scratch(size) for size in (60_000, 60_000, 9_000_000))
        return count_holders(memory, index)

    for _ in range(3):
        scratch(60_000)
    monkeypatch.setattr(module, "_holders", interrupted)
    held.append(scratch(60_000))
    assert len(held) == 4
    assert not any(np.shares_memory(one, other) for one, other in combinations(held, 2))
