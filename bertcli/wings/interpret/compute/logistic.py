"""Logistic regression with L2 for `probe`, as scikit-learn's LogisticRegression has it, by L-BFGS.

    minimize   -1/n Σ_i ln softmax(W x_i + b)[y_i] + |W|² / (2 C n)

The features x are standardized: mean 0 and variance 1 over the n items. The biases b are not penalized. Of two labels
scikit-learn penalizes w = W_1 - W_0 alone; here W_0 = -W_1 then, and |w|² = 2 |W|². L-BFGS: Nocedal and Wright 2006,
algorithm 7.4, begun from the Hessian where all labels are as likely, [XᵀX / n] / labels + 1 / (C n); a move is halved
until the value falls by a ten-thousandth of what the slope promises (Armijo 1966).
"""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from bertcli.statistics.metrics import Numbers, Whole, one_hot
from bertcli.tasks.parts.scores import sigmoid, softmax
from bertcli.tracing.dispatch import Array

STRENGTHS = tuple(10.0**power for power in range(-4, 2))  # C, from strong to weak regularization
TOLERANCE = 1e-7  # a fit has converged where no component of the gradient is larger
ROUGH = 1e-5  # the same where only the best C is looked for
MOST_STEPS = 2000
MEMORY = 10  # moves from which L-BFGS makes its curvature
LEAST_CURVATURE = 1e-2  # of a standardized feature's: what L-BFGS begins from is as exact as float32
CERTAIN = 30.0  # the logit of a label that all items have, or the opposite of one that none has: 1e-13 of doubt
FLAT = 1e-6  # a feature that varies by less than this share of its largest value is rounding


Inverse = Callable[[Numbers], Numbers]
# A move, the change of the gradient with it, and their product.
Past = tuple[Numbers, Numbers, np.floating[Any]]


class Fit(NamedTuple):
    """A classifier of features as they are; `steps` of L-BFGS, and whether it `converged`.

    weights [label, feature], biases [label]: -inf of a label that none of the items had. multi_label: each label has
    a probability of its own, and the regression of a label is one against the rest.
    """

    weights: Numbers
    biases: Numbers
    steps: int
    converged: bool
    multi_label: bool = False

    def logits(self, x: Array) -> Numbers:
        """W x + b: [item, feature] -> [item, label]"""
        return np.asarray(x @ self.weights.T + self.biases)

    def probabilities(self, x: Array) -> Numbers:
        """[item, feature] -> [item, label]"""
        logits = self.logits(x)
        return sigmoid(logits) if self.multi_label else softmax(logits)


class Features:
    """Features [item, feature], standardized once for all regressions on them."""

    def __init__(self, x: Array) -> None:
        self.mean = x.mean(axis=0, dtype=np.float64)
        self.spread = x.std(axis=0, dtype=np.float64)
        # A feature that does not vary is 0 for all items, and has no weight.
        is_flat = self.spread <= FLAT * np.abs(x).max(axis=0)
        self.spread[is_flat] = np.inf
        standard = (x - self.mean) / self.spread
        # The ones are for the biases.
        self.standard = np.column_stack([standard, np.ones(len(x))])
        self._x = (standard / len(x) ** 0.5).astype(np.float32)
        # The smaller one of XXᵀ and XᵀX: the inverse of one gives that of the other (Woodbury).
        items, features = self._x.shape
        self._of_items = items < features
        rows = self._x if self._of_items else self._x.T
        exact = rows.astype(np.float64)
        self._products = exact @ exact.T
        self._inverse: tuple[tuple[int, float], Array] | None = None

    def fits(
        self, labels: Whole, count: int, strengths: Sequence[float], tolerance: float = TOLERANCE
    ) -> Iterator[Fit]:
        """A fit for each C of labels [item] < count, each begun where the last ended."""
        present, y = np.unique(labels, return_inverse=True)
        true = one_hot(y, len(present))
        width = self.standard.shape[1] - 1
        # W and, in the last column, b.
        theta = np.zeros((len(present), width + 1))
        for strength in strengths:
            penalty = self._penalty(len(present), strength)

            def objective(theta: Numbers, penalty: Numbers = penalty) -> tuple[float, Numbers]:
                log_p = self.standard @ theta.T
                log_p -= np.logaddexp.reduce(log_p, axis=1, keepdims=True)
                loss = -(true * log_p).sum() / len(true)
                value = loss + (penalty * theta**2).sum() / 2
                errors = (np.exp(log_p) - true).T / len(true)
                gradient = errors @ self.standard + penalty * theta
                return value, gradient

            preconditioned = partial(self._inverse_curvature, classes=len(present), penalty=float(penalty[0]))
            theta, steps, converged = minimum(objective, theta, tolerance, preconditioned)
            # A label that no item has is never predicted.
            weights = np.zeros((count, width))
            biases = np.full(count, -np.inf)
            weights[present] = theta[:, :-1] / self.spread
            biases[present] = theta[:, -1] - weights[present] @ self.mean
            yield Fit(weights, biases, steps, converged)

    def multi_label_fits(
        self, true: Numbers, strengths: Sequence[float], tolerance: float = TOLERANCE
    ) -> Iterator[Fit]:
        """A fit for each C of several labels an item [item, label]: scikit-learn's OneVsRestClassifier."""
        of_labels = [self.fits(column.astype(np.intp), 2, strengths, tolerance) for column in true.T]
        for label_fits in zip(*of_labels, strict=True):
            # A sigmoid of the difference is a softmax over both.
            weights = np.array([fit.weights[1] - fit.weights[0] for fit in label_fits])
            biases = np.array([_odds(fit.biases) for fit in label_fits])
            steps = max(fit.steps for fit in label_fits)
            converged = all(fit.converged for fit in label_fits)
            yield Fit(weights, biases, steps, converged, multi_label=True)

    def _penalty(self, classes: int, strength: float) -> Numbers:
        """The factor of |W|² for each column of theta: 0 for the biases, which are not penalized."""
        items, columns = self.standard.shape
        # scikit-learn has one row of weights for two labels, here there are two that are opposite.
        rows = 2 if classes == 2 else 1
        penalty = np.full(columns, rows / (strength * items))
        penalty[-1] = 0
        return penalty

    def _inverse_curvature(self, rows: Numbers, classes: int, penalty: float) -> Numbers:
        """Rows [.., feature + 1] times about the inverse Hessian where all labels are as likely.

        Of the weights that is (XᵀX / (labels n) + penalty)⁻¹. Standardized features have no product with the ones of
        the biases, whose own is 1 / labels.
        """
        least = max(penalty, LEAST_CURVATURE / classes)
        weights = rows[:, :-1].astype(np.float32)
        inverted = self._inverted(classes, least)
        if self._of_items:
            across = ((weights @ self._x.T) @ inverted) @ self._x
            found = (weights - across / np.float32(classes)) / np.float32(least)
        else:
            found = weights @ inverted
        inverted_rows = np.empty_like(rows)
        inverted_rows[:, :-1] = found
        inverted_rows[:, -1] = rows[:, -1] * classes
        return inverted_rows

    def _inverted(self, classes: int, penalty: float) -> Array:
        """The inverse of products / labels + penalty, in float32; the last one is kept for the next fit."""
        key = (classes, penalty)
        kept = self._inverse
        if kept is None or kept[0] != key:
            curvature = self._products / classes + np.diag(np.full(len(self._products), penalty))
            kept = key, np.linalg.inv(curvature).astype(np.float32)
            self._inverse = kept
        return kept[1]


def _odds(biases: Numbers) -> float:
    """The bias of a label against the rest, from those of both; a label that all or no items have is certain."""
    rest, label = biases.tolist()
    if np.isfinite(label - rest):
        return float(label - rest)
    return CERTAIN if np.isfinite(label) else -CERTAIN


def fits(
    x: Array, labels: Whole, count: int, strengths: Sequence[float], tolerance: float = TOLERANCE
) -> Iterator[Fit]:
    """A fit for each C of features [item, feature] and labels [item] < count, each begun where the last ended."""
    return Features(x).fits(labels, count, strengths, tolerance)


def minimum(
    objective: Callable[[Numbers], tuple[float, Numbers]], x: Numbers, tolerance: float, inverse: Inverse
) -> tuple[Numbers, int, bool]:
    """Minimize a convex function by L-BFGS: the minimum, the number of steps, and True if it converged.

    objective: gives value and gradient.
    inverse: multiplies rows with roughly the inverse of its Hessian, which is the same for each row of x.
    """
    value, gradient = objective(x)
    past: deque[Past] = deque(maxlen=MEMORY)
    for step in range(MOST_STEPS):
        if np.abs(gradient).max() <= tolerance:
            return x, step, True
        move = -_curved(gradient, past, inverse)
        # Armijo's condition: a step must gain a share of what the gradient promises, else half of it is tried.
        allowed = 1e-4 * np.vdot(gradient, move)
        new_value, new_gradient = objective(x + move)
        while new_value > value + allowed:
            move, allowed = move / 2, allowed / 2
            new_value, new_gradient = objective(x + move)
        change = new_gradient - gradient
        rise = np.vdot(move, change)
        if not rise > 0:
            # The gradient no longer falls along the move: what is left to gain is rounding.
            return x, step, False
        past.append((move, change, rise))
        x = x + move
        value, gradient = new_value, new_gradient
    return x, MOST_STEPS, False


def _curved(q: Numbers, past: Sequence[Past], inverse: Inverse) -> Numbers:
    """A gradient times the inverse Hessian that past moves and the changes of the gradient with them imply."""
    shares = []
    for move, change, rise in reversed(past):
        shares.append(np.vdot(move, q) / rise)
        q = q - shares[-1] * change
    q = inverse(q)
    if past:
        _, change, rise = past[-1]
        q = q * (rise / np.vdot(change, inverse(change)))
    for (move, change, rise), share in zip(past, reversed(shares), strict=True):
        q = q + (share - np.vdot(change, q) / rise) * move
    return q
