"""How a float32 is written: with the fewest digits that read back as it, at most 9 (0.7685904, not 0.768590414524078).

Called where records are made, so that JSON, CSV, HTTP answers and Python have the same numbers. A figure beside its
interval is written in intervals.py; numbers in files of arrays stay as they are.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

MOST = 9  # digits, which tell any two numbers of float32 apart
SMALLEST, LARGEST = map(float, (np.finfo(np.float32).tiny, np.finfo(np.float32).max))
# A whole number divided by one of these, which are exact, is the float64 that is nearest to that decimal number.
POWERS = np.array([float(f"1e{power}") for power in range(23)])


def short(value: Any) -> Any:
    """The numbers of a record with few digits: in dicts and lists each float, whatever precision it was computed in."""
    if isinstance(value, float):
        return _short_number(value)
    if isinstance(value, dict):
        return {name: short(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [short(item) for item in value]
    return value


def short_rows(rows: NDArray[np.float32]) -> Any:
    """An array of float32 as nested lists, as `tolist` gives them, but with few digits."""
    exact = rows.astype(np.float64)
    size = np.abs(exact)
    with np.errstate(divide="ignore", invalid="ignore"):
        digits_before = 1 + np.floor(np.log10(size))
    # Above 1e7 the shortest may end in zeros before the point, to which no power here rounds.
    is_usual = (size >= 1e-12) & (size < 1e7)
    written = exact.copy()
    for digits in range(MOST, 5, -1):
        power = np.where(is_usual, digits - digits_before, 0).astype(int).clip(0, len(POWERS) - 1)
        rounded = np.rint(exact * POWERS[power]) / POWERS[power]
        reads_back = is_usual & (rounded.astype(np.float32) == rows)
        written = np.where(reads_back, rounded, written)
    for place in np.argwhere(~is_usual & np.isfinite(exact)):
        written[tuple(place)] = _short_number(float(exact[tuple(place)]))
    return written.tolist()


def at_least(score: float, least: float | None) -> bool:
    """True if a score is not below a bound, both as float32: a score that was read is a bound that it meets itself."""
    return least is None or bool(np.float32(score) >= np.float32(least))


def _short_number(number: float) -> float:
    """One number: the shortest of its float32; outside of that type's range with 9 digits."""
    if SMALLEST <= abs(number) <= LARGEST:
        return float(str(np.float32(number)))
    return float(f"{number:.{MOST}g}")
