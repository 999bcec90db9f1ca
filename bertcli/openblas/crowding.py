"""How many threads are worth it while other programs want the same cores.

OpenBLAS's threads wait for each other at the end of every call. One that the system has set aside in favour of another
program keeps all of them waiting for milliseconds, where a call takes tens of microseconds: beside a single busy
program, two threads have been seen to take seventy times as long as one. So when products come late, fewer threads
share them for a while.
"""

from __future__ import annotations

from time import perf_counter

LATE = 1e-3  # seconds beyond what a product should take: the system's time slices are a few of these
SLOWER = 4  # times the least time it can take: few columns take up to three times as long as many, for each
TWICE = 0.1  # seconds within which it has to happen again: once is no sign of anything
SHORTEST, LONGEST = 0.1, 3.0  # seconds until more threads are tried again: twice as long each time that fails


class Crowding:
    """Watches how long products take that threads share."""

    def __init__(self) -> None:
        self._least = float("inf")  # seconds a multiplication, of products shared by threads
        self._limit: int | None = None  # threads; None: as many as are wanted
        self._pause = SHORTEST
        self._until = 0.0
        self._late = float("-inf")  # when a product was late last

    def threads(self, wanted: int) -> int:
        """How many threads to use now, of `wanted`."""
        if self._limit is None:
            return wanted
        if perf_counter() >= self._until:
            self._limit *= 2
            self._until = perf_counter() + self._pause
            if self._limit >= wanted:
                self._limit = None
                return wanted
        return min(wanted, self._limit)

    def took(self, seconds: float, multiplications: int, threads: int) -> None:
        """Note how long a product took."""
        if threads < 2:
            return
        now = perf_counter()
        if seconds > LATE + SLOWER * multiplications * self._least:
            if now - self._late < TWICE:
                self._limit = threads // 2
                self._until = now + self._pause
                self._pause = min(2 * self._pause, LONGEST)
            self._late = now
        elif now > self._until + self._pause:
            self._pause = SHORTEST
        self._least = min(self._least, seconds / multiplications)


crowding = Crowding()
