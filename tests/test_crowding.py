"""Fewer threads while other programs take the cores, and more again."""

from __future__ import annotations

import pytest

from bertcli.openblas import crowding
from bertcli.openblas.crowding import LATE, LONGEST, SHORTEST, SLOWER, TWICE, Crowding

WORK = 1_000_000  # multiplications
TIME = 1e-5  # seconds they take when nobody disturbs
DISTURBED = LATE + SLOWER * TIME + 1e-4


class Clock:
    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 100.0
        monkeypatch.setattr(crowding, "perf_counter", lambda: self.now)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


def calm() -> Crowding:
    """One that knows how long a product takes."""
    found = Crowding()
    found.took(TIME, WORK, 8)
    return found


def disturb(found: Crowding, threads: int) -> None:
    for _ in range(2):
        found.took(DISTURBED, WORK, threads)


def test_all_threads_work_while_nobody_disturbs(clock: Clock) -> None:
    found = calm()
    for _ in range(100):
        clock.now += 0.01
        found.took(TIME * SLOWER, WORK, 8)
        assert found.threads(8) == 8


def test_once_is_no_sign(clock: Clock) -> None:
    found = calm()
    for _ in range(5):
        found.took(DISTURBED, WORK, 8)
        assert found.threads(8) == 8
        clock.now += TWICE + 0.01


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
    waits = []
    for _ in range(8):
        disturb(found, 2)
        begun = clock.now
        while found.threads(2) == 1:
            clock.now += SHORTEST / 10
        waits.append(clock.now - begun)
        clock.now += TWICE
    assert waits == sorted(waits)
    assert waits[0] == pytest.approx(SHORTEST, rel=0.2)
    assert waits[-1] == pytest.approx(LONGEST, rel=0.2)
    clock.now += 2 * LONGEST
    found.took(TIME, WORK, 2)
    disturb(found, 2)
    clock.now += SHORTEST * 1.1
    assert found.threads(2) == 2


def test_one_thread_waits_for_nobody(clock: Clock) -> None:
    found = calm()
    disturb(found, 1)
    assert found.threads(8) == 8
