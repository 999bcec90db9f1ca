"""Choose the numbers of a traced pass that its page holds, so that they fit into a number of bytes.

In this order: the results of one layer, of the embeddings and of the heads; then their inputs, which are whole weights
where there is room, else the largest terms of each product and the sum of the others; then the results of the other
layers, and their inputs. `choose` holds this order, `Selection` the bytes.
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from bertcli.analysis.trace.products import (
    Matrix,
    Products,
    by_rows,
    encoded,
    largest,
    matrix_of,
    operand_of,
    rows_of_tables,
)
from bertcli.analysis.trace.steps import Step
from bertcli.network.module import parameters
from bertcli.tracing.dispatch import Array

if TYPE_CHECKING:
    from bertcli.analysis.trace.recorder import Trace
    from bertcli.loaded_model import LoadedModel

# Fewest features of a result that is not kept whole; with fewer, the result is left out.
FEWEST = 8
# Entries of the vocabulary kept of a prediction.
BEST = 5
# Bytes of a record for its names, quotes and commas.
BESIDE = 60
# Terms kept of each number of a product whose matrix is not on the page: the first of these that fits.
TERMS = (12, 8, 6, 4, 3)
# Share of the room for the products of the chosen layer, so that the other layers' results fit, too.
SHARE = 0.75
# Ops whose results are the residual stream: kept whole before other results.
RESIDUAL = ("add", "norm", "new_norm", "rms_norm")
LAYER_NUMBER = re.compile(r"\blayers\.(\d+)\b")


def sections_of(steps: Iterable[Step], layers: int) -> list[int]:
    """The section of the page for each step: 0 the embeddings, 1 … L a layer, L + 1 the prediction heads."""
    sections, section = list[int](), 0
    for step in steps:
        layer = LAYER_NUMBER.search(step.path)
        if layer:
            section = int(layer[1]) + 1
        elif section:
            section = layers + 1
        sections.append(section)
    return sections


class Chosen(NamedTuple):
    """The section (0 is the embeddings), head and token that the page shows first; their numbers are kept first.

    head counts from 0 here, as in arrays.
    """

    section: int
    head: int
    token: int


class Numbers(NamedTuple):
    """An array on the page. features: the indices kept of its last axis; rows: of its first axis; None is all."""

    array: Array
    features: list[int] | None = None
    rows: list[int] | None = None

    def record(self) -> dict[str, Any]:
        """{shape, base64, features?, rows?}: float32, little-endian, in C order."""
        record: dict[str, Any] = {"shape": list(self.array.shape), "base64": encoded(self.array, "<f4")}
        if self.features is not None:
            record["features"] = self.features
        if self.rows is not None:
            record["rows"] = self.rows
        return record

    @property
    def bytes(self) -> int:
        """An upper bound of the bytes that the record takes on the page."""
        return encoded_size(self.array.shape) + BESIDE + len(json.dumps([self.array.shape, self.features, self.rows]))


def encoded_size(shape: Iterable[int], item: int = 4) -> int:
    """The bytes of an array of this shape in base64, with `item` bytes a number."""
    return 4 * ((item * prod(shape) + 2) // 3)


class Selection:
    """The numbers kept so far, and the bytes left (`room`).

    `arrays` (results) and `products` are by the path of their step, `parameters` by their own path. `given`: parameters
    that another selection has put on the page already.
    """

    def __init__(
        self,
        trace: "Trace",
        model: "LoadedModel",
        room: int,
        chosen: Chosen,
        given: Mapping[str, Numbers] | None = None,
    ) -> None:
        self.arrays: dict[str, Numbers] = {}
        self.parameters: dict[str, Numbers] = {}
        self.products: dict[str, Products] = {}
        # Bytes of the page that are left.
        self.room = room
        # Parameters that are whole elsewhere on the page.
        self._given = {path for path, numbers in (given or {}).items() if numbers.rows is None}
        self._trace = trace
        self._chosen = chosen
        self._weights = {parameter.path: parameter.array for parameter in parameters(model.network)}

    def _take(self, kept: dict[str, Numbers], more: Mapping[str, Numbers]) -> bool:
        """Add all of `more` to `kept` if they fit into the room; return False, and add none, if they do not."""
        present = {path for path, numbers in kept.items() if numbers.rows is None}
        if kept is self.parameters:
            present |= self._given
        new = {path: numbers for path, numbers in more.items() if path not in present}
        needed = sum(len(path) + numbers.bytes for path, numbers in new.items())
        if needed > self.room:
            return False
        self.room -= needed
        kept |= new
        return True

    # ------------------------------------------------------------------------------------------------- results

    def keep(self, steps: Iterable[Step]) -> None:
        """Keep the results of these steps whole, or, where they do not fit, the first features of each."""
        results = self._trace.arrays
        more = {step.path: results[step.path] for step in steps if step.path not in self.arrays}
        if self._take(self.arrays, {path: Numbers(array) for path, array in more.items()}):
            return
        flat = {path: array for path, array in more.items() if array.ndim < 3}
        features = max((array.shape[-1] for array in flat.values()), default=0)
        while features >= FEWEST:
            if self._take(self.arrays, {path: _first(array, features) for path, array in flat.items()}):
                return
            features //= 2

    def keep_best(self, step: Step) -> None:
        """Keep only the logits of the BEST entries of each row."""
        logits = self._trace.arrays[step.path]
        of_each_row = np.argsort(-np.atleast_2d(logits), axis=1)[:, :BEST]
        best: list[int] = np.unique(of_each_row).tolist()
        self._take(self.arrays, {step.path: Numbers(logits[..., best], best)})

    # ---------------------------------------------------------------------------- what the results were made from

    def keep_origins(self, steps: Iterable[Step], share: float = 1.0) -> None:
        """Keep the parameters that these steps read: whole matrices, or the largest terms of their products.

        Products take at most `share` of the room that is left. Where not all fit, those of the chosen token and head
        are kept first.
        """
        matrices = self._keep_tables(steps)
        # 1. All matrices whole: then every number of every product can be worked out.
        whole = {matrix.path: Numbers(matrix.rows) for matrix in matrices.values()}
        if self._take(self.parameters, whole):
            return
        # 2. For all tokens the largest terms of each number, as many as fit.
        room = int(share * self.room)
        tokens = max(map(self._row_count, matrices), default=0)
        for terms in TERMS:
            if self._take_products(matrices, tokens, terms, room):
                return
        # 3. The matrices of the chosen head, and the fewest terms for as many tokens as fit, the chosen one first.
        for path, matrix in matrices.items():
            head = self._rows_of_head(path, matrix)
            if head is not None:
                self._take(self.parameters, {matrix.path: _chosen_rows(matrix.rows, head)})
        room = min(room, self.room)
        while tokens and not self._take_products(matrices, tokens, TERMS[-1], room):
            tokens -= 1

    def _keep_tables(self, steps: Iterable[Step]) -> dict[str, Matrix]:
        """Keep the small parameters (vectors, rows of tables) of these steps; return their matrices, by step path."""
        here = [step for step in steps if step.path in self.arrays and step.path not in self.products]
        for step in here:
            self._take(self.parameters, self._tables(step))
        matrices = {step.path: self._matrix(step) for step in here}
        return {path: matrix for path, matrix in matrices.items() if matrix is not None}

    def _tables(self, step: Step) -> dict[str, Numbers]:
        """The small parameters of a step: its vectors, the table rows that it looks up, and some matrix rows.

        If only some features of the result are kept, these are the matrix rows that give them.
        """
        matrix = matrix_of(step, self._weights)
        # Indices of the features that are kept; None for all.
        outputs = self.arrays[step.path].features if matrix is not None else None

        kept: dict[str, Numbers] = {}
        for path in step.parameters:
            array = self._weights.get(path)
            if array is not None and array.ndim == 1:
                kept[path] = _chosen_rows(array, outputs)
        for path, rows in rows_of_tables(step, self._weights).items():
            kept[path] = _chosen_rows(self._weights[path], rows)
        if matrix is not None and outputs is not None:
            kept[matrix.path] = _chosen_rows(matrix.rows, outputs)
        return kept

    def _matrix(self, step: Step) -> Matrix | None:
        """The matrix of a step, if result and operand are kept whole: only then can the page work out the product."""
        if self.arrays[step.path].features is not None:
            return None
        source = step.sources[0] if step.sources else ""
        # A source that is a path is a parameter, which is whole.
        if isinstance(source, int):
            operand = self.arrays.get(self._trace.steps[source].path)
            if operand is None or operand.features is not None:
                return None
        return matrix_of(step, self._weights)

    def _row_count(self, path: str) -> int:
        return len(by_rows(self._trace.arrays[path]))

    def _take_products(self, matrices: Mapping[str, Matrix], count: int, terms: int, room: int) -> bool:
        """Keep `terms` terms of each number in `count` rows if they take at most `room` bytes; False if they do not."""
        needed = self._size_of_products(matrices, count, terms)
        if needed > room:
            return False
        self.room -= needed
        steps = self._trace.steps
        for step in steps:
            if step.path in matrices:
                matrix, rows = matrices[step.path].rows, self._first_rows(self._row_count(step.path), count)
                x = operand_of(step, steps, self._trace.arrays, self._weights)
                self.products[step.path] = largest(x, matrix, rows, min(terms, matrix.shape[1]))
        return True

    def _size_of_products(self, matrices: Mapping[str, Matrix], count: int, terms: int) -> int:
        """The bytes of `terms` terms of each number in `count` rows of all these products."""
        needed = 0
        for path, matrix in matrices.items():
            rows, (outputs, inputs) = self._first_rows(self._row_count(path), count), matrix.rows.shape
            shape = len(rows), outputs, min(terms, inputs)
            needed += len(json.dumps([path, rows])) + 3 * BESIDE
            needed += encoded_size(shape) + encoded_size(shape, 2) + encoded_size(shape[:2])
        return needed

    def _first_rows(self, rows: int, count: int) -> list[int]:
        """`count` row numbers of a result, ascending: the chosen token's, and the first others."""
        if count >= rows:
            return list(range(rows))
        token = min(self._chosen.token, rows - 1)
        return sorted([token, *(row for row in range(rows) if row != token)][:count])

    def _rows_of_head(self, path: str, matrix: Matrix) -> range | None:
        """The matrix rows of the chosen attention head, for a step that computes query, key or value; else None."""
        if path.rpartition(".")[2] not in ("query", "key", "value"):
            return None
        size, heads = self._trace.sizes["D"], self._trace.sizes["A"]
        # Fewer heads of key and value are shared by several of query.
        stored_heads = len(matrix.rows) // size
        first = self._chosen.head * stored_heads // heads * size
        return range(first, first + size)


def _first(array: Array, features: int) -> Numbers:
    """The first numbers of each row, or all if there are no more."""
    if features >= array.shape[-1]:
        return Numbers(array)
    return Numbers(array[..., :features], list(range(features)))


def _chosen_rows(table: Array, rows: Sequence[int] | None) -> Numbers:
    """Some rows of a table; row numbers beyond its end are ignored."""
    if rows is None:
        return Numbers(table)
    kept = [row for row in rows if row < len(table)]
    return Numbers(table) if len(kept) == len(table) else Numbers(table[kept], rows=kept)


def choose(
    trace: "Trace", model: "LoadedModel", chosen: Chosen, room: int, given: Mapping[str, Numbers] | None = None
) -> Selection:
    """Choose the numbers that fit into `room` bytes, those of the heads and of the chosen layer first.

    `given` are parameters that the page has already, from another pass.
    """
    layers = model.config.num_hidden_layers
    kept = Selection(trace, model, room, chosen, given)
    ran = [step for step in trace.steps if step.path in trace.arrays]
    logits = [step for step in ran if step.output.symbols.split(" × ")[-1] == "V"]
    steps = [step for step in ran if step not in logits]
    sections = sections_of(trace.steps, layers)
    here = [step for step in steps if sections[step.index] == max(1, chosen.section)]
    ends = [step for step in steps if sections[step.index] in (0, layers + 1)]
    others = [step for step in steps if step not in here and step not in ends]

    # The chosen layer's attention, and the predictions.
    kept.keep(step for step in here if step.op == "softmax")
    for step in logits:
        kept.keep_best(step)
    kept.keep(step for step in here if step.output.symbols.endswith("S × S"))

    # Its residuals and norms, then all its results with those of the embeddings and the heads; what these read, too.
    residuals = [step for step in here if step.op in RESIDUAL]
    for chosen_steps in (residuals, [*ends, *logits, *here]):
        read = {source for step in chosen_steps for source in step.sources}
        kept.keep(step for step in steps if step in chosen_steps or step.index in read)
    kept.keep_origins([*logits, *ends, *here], SHARE)

    # The other layers: attention first, then all results, then what they were made from.
    kept.keep(step for step in steps if step.op == "softmax")
    kept.keep(steps)
    kept.keep_origins(others)
    return kept
