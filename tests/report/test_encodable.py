"""Signs that a terminal lacks are written with others that mean the same."""

import pytest

from bertcli.report.encodable import HANDLER


@pytest.mark.parametrize(
    ("shown", "written"),
    [
        ("a ≤ b ≥ c ≠ d", "a <= b >= c != d"),
        ("4·(H² + H) → −1 ± 2", "4*(H^2 + H) -> -1 +/- 2"),
        ("x₁₂ · 10⁻¹⁴", "x_12 * 10^-14"),
        ("√3, 8 × 2, …, ∞", "sqrt 3, 8 x 2, ..., inf"),
        ("─▁ki", "-_ki"),
        ("漢", "\\u6f22"),
    ],
)
def test_signs_without_a_letter_mean_the_same(shown: str, written: str) -> None:
    assert shown.encode("ascii", HANDLER).decode() == written
