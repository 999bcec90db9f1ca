"""The order of scores."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from bertcli.ranking import ROUNDING, best_first


def test_scores_that_differ_by_rounding_keep_their_order() -> None:
    scores = np.array([0.5, 0.7, 0.5 + 3e-7, 0.9, 0.7 + 2e-7, 0.5 - 2e-7, 0.500002])
    assert best_first(scores).tolist() == [3, 1, 4, 6, 0, 2, 5]
    assert best_first(scores, 2).tolist() == [3, 1]
    assert best_first(100 * scores, 5).tolist() == [3, 1, 4, 6, 0]
    assert best_first(np.array([])).tolist() == []
    assert best_first(np.zeros(4)).tolist() == [0, 1, 2, 3]


def test_many_close_scores_are_no_tie() -> None:
    scores = np.linspace(0, 1, 5_000_001)[::1000][:5000] * 1e-3 + 1  # each differs from the next by 2e-7 of the largest
    order = best_first(scores)
    assert np.all(scores[order][:-1] - scores[order][1:] >= -ROUNDING * scores.max())
    assert scores[order[0]] >= scores.max() - ROUNDING * scores.max()
    assert scores[order[:10]].min() > scores[order[-10:]].max()


@given(st.lists(st.floats(-10, 10), max_size=50), st.integers(1, 60))
def test_order_differs_from_a_sorted_one_by_rounding_alone(scores: list[float], count: int) -> None:
    values = np.array(scores)
    order = best_first(values, count)
    assert len(set(order.tolist())) == min(count, len(scores))
    bound = ROUNDING * np.abs(values).max(initial=0)
    assert np.all(np.abs(values[order] - np.sort(values)[::-1][:count]) <= bound)
