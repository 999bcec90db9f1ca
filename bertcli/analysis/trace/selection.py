"""Which numbers of a traced pass a page holds: all, or as many as fit into so many bytes.

First the attention weights of one layer and the result, then those of all layers, then the layer whole, then the first
features of what is left, and in the end the weights from which the kept results were made.
"""

import json
import re
from base64 import b64encode
from collections.abc import Iterable, Mapping
from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from bertcli.analysis.trace.steps import Step
from bertcli.engine.seam import Array
from bertcli.errors import BertcliError
from bertcli.network.module import parameters

if TYPE_CHECKING:
    from bertcli.analysis.trace.recorder import Trace
    from bertcli.model import Model

FEWEST, MOST_ROWS = 8, 64  # features of a result that is not whole; rows of a weight matrix
BEST = 5  # entries of the vocabulary kept of a prediction
BESIDE = 50  # bytes of a record for its names, quotes and commas
LAYER = re.compile(r"\blayers\.(\d+)\b")


def stop_of(step: Step, layers: int) -> int:
    """0 for the embeddings and what is before the layers, 1 … L for a layer, L + 1 for the heads."""
    layer = LAYER.search(step.path)
    if layer:
        return int(layer[1]) + 1
    before = step.path.startswith("embeddings") or (step.path.startswith("encoder") and step.index < layers)
    return 0 if before else layers + 1


class Numbers(NamedTuple):
    """An array of the page; `features` are those kept of its last axis, None for all."""

    array: Array
    features: list[int] | None = None

    def record(self) -> dict[str, Any]:
        """{shape, base64, features?}: float32, little-endian, in C order."""
        data = np.ascontiguousarray(self.array, dtype="<f4")
        record: dict[str, Any] = {"shape": list(data.shape), "base64": b64encode(data.tobytes()).decode("ascii")}
        return record if self.features is None else record | {"features": self.features}


def encoded_size(shape: Iterable[int]) -> int:
    """Bytes of base64 for so many float32."""
    return 4 * ((4 * prod(shape) + 2) // 3)


class Selection:
    """The numbers that fit into a page: `arrays` are results by the path of their step, `parameters` by their own."""

    def __init__(self, results: Mapping[str, Array], weights: Mapping[str, Array], room: int) -> None:
        self.arrays: dict[str, Numbers] = {}
        self.parameters: dict[str, Numbers] = {}
        self.size = 0  # bytes of base64
        self._results, self._weights, self._room = results, weights, room

    def _take(self, kept: dict[str, Numbers], more: Mapping[str, Numbers]) -> bool:
        """Whether all of these still fit; if so they are kept."""
        needed = sum(_record_size(path, numbers) for path, numbers in more.items())
        if needed > self._room:
            return False
        self._room -= needed
        self.size += sum(encoded_size(numbers.array.shape) for numbers in more.values())
        kept |= more
        return True

    def keep(self, steps: Iterable[Step]) -> None:
        """The results of all these whole; else of each the same number of first features, as many as fit."""
        more = {step.path: self._results[step.path] for step in steps if step.path not in self.arrays}
        if self._take(self.arrays, {path: Numbers(array) for path, array in more.items()}):
            return
        flat = {path: array for path, array in more.items() if array.ndim < 3}
        features = max((array.shape[-1] for array in flat.values()), default=0)
        while features >= FEWEST:
            if self._take(self.arrays, {path: _first(array, features) for path, array in flat.items()}):
                return
            features //= 2

    def keep_best(self, step: Step) -> None:
        """Of logits those of the best entries of each row."""
        logits = self._results[step.path]
        best = sorted({int(i) for row in np.atleast_2d(logits) for i in np.argsort(-row)[:BEST]})
        self._take(self.arrays, {step.path: Numbers(logits[..., best], best)})

    def keep_parameters(self, step: Step) -> None:
        """A step's vectors, and of its matrix [outputs, inputs] the rows of features that are kept of its result."""
        if step.path not in self.arrays or step.op.startswith("embed"):
            return
        features = self.arrays[step.path].features
        for path in step.parameters:
            array = self._weights.get(path)
            if array is None or array.ndim > 2 or path in self.parameters:
                continue
            table = array.T if step.op == "project" else array
            rows = [row for row in features or range(len(table)) if row < len(table)]
            if array.ndim == 1:
                self._take(self.parameters, {path: _rows(table, rows)})
                continue
            rows = rows[:MOST_ROWS]
            while rows and not self._take(self.parameters, {path: _rows(table, rows)}):
                rows = rows[: len(rows) // 2]


def _record_size(path: str, numbers: Numbers) -> int:
    """At least as many bytes as this takes in the page."""
    shape = numbers.array.shape
    return encoded_size(shape) + BESIDE + len(json.dumps([path, shape, numbers.features]))


def _first(array: Array, features: int) -> Numbers:
    whole = features >= array.shape[-1]
    return Numbers(array) if whole else Numbers(array[..., :features], list(range(features)))


def _rows(table: Array, rows: list[int]) -> Numbers:
    return Numbers(table[rows], None if len(rows) == len(table) else rows)


def choose(trace: "Trace", model: "Model", layer: int, room: int, full: bool) -> Selection:
    """The numbers that fit into `room` bytes, those of the heads and of this layer first; with `full` all of them.

    Errors: BertcliError if `full` needs more.
    """
    results, layers = trace.arrays, model.config.num_hidden_layers
    needed = sum(_record_size(path, Numbers(array)) for path, array in results.items())
    if full and needed > room:
        raise BertcliError(
            f"The whole pass needs {needed / 1e6:,.1f} MB of numbers, and a page has room for {room / 1e6:,.1f} MB: "
            "leave out --full, or give a shorter text."
        )
    weights = {parameter.path: parameter.array for parameter in parameters(model.network)}
    kept = Selection(results, weights, room)
    ran = [step for step in trace.steps if step.path in results]
    logits = [step for step in ran if results[step.path].shape[-1] == model.config.vocab_size]
    steps = [step for step in ran if step not in logits]
    chosen = [step for step in steps if stop_of(step, layers) == layer + 1]
    if full:
        kept.keep(ran)
    else:
        kept.keep(step for step in chosen if step.op == "softmax")
        for step in logits:
            kept.keep_best(step)
        kept.keep(step for step in chosen if step.output.symbols.endswith("S × S"))
        kept.keep(step for step in steps if step.op == "softmax")
        kept.keep(chosen)
        kept.keep(steps)
    outside = [step for step in ran if stop_of(step, layers) in (0, layers + 1)]
    for step in [*chosen, *outside, *ran]:
        kept.keep_parameters(step)
    return kept
