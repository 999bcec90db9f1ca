"""Data from which the page explains a matrix product: its matrix, or of each number the largest terms and the rest.

The products themselves are worked out in the browser, by worked.js.
"""

from base64 import b64encode
from collections.abc import Mapping, Sequence
from math import prod
from typing import Any, NamedTuple

import numpy as np

from bertcli.analysis.trace.steps import Step
from bertcli.extensions.of_kinds import kind_modules
from bertcli.tracing.dispatch import Array, Integers


def encoded(array: Any, dtype: str) -> str:
    """An array's numbers as base64, in C order; `dtype` is a NumPy type such as "<f4"."""
    return b64encode(np.ascontiguousarray(array, dtype=dtype).tobytes()).decode("ascii")


class Matrix(NamedTuple):
    """The parameter that a product multiplies by: its path, and its numbers with a row for each output."""

    path: str
    rows: Array  # [output, input]


def matrix_of(step: Step, weights: Mapping[str, Array]) -> Matrix | None:
    """The matrix of a step that multiplies by a parameter; None for any other step.

    The outputs of all attention heads stand side by side as rows, the taps of a convolution side by side as inputs.
    """
    if step.multiplier is None:
        return None
    path, axes, inputs = step.multiplier
    array = weights[path].transpose(axes)
    return Matrix(path, array.reshape(prod(array.shape[:-inputs]), -1))


def operand_of(step: Step, steps: Sequence[Step], results: Mapping[str, Array], weights: Mapping[str, Array]) -> Array:
    """The array that a product multiplies by its matrix: [row, input]."""
    source = step.sources[0]
    if isinstance(source, str):
        return weights[source]
    x = by_rows(results[steps[source].path])
    if step.op != "convolve":
        return x
    width = weights[step.parameters[0]].shape[-1]
    before = width // 2
    padded = np.pad(x, ((before, width - 1 - before), (0, 0)))
    shifted = [padded[tap : tap + len(x)] for tap in range(width)]
    return np.stack(shifted, axis=-1).reshape(len(x), -1)


def by_rows(result: Array) -> Array:
    """Reshape a result to [row, number]; [head, row, number] has its heads side by side."""
    if result.ndim < 3:
        return np.atleast_2d(result)
    return result.transpose(1, 0, 2).reshape(result.shape[1], -1)


class Products(NamedTuple):
    """Some rows of a product: of each number its largest terms, and the sum of all other terms.

    places [row, output, term]: indices of the inputs of these terms, the largest first. weights [row, output, term]:
    what these inputs are multiplied by. rest [row, output]: the sum of the other terms.
    """

    rows: list[int]
    places: Integers
    weights: Array
    rest: Array

    def record(self) -> dict[str, Any]:
        """{rows, shape, places, weights, rest}: arrays in base64, numbers as float32, places as 16 bits, unsigned."""
        return {
            "rows": self.rows,
            "shape": list(self.places.shape),
            "places": encoded(self.places, "<u2"),
            "weights": encoded(self.weights, "<f4"),
            "rest": encoded(self.rest, "<f4"),
        }


def largest(x: Array, matrix: Array, rows: list[int], terms: int) -> Products:
    """The `terms` largest terms of each number of x [row, input] times matrix [output, input], in these rows."""
    places, weights, rest = [], [], []
    for row in rows:
        products = matrix * x[row]
        # argpartition finds the largest without their order.
        inputs = np.argpartition(np.abs(products), -terms, axis=1)[:, -terms:]
        kept = np.take_along_axis(products, inputs, axis=1)
        order = np.argsort(-np.abs(kept), axis=1)
        inputs = np.take_along_axis(inputs, order, axis=1)
        places.append(inputs.astype(np.uint16))
        weights.append(np.take_along_axis(matrix, inputs, axis=1))
        rest.append(products.sum(axis=1, dtype=np.float64) - kept.sum(axis=1, dtype=np.float64))
    return Products(rows, np.array(places), np.array(weights), np.array(rest, np.float32))


def rows_of_tables(step: Step, weights: Mapping[str, Array]) -> dict[str, Sequence[int]]:
    """The row numbers that a step reads of tables (embeddings, biases), by the paths of these parameters."""
    if step.op in ("embed", "embed_counted", "add_row", "relative_bias"):
        path, ids = step.parameters[0], step.settings.get("ids", ())
        first = step.settings.get("padding", 0)
        rows = {
            "embed": sorted(set(ids)),
            # A row for padding, then one for each other token.
            "embed_counted": range(first, first + len(ids) + 1),
            "add_row": range(1),
            "relative_bias": range(len(weights[path])),
        }
        return {path: rows[step.op]}
    if any(step.op in formulas.WHOLE_TABLES for formulas in kind_modules("formulas")):
        return {path: range(len(weights[path])) for path in step.parameters if weights[path].ndim == 2}
    source = step.sources[0] if step.sources else None
    return {source: range(len(weights[source]))} if isinstance(source, str) else {}
