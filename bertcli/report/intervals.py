"""How a figure is written beside its interval: with as many digits as the interval tells apart, 0.83 [0.68, 0.91]."""

from collections.abc import Mapping
from decimal import ROUND_HALF_UP, Context, Decimal
from math import floor, log10
from typing import Any, NamedTuple

OWN = Context(prec=40)  # the precision of the process may be another
MOST = 4  # digits after the point
DIGITS = 2  # of the width of an interval
ALONE = 4  # digits of a figure that has no interval


class WrittenFigure(NamedTuple):
    """A figure and its interval as texts: "–" for one that is not defined, "none" where it has no interval."""

    value: str
    interval: str

    @property
    def together(self) -> str:
        """Both, as a sentence has them."""
        return f"{self.value} {self.interval}".rstrip()


def written(figure: Mapping[str, Any], *, signed: bool = False) -> WrittenFigure:
    """Write a record {value, low, high}. signed: with the sign, as a difference has it."""
    value, low, high = figure["value"], figure["low"], figure["high"]
    if value is None:
        return WrittenFigure("–", "")
    if low is None:
        return WrittenFigure(_rounded(value, _decimals(abs(value), ALONE), signed), "none")
    decimals = _decimals(high - low, DIGITS)
    # A bound beside 0 is not written as 0: whether an interval leaves it out is what people look at.
    while decimals < MOST and any(bound and not _quantized(bound, decimals) for bound in (low, high)):
        decimals += 1
    ends = (_rounded(bound, decimals, signed) for bound in (low, high))
    return WrittenFigure(_rounded(value, decimals, signed), f"[{', '.join(ends)}]")


def _decimals(size: float, digits: int) -> int:
    """The digits after the point with which a size above 0 has so many in all; at most MOST."""
    return MOST if size <= 0 else min(MOST, max(0, digits - 1 - floor(log10(size))))


def _quantized(number: float, decimals: int) -> Decimal:
    """Round as people do: 0.825, which no float is, to 0.83."""
    return Decimal(repr(float(number))).quantize(Decimal(1).scaleb(-decimals, OWN), ROUND_HALF_UP, OWN)


def _rounded(number: float, decimals: int, signed: bool) -> str:
    return f"{_quantized(number, decimals):{'+' if signed else ''},f}"
