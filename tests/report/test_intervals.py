"""A figure is written with as many digits as its interval tells apart."""

from typing import Any

import pytest

from bertcli.report.intervals import written


@pytest.mark.parametrize(
    ("figure", "text"),
    [
        # As many that the width has two; 0.825 is rounded up, though no float is 0.825.
        ((0.825, 0.6805, 0.9125), "0.83 [0.68, 0.91]"),
        ((0.9875, 0.9552, 0.9966), "0.988 [0.955, 0.997]"),
        ((0.91237, 0.91101, 0.91371), "0.9124 [0.9110, 0.9137]"),
        ((18.8664, 11.9373, 30.1161), "19 [12, 30]"),
        ((1234.56, 1100.0, 1400.0), "1,235 [1,100, 1,400]"),
        ((0.5, 0.5, 0.5), "0.5000 [0.5000, 0.5000]"),
        # A bound beside 0 is not written as 0, one that is 0 is.
        ((0.08, 0.0041, 0.156), "0.080 [0.004, 0.156]"),
        ((0.08, 0.0, 0.156), "0.08 [0.00, 0.16]"),
        # Without an interval four digits, of which no more than four are after the point.
        ((0.82857142, None, None), "0.8286 none"),
        ((0.0617, None, None), "0.0617 none"),
        ((208.554, None, None), "208.6 none"),
        ((1.0, None, None), "1.000 none"),
        ((0.0, None, None), "0.0000 none"),
        ((None, None, None), "–"),
    ],
)
def test_a_figure_has_the_digits_of_its_interval(figure: tuple[Any, Any, Any], text: str) -> None:
    assert written(dict(zip(("value", "low", "high"), figure, strict=True))).together == text


def test_a_difference_has_a_sign() -> None:
    shown = written({"value": 0.1, "low": 0.0408, "high": 0.1559}, signed=True)
    assert shown == ("+0.10", "[+0.04, +0.16]")
    assert written({"value": -0.002, "low": -0.01, "high": 0.0061}, signed=True).together == "-0.002 [-0.010, +0.006]"
    assert written({"value": 0.0, "low": None, "high": None}, signed=True).value == "+0.0000"
