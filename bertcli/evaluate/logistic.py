"""Multinomial logistic regression with L2: scikit-learn's LogisticRegression, by L-BFGS.

    minimize   -1/n Σ_i ln softmax(W x_i + b)[y_i] + |W|² / (2 C n)

The features x are standardized: mean 0 and variance 1 over the n items. The biases b are not penalized. Of two labels
scikit-learn penalizes w = W_1 - W_0 alone; here W_0 = -W_1 then, and |w|² = 2 |W|². L-BFGS: Nocedal and Wright 2006,
algorithm 7.4, begun from the Hessian where all labels are as likely, [XᵀX / n] / labels + 1 / (C n); a move is halved
until the value falls by a ten-thousandth of what the slope promises (Armijo 1966).
"""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from bertcli.engine.float64 import inverse, product, vector_product
from bertcli.evaluate.metrics import Numbers, Whole, one_hot
from bertcli.tasks.compute.scores import softmax
from bertcli.tracing.dispatch import Array

STRENGTHS = tuple(10.0**power for power in range(-4, 2))  # C, from strong to weak regularization
TOLERANCE = 1e-7  # a fit has converged where no component of the gradient is larger
ROUGH = 1e-5  # the same where only the best C is looked for
MOST_STEPS = 2000
MEMORY = 10  # moves from which L-BFGS makes its curvature
LEAST_CURVATURE = 1e-4  # of the mean: what L-BFGS begins from is as exact as float32
FLAT = 1e-6  # a feature that varies by less than this share of its largest value is rounding


class Fit(NamedTuple):
    """A classifier of features as they are; `steps` of L-BFGS, and whether it `converged`.

    weights [label, feature], biases [label]: -inf of a label that none of the items had.
    """

    weights: Numbers
    biases: Numbers
    steps: int
    converged: bool

    def logits(self, x: Array) -> Numbers:
        """W x + b: [item, feature] -> [item, label]"""
        return np.asarray(product(x, self.weights.T) + self.biases)

    def probabilities(self, x: Array) -> Numbers:
        """[item, feature] -> [item, label]"""
        return softmax(self.logits(x))


def fits(
    x: Array, labels: Whole, count: int, strengths: Sequence[float], tolerance: float = TOLERANCE
) -> Iterator[Fit]:
    """A fit for each C of features [item, feature] and labels [item] < count, each begun where the last ended."""
    present, y = np.unique(labels, return_inverse=True)
    mean, spread = x.mean(axis=0, dtype=np.float64), x.std(axis=0, dtype=np.float64)
    spread[spread <= FLAT * np.abs(x).max(axis=0)] = np.inf
    standard, true = np.column_stack([(x - mean) / spread, np.ones(len(x))]), one_hot(y, len(present))
    theta = np.zeros((len(present), x.shape[1] + 1))  # W and, in the last column, b
    curvature = vector_product(standard.T, standard.T) / (len(present) * len(x))
    for strength in strengths:
        penalty = np.full(theta.shape[1], (2 if len(present) == 2 else 1) / (strength * len(x)))
        penalty[-1] = 0

        def objective(theta: Numbers, penalty: Numbers = penalty) -> tuple[float, Numbers]:
            log_p = product(standard, theta.T)
            log_p -= np.logaddexp.reduce(log_p, axis=1, keepdims=True)
            wrong = (np.exp(log_p) - true).T / len(x)
            value = -(true * log_p).sum() / len(x) + (penalty * theta**2).sum() / 2
            return value, product(wrong, standard) + penalty * theta

        begun_from = _begun_from(curvature, penalty)
        theta, steps, converged = minimum(objective, theta, tolerance, begun_from)
        weights, biases = np.zeros((count, x.shape[1])), np.full(count, -np.inf)
        weights[present] = theta[:, :-1] / spread
        biases[present] = theta[:, -1] - product(weights[present], mean)
        yield Fit(weights, biases, steps, converged)


def minimum(
    objective: Callable[[Numbers], tuple[float, Numbers]], x: Numbers, tolerance: float, inverse: Numbers
) -> tuple[Numbers, int, bool]:
    """Where a convex function that gives value and gradient is least, the steps to there, and whether it converged.

    inverse: roughly that of its Hessian, for each row of x.
    """
    value, gradient = objective(x)
    past: deque[tuple[Numbers, Numbers]] = deque(maxlen=MEMORY)
    for step in range(MOST_STEPS):
        if np.abs(gradient).max() <= tolerance:
            return x, step, True
        move = -_curved(gradient, past, inverse)
        least = 1e-4 * np.vdot(gradient, move)
        while (found := objective(x + move))[0] > value + least:
            move, least = move / 2, least / 2
        change = found[1] - gradient
        if not np.vdot(move, change) > 0:
            return x, step, False  # what is left to gain is rounding
        past.append((move, change))
        x, (value, gradient) = x + move, found
    return x, MOST_STEPS, False


def _begun_from(curvature: Numbers, penalty: Numbers) -> Numbers:
    """Roughly the inverse of curvature + penalty; directions that hardly curve are left to L-BFGS."""
    least = LEAST_CURVATURE * np.trace(curvature) / len(curvature)
    return inverse(curvature + np.diag(np.maximum(penalty, least)))


def _curved(q: Numbers, past: Sequence[tuple[Numbers, Numbers]], inverse: Numbers) -> Numbers:
    """A gradient times the inverse Hessian that past moves and the changes of the gradient with them imply."""
    shares = []
    for move, change in reversed(past):
        shares.append(np.vdot(move, q) / np.vdot(move, change))
        q = q - shares[-1] * change
    q = product(q, inverse)
    if past:
        move, change = past[-1]
        q = q * (np.vdot(move, change) / np.vdot(change, product(change, inverse)))
    for (move, change), share in zip(past, reversed(shares), strict=True):
        q = q + (share - np.vdot(change, q) / np.vdot(move, change)) * move
    return q
