"""How many threads are worth using while other programs want the same cores.

OpenBLAS's threads wait for each other at the end of every call. A thread that the system has suspended in favour of
another program keeps all of them waiting for milliseconds, although a call takes tens of microseconds: next to a single
busy program, two threads have been seen to take seventy times as long as one. So if several threads take longer than
one would, fewer threads share the products for a while.
"""

from __future__ import annotations

from time import perf_counter

SPENT = 0.1  # seconds of products that are judged together: a single slow one means nothing
WORSE = 1.5  # times what one thread would take, estimated from the shortest time that several took for the same
SHORTEST, LONGEST = 0.1, 1.0  # seconds until more threads are tried again; doubled each time that fails
SLOWEST = 1e9  # multiplications per second of a thread that is not disturbed, with any of the kernels used here
KINDS = 4096  # kinds of products whose shortest times are kept


class Crowding:
    """Monitors how long the products that threads share take."""

    def __init__(self) -> None:
        self._least: dict[tuple[int, int, int], float] = {}  # shortest time of each kind of product, in seconds
        self._spent = self._alone = 0.0  # seconds not yet judged, and what one thread would have taken
        self._limit: int | None = None  # threads; None: no limit
        self._pause = SHORTEST
        self._until = 0.0

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

    def took(self, seconds: float, multiplications: int, columns: int, threads: int) -> None:
        """Record how long a product took. Those of one size are expected to take the same time undisturbed."""
        if threads < 2:
            return
        if len(self._least) >= KINDS:
            self._least.clear()
        kind = multiplications, columns, threads
        before = self._least.get(kind, multiplications / (SLOWEST * threads))
        least = self._least[kind] = min(seconds, before)
        self._spent += seconds
        self._alone += threads * least
        if self._spent < SPENT:
            return
        now = perf_counter()
        if self._spent > WORSE * self._alone:
            self._limit = threads // 2
            self._until = now + self._pause
            self._pause = min(2 * self._pause, LONGEST)
        elif now > self._until + self._pause:
            self._pause = SHORTEST
        self._spent = self._alone = 0.0


crowding = Crowding()
