"""Logistic regression is scikit-learn's: `tests/reference/record_probe.py`."""

from typing import Any

import numpy as np
import pytest
from helpers.near import assert_near
from helpers.recorded import recorded
from reference.probe_cases import features

from bertcli.wings.interpret.compute import logistic
from bertcli.wings.interpret.compute.logistic import STRENGTHS, Fit, fits

RECORDED = recorded("probe.json")["logistic"]


def of(seed: int, labels: int, *strengths: float) -> list[Fit]:
    x, y = features(seed, labels)
    return list(fits(x, y, labels, strengths))


@pytest.mark.parametrize("case", RECORDED, ids=lambda case: f"{case['labels']} labels, C {case['c']:g}")
def test_coefficients_are_those_of_scikit_learn(case: dict[str, Any]) -> None:
    x, _ = features(case["seed"], case["labels"])
    (fit,) = of(case["seed"], case["labels"], case["c"])
    weights, biases = fit.weights, fit.biases
    if case["labels"] == 2:
        weights, biases = weights[1:] - weights[:1], biases[1:] - biases[:1]
    expected = np.array(case["intercept"])
    spread = np.append(x[:, :5].std(axis=0), 0)
    assert_near(weights * spread, np.array(case["coef"]) * spread, 1e-3)
    if case["labels"] > 2:  # of biases only what labels do not share says anything
        biases, expected = biases - biases.mean(), expected - expected.mean()
    assert_near(biases, expected, 1e-3)
    assert fit.converged
    assert 0 < fit.steps < 200


def test_fits_do_not_depend_on_where_they_begin() -> None:
    x, _ = features(3, 4)
    for strength, one in zip(STRENGTHS, of(3, 4, *STRENGTHS), strict=True):
        assert_near(one.logits(x), of(3, 4, strength)[0].logits(x), 2e-4)


def test_a_label_that_nothing_has_is_never_said() -> None:
    x, y = features(2, 3)
    some = y != 1
    (fit,) = fits(x[some], y[some], 3, [1.0])
    probabilities = fit.probabilities(x)
    assert (probabilities[:, 1] == 0).all()
    np.testing.assert_allclose(probabilities.sum(axis=1), 1)
    (two,) = fits(x[some], y[some] // 2, 2, [1.0])
    assert_near(fit.weights[[0, 2]], two.weights, 1e-6)
    (alone,) = fits(x[y == 1], y[y == 1], 3, [1.0])
    assert (alone.probabilities(x) == [0, 1, 0]).all()
    assert (alone.steps, alone.converged) == (0, True)


def test_a_feature_that_only_rounding_moves_does_not_count() -> None:
    x, y = features(1, 2)
    x[:, 5] += np.float32(1e-7) * y
    (fit,) = fits(x, y, 2, [10.0])
    assert (fit.weights[:, 5] == 0).all()


def test_a_fit_that_is_not_given_the_steps_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    assert of(1, 2, 10.0)[0].steps > 5
    monkeypatch.setattr(logistic, "MOST_STEPS", 5)
    (fit,) = of(1, 2, 10.0)
    assert (fit.steps, fit.converged) == (5, False)
