"""Numbers that are the same but for rounding."""

from typing import Any

import numpy as np


def assert_near(found: Any, expected: Any, tolerance: float) -> None:
    """No number is further from the expected one than the tolerance."""
    np.testing.assert_allclose(found, expected, rtol=0, atol=tolerance)
