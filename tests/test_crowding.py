"""Fewer threads while other programs take the cores, and more again."""

from __future__ import annotations

import pytest

from bertcli.openblas import crowding
from bertcli.openblas.crowding import LONGEST, SHORTEST, SPENT, WORSE, Crowding

WORK = 1_000_000  # multiplications
TIME = 1e-4  # seconds of a product when nobody disturbs


class Clock:
    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 100.0
        monkeypatch.setattr(crowding, "perf_counter", lambda: self.now)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


def calm() -> Crowding:
    """One that knows how long products take."""
    found = Crowding()
    for threads in range(2, 9):
        found.took(TIME, WORK, threads, threads)
    return found


def disturb(found: Crowding, threads: int, slower: float = 50) -> None:
    """As many products, that many times slower, as are judged together."""
    spent = 0.0
    while spent < SPENT:
        found.took(slower * TIME, WORK, threads, threads)
        spent += slower * TIME


def test_all_threads_work_while_nobody_disturbs(clock: Clock) -> None:
    found = calm()
    for _ in range(1000):
        clock.now += 0.01
        found.took(3 * TIME, WORK, 8, 8)
        assert found.threads(8) == 8


def test_one_late_product_is_no_sign(clock: Clock) -> None:
    found = calm()
    for late in range(1, 6):
        for _ in range(round(SPENT / TIME)):
            found.took(TIME, WORK, 8, 8)
        found.took(SPENT / 5 * late, WORK, 8, 8)
        assert found.threads(8) == 8


def test_threads_stay_while_they_are_faster_than_one_would_be(clock: Clock) -> None:
    found = calm()
    disturb(found, 4, slower=4 * WORSE * 0.95)
    assert found.threads(8) == 8
    disturb(found, 4, slower=4 * WORSE * 1.1)
    assert found.threads(8) == 2


def test_late_products_halve_the_threads_for_a_while(clock: Clock) -> None:
    found = calm()
    disturb(found, 8)
    assert (found.threads(8), found.threads(3)) == (4, 3)
    disturb(found, 4)
    assert found.threads(8) == 2
    disturb(found, 2)
    assert found.threads(8) == 1
    clock.now += LONGEST
    assert found.threads(8) == 2
    clock.now += LONGEST
    assert found.threads(8) == 4
    clock.now += LONGEST
    assert [found.threads(8) for _ in range(2)] == [8, 8]


def test_trying_again_in_vain_makes_it_wait_longer(clock: Clock) -> None:
    found = calm()
    waits = [wait(found, clock) for _ in range(8)]
    assert waits == sorted(waits)
    assert waits[0] == pytest.approx(SHORTEST, rel=0.2)
    assert waits[-1] == pytest.approx(LONGEST, rel=0.2)
    clock.now += 3 * LONGEST
    disturb(found, 2, slower=1)
    assert wait(found, clock) == pytest.approx(SHORTEST, rel=0.2)


def wait(found: Crowding, clock: Clock) -> float:
    """How long two threads, which are disturbed, are then one."""
    disturb(found, 2)
    begun = clock.now
    while found.threads(2) == 1:
        clock.now += SHORTEST / 20
    return clock.now - begun


def test_what_is_disturbed_from_the_beginning_is_noticed(clock: Clock) -> None:
    found = Crowding()
    for _ in range(round(SPENT / 0.01) + 1):
        found.took(0.01, WORK, 2, 2)
    assert found.threads(2) == 1


def test_one_thread_waits_for_nobody(clock: Clock) -> None:
    found = calm()
    disturb(found, 1)
    assert found.threads(8) == 8
