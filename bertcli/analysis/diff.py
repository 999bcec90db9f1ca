"""Two models on the same text, step by step: what differs, by how much, and where it begins.

    max_abs = max |x - y|        max_rel = max |x - y| / max(|x|, |y|)        cosine = mean over rows of cos(x, y)

Where the steps are not the same, layers are compared instead, by linear CKA (Kornblith et al. 2019, arXiv 1905.00414):

    CKA(X, Y) = ‖YᵀX‖²_F / (‖XᵀX‖_F ‖YᵀY‖_F)        X, Y [token, feature], columns centered
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import zip_longest
from math import log10
from numbers import Real
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib.npyio import NpzFile
from numpy.typing import NDArray

from bertcli.analysis.results import tokens_of
from bertcli.analysis.trace.recorder import Trace, run_shapes, trace
from bertcli.checkpoint.tensors import FLOATS, open_file
from bertcli.checkpoint.untrusted import open_regular
from bertcli.engine.packing import pack
from bertcli.engine.seam import Array
from bertcli.errors import BertcliError, first_line, shown, shown_object
from bertcli.files.formats import SEVERAL, ending_of
from bertcli.files.texts import from_values
from bertcli.model import Model, expect_model
from bertcli.network.module import parameters
from bertcli.report.documents import ByName, Document, View
from bertcli.report.page import document_table, element, page, table
from bertcli.report.terminal import Column
from bertcli.tasks.compute.batches import check_finite
from bertcli.tasks.compute.task import length_limit
from bertcli.tokens import Tokens

TOLERANCE = 1e-4
MOST = 3  # weights named below the table
DECADES = 8  # of relative differences that shades tell apart, below 1
HIDDEN = re.compile(r"(?:.*\.)?hidden_states\.(\d+)")  # as transformers numbers them: 0 is the embeddings' output
STATES = re.compile(r"embeddings|encoder(?:\.layers\.\d+)?")  # the modules that give them
MEANING = (
    "Both models read the same text, and the outputs of each step are compared: the largest difference, the same "
    "as a share of the largest number of the step (the measure of the tolerance), and the mean cosine of rows. "
    "The first step beyond the tolerance is where they part; later ones follow from it, and need no fault of their own."
)

NO_TEXT = "There is no text to compare on: give one."
OF_CKA = (
    "Linear CKA compares what two layers say about the same tokens: 1 where one is the other up to rotation and scale, "
    "near 0 where they have nothing in common. It says how alike the representations are, not which is better, and "
    "with fewer tokens than dimensions it is too large."
)


@dataclass(frozen=True)
class StepDiff(ByName):
    """A step of both models; None for numbers where one of the outputs has NaN or infinite ones."""

    path: str
    max_abs: float | None
    max_rel: float | None
    cosine: float | None

    def beyond(self, tolerance: float) -> bool:
        """Whether the outputs differ by more than `tolerance` of their largest number, or are no numbers."""
        return self.max_rel is None or self.max_rel > tolerance


@dataclass(frozen=True)
class WeightDiff(ByName):
    """A parameter whose values differ; None if its shapes do."""

    path: str
    max_abs: float | None


@dataclass(frozen=True)
class Diff(View):
    """Two models step by step: `first` is the path of the first step beyond the tolerance, None if there is none."""

    names: tuple[str, str]
    tolerance: float
    steps: tuple[StepDiff, ...]
    weights: tuple[WeightDiff, ...]

    @property
    def first(self) -> str | None:
        return next((step.path for step in self.steps if step.beyond(self.tolerance)), None)

    @property
    def record(self) -> dict[str, Any]:
        steps, weights = [asdict(step) for step in self.steps], [asdict(weight) for weight in self.weights]
        return {"steps": steps, "first": self.first, "weights": weights}

    def document(self) -> Document:
        columns = [Column(name, number=name[0] != "S") for name in ("Step", "Max abs", "Max rel", "Cosine")]
        columns.append(Column("Beyond"))
        rows = []
        for step in self.steps:
            cosine = "NaN" if step.cosine is None else f"{step.cosine:.6f}"
            beyond = "first" if step.path == self.first else "yes" if step.beyond(self.tolerance) else ""
            rows.append([step.path, _small(step.max_abs, "NaN"), _small(step.max_rel, "NaN"), cosine, beyond])
        shades = [[None, None, -_strength(step.max_rel), None, None] for step in self.steps]
        return Document(columns, rows, self.below(), self.record, self.record["steps"], shades)

    def below(self) -> list[str]:
        """What stands below the table: where the two part, and which weights differ most."""
        largest = max(self.steps, key=lambda step: np.inf if step.max_rel is None else step.max_rel)
        where = f"first beyond {self.tolerance:g}: {self.first}" if self.first else f"no step beyond {self.tolerance:g}"
        place = f" at {largest.path}" if largest.max_rel != 0 else ""
        size = _small(largest.max_rel, "not a number")
        lines = [f"{' and '.join(self.names)}: {where}", f"Largest relative difference: {size}{place}"]
        if self.weights:
            most = [f"{weight.path} ({_small(weight.max_abs, '?')})" for weight in self.weights[:MOST]]
            lines.append(f"Weights that differ: {len(self.weights)}, most of all {', '.join(most)}")
        return lines


@dataclass(frozen=True)
class Similarity(View):
    """Linear CKA of the layers of two models over `rows` tokens: [layer of the first, layer of the second]."""

    names: tuple[str, str]
    rows: int
    cka: tuple[tuple[float, ...], ...]

    @property
    def record(self) -> dict[str, Any]:
        return {"rows": self.rows, "cka": [list(row) for row in self.cka]}

    def document(self) -> Document:
        """The table that `bertcli diff` prints for two architectures."""
        layers = range(len(self.cka[0]))
        columns = [Column("Layer", number=True), *(Column(str(layer), number=True) for layer in layers)]
        rows = [[str(layer), *(f"{cka:.3f}" for cka in row)] for layer, row in enumerate(self.cka)]
        lines = [{"layer": layer, **{str(i): cka for i, cka in enumerate(row)}} for layer, row in enumerate(self.cka)]
        first, second = self.names
        below = [
            f"Rows: layers of {first}; columns: layers of {second}; layer 0 is the embeddings' output",
            f"Linear CKA over {self.rows:,} tokens: 1 for the same up to rotation and scale, near 0 for unrelated ones",
        ]
        if self.rows < 10 * len(self.cka):
            below.append("So few tokens make CKA too large: give more text (-i FILE).")
        return Document(columns, rows, below, self.record, lines, [[None, *row] for row in self.cka])


def diff(
    model: Model,
    other: Model | str | Path | Mapping[str, NDArray[Any]],
    texts: str | Iterable[str],
    *,
    tolerance: float = TOLERANCE,
    max_length: int | None = None,
) -> Diff | Similarity:
    """Compare two models, or a model and stored arrays (by name, or a .npz or .safetensors file), on the same texts.

    Models whose steps are the same give a Diff, others a Similarity. Stored arrays are named by the paths of a trace,
    or `hidden_states.N` as transformers counts them. Errors: BertcliError for texts that the two tokenize differently,
    for arrays of other shapes and for unknown names.
    """
    expect_model(model)
    if not isinstance(tolerance, Real) or not tolerance >= 0:
        raise BertcliError(f"A tolerance of {shown_object(tolerance)} is not possible: it must be 0 or more.")
    limit = length_limit(model, max_length)
    if not isinstance(other, Model):
        values = list(from_values(texts))
        if len(values) != 1:
            raise BertcliError("Stored arrays are those of one text: give that one.")
        name, arrays = ("the arrays", other) if isinstance(other, Mapping) else (str(other), read_arrays(str(other)))
        return _with_arrays(model, arrays, name, tokens_of(model, values[0].text, limit=limit), tolerance)
    limit = min(limit, length_limit(other, max_length))
    pairs = (_same_tokens(model, other, text.text, limit) for text in from_values(texts))
    if _encoder_steps(model) != _encoder_steps(other):
        return similarity(model, other, pairs)
    by_path: dict[str, list[StepDiff]] = {}
    for tokens in pairs:
        for step in _steps(model, other, tokens):
            by_path.setdefault(step.path, []).append(step)
    if not by_path:
        raise BertcliError(NO_TEXT)
    joined = tuple(_joined(path, steps) for path, steps in by_path.items())
    return Diff((model.name, other.name), tolerance, joined, weight_diffs(model, other))


# ------------------------------------------------------------------------------------------------ the same steps


def _same_tokens(model: Model, other: Model, text: str, limit: int) -> tuple[Tokens, Tokens]:
    """The text as either reads it; BertcliError if their tokens are not the same."""
    readings = tokens_of(model, text, limit=limit), tokens_of(other, text, limit=limit)
    for at, pieces in enumerate(zip_longest(*(tokens.pieces for tokens in readings))):
        if pieces[0] != pieces[1]:
            first, second = ("missing" if piece is None else shown(piece) for piece in pieces)
            raise BertcliError(
                f"{model.name} and {other.name} tokenize {shown(text)} differently (token {at} is {first} in one, "
                f"{second} in the other), so their states cannot be compared."
            )
    return readings


def _traced(model: Model, tokens: Tokens) -> Trace:
    """A pass with every head, and the output of each step."""
    with trace(model, keep=lambda path: True) as recorded, np.errstate(all="ignore"):
        model.outputs(np.array([tokens.ids]), np.array([tokens.segments]))
    return recorded


def _encoder_steps(model: Model) -> list[tuple[str, str]]:
    """The steps below the heads: path and shape in symbols."""
    steps = run_shapes(model, 1, min(3, model.config.max_tokens)).steps
    return [(step.path, step.output.symbols) for step in steps if step.path.startswith(("embeddings", "encoder"))]


def _steps(model: Model, other: Model, tokens: tuple[Tokens, Tokens]) -> list[StepDiff]:
    """The steps of both, in the order of the first; those that only one has are left out."""
    xs, ys = _traced(model, tokens[0]).arrays, _traced(other, tokens[1]).arrays
    return [step_diff(path, x, ys[path]) for path, x in xs.items() if path in ys and x.shape == ys[path].shape]


def step_diff(path: str, x: NDArray[Any], y: NDArray[Any]) -> StepDiff:
    """How two arrays of one shape differ; rows are along the last axis. What both leave out (-∞) does not count."""
    out = np.isneginf(x) & np.isneginf(y)
    if out.any():
        x, y = np.where(out, 0, x), np.where(out, 0, y)
    if not (np.isfinite(x).all() and np.isfinite(y).all()):
        return StepDiff(path, None, None, None)
    width = x.shape[-1] if x.ndim else 1
    a, b = (array.astype(np.float64).reshape(-1, width) for array in (x, y))
    largest = max(np.abs(a).max(initial=0.0), np.abs(b).max(initial=0.0))
    max_abs = float(np.abs(a - b).max(initial=0.0))
    lengths = np.linalg.norm(a, axis=1) * np.linalg.norm(b, axis=1)
    same = (a == b).all(axis=1)  # rows of zeros, too
    cosines = np.where(same, 1.0, (a * b).sum(axis=1) / np.where(lengths > 0, lengths, 1.0))
    return StepDiff(path, max_abs, float(max_abs / largest) if largest else 0.0, float(np.clip(cosines, -1, 1).mean()))


def _joined(path: str, steps: Sequence[StepDiff]) -> StepDiff:
    """A step's largest differences over all texts, and its mean cosine."""
    numbers = np.array([(step.max_abs, step.max_rel, step.cosine) for step in steps], dtype=np.float64)  # None is NaN
    if np.isnan(numbers).any():
        return StepDiff(path, None, None, None)
    return StepDiff(path, float(numbers[:, 0].max()), float(numbers[:, 1].max()), float(numbers[:, 2].mean()))


def weight_diffs(model: Model, other: Model) -> tuple[WeightDiff, ...]:
    """The parameters both have whose values differ, most first."""
    other_arrays = {parameter.path: parameter.array for parameter in parameters(other.network)}
    differing: dict[int, WeightDiff] = {}
    for parameter in parameters(model.network):
        path, array = parameter.path, parameter.array
        if path not in other_arrays or id(array) in differing:  # a tied one is compared where it is first used
            continue
        if array.shape != other_arrays[path].shape:
            differing[id(array)] = WeightDiff(path, None)
        elif not np.array_equal(array, other_arrays[path]):
            size = float(np.abs(array - other_arrays[path]).max())
            differing[id(array)] = WeightDiff(path, size if np.isfinite(size) else None)
    return tuple(sorted(differing.values(), key=lambda diff: -np.inf if diff.max_abs is None else -diff.max_abs))


# --------------------------------------------------------------------------------------------- other architectures


def similarity(model: Model, other: Model, pairs: Iterable[tuple[Tokens, Tokens]]) -> Similarity:
    """The layers of two models compared over the tokens of several texts, each as either model reads it."""
    states: tuple[list[list[Array]], list[list[Array]]] = ([], [])
    for pair in pairs:
        for either, tokens, of_model in zip((model, other), pair, states, strict=True):
            with np.errstate(all="ignore"):
                of_model.append([np.array(state) for state in either.network.states(pack([tokens]))])
    if not states[0]:
        raise BertcliError(NO_TEXT)
    layers = [[_centered(np.concatenate(column)) for column in zip(*of_model, strict=True)] for of_model in states]
    cka = tuple(tuple(linear_cka(x, y) for y in layers[1]) for x in layers[0])
    return Similarity((model.name, other.name), len(layers[0][0]), cka)


def _centered(rows: Array) -> NDArray[np.float64]:
    check_finite(rows)
    centered: NDArray[np.float64] = rows - rows.mean(axis=0, dtype=np.float64)
    return centered


def linear_cka(x: NDArray[np.float64], y: NDArray[np.float64]) -> float:
    """Similarity of two representations [row, feature] of the same rows, columns centered; 0 where one is constant."""
    if len(x) < min(x.shape[1], y.shape[1]):  # the same number from the products of rows, of which there are fewer
        k, m = x @ x.T, y @ y.T
        above, below = (k * m).sum(), np.linalg.norm(k) * np.linalg.norm(m)
    else:
        above, below = np.linalg.norm(y.T @ x) ** 2, np.linalg.norm(x.T @ x) * np.linalg.norm(y.T @ y)
    return float(above / below) if below else 0.0


# ---------------------------------------------------------------------------------------------- arrays of a file


def read_arrays(file: str) -> dict[str, NDArray[Any]]:
    """The arrays of a .npz or .safetensors file by name; BertcliError if it cannot be read."""
    path, ending = Path(file), ending_of(file)
    if ending not in SEVERAL:
        raise BertcliError(f"{file}: stored arrays are read from {' or '.join(SEVERAL)} files.")
    if not path.exists():
        raise BertcliError(f"{file} is missing: give a file that `bertcli trace --save` wrote, or one like it.")
    if ending == ".safetensors":
        return {name: tensor.float32() for name, tensor in open_file(path).items() if tensor.dtype in FLOATS}
    with open_regular(path) as opened:
        try:
            with NpzFile(opened) as stored:
                arrays = {name: stored[name] for name in stored.files}
        except Exception as error:  # an array's header is a Python literal, and Python's parser has many ways to fail
            raise BertcliError(f"{file} cannot be read as arrays: {first_line(error)}.") from None
    return {name: array for name, array in arrays.items() if isinstance(array, np.ndarray)}  # others are bytes


def _with_arrays(model: Model, arrays: Mapping[str, NDArray[Any]], name: str, tokens: Tokens, tolerance: float) -> Diff:
    recorded = _traced(model, tokens)
    states = _state_paths(recorded)
    steps: dict[str, StepDiff] = {}
    for key, array in arrays.items():
        hidden = HIDDEN.fullmatch(key)
        path = states.get(int(hidden[1]), "") if hidden else key
        if path in recorded.arrays:
            steps[path] = step_diff(path, recorded.arrays[path], _fitted(array, recorded.arrays[path], key, name))
    if not steps:
        paths = list(recorded.arrays)
        raise BertcliError(
            f"No array in {name} is named after a step of {model.name}. Known names are those of its trace "
            f"({paths[0]}, {paths[1]}, … {paths[-1]}) and hidden_states.0 to hidden_states.{max(states)}; in the file "
            f"are {', '.join(map(shown, list(arrays)[:3])) or 'none'}."
        )
    order = tuple(steps[path] for path in recorded.arrays if path in steps)
    return Diff((model.name, name), tolerance, order, ())


def _state_paths(recorded: Trace) -> dict[int, str]:
    """The step that gives each layer's state; 0 is the embeddings' output, and the last one is the encoder's."""
    modules = [call for call in recorded.calls if STATES.fullmatch(call.path)]
    del modules[-2]  # the last layer's: the encoder may norm it
    return {number: recorded.steps[call.made[-1]].path for number, call in enumerate(modules)}


def _fitted(array: NDArray[Any], own: Array, key: str, name: str) -> NDArray[Any]:
    """A stored array without the axes of length 1 in front that it has beyond the model's own."""
    fitted = array
    while fitted.ndim > own.ndim and len(fitted) == 1:
        fitted = fitted[0]
    if fitted.shape != own.shape or fitted.dtype.kind not in "fiu":
        raise BertcliError(
            f"{shown(key)} in {name} is {array.dtype} of shape {array.shape}, but here it has the shape {own.shape}: "
            "the arrays belong to another text, or another model."
        )
    return fitted


def _small(number: float | None, none: str) -> str:
    """A difference; `none` for one that is no number."""
    return none if number is None else f"{number:.2e}" if number else "0"


def diff_page(view: Diff | Similarity) -> str:
    """The steps with the size of their differences, and the weights that differ; or the layers' similarities."""
    document = view.document()
    parts = [element("p", line) for line in document.below]
    title = " and ".join(view.names)
    if isinstance(view, Similarity):
        return page(title, *parts, document_table("Linear CKA of layers", document), lead=OF_CKA)
    parts.append(document_table("Steps in the order they run", document))
    weights = [[weight.path, _small(weight.max_abs, "")] for weight in view.weights]
    if weights:
        parts.append(table("Weights that differ", [Column("Weight"), Column("Max abs", number=True)], weights))
    return page(title, *parts, lead=MEANING)


def _strength(max_rel: float | None) -> float:
    """0 for a relative difference of 1e-8 or less, 1 for 1 or more, and for what is no number."""
    if max_rel is None:
        return 1.0
    return min(1.0, 1 + log10(max(max_rel, 10.0**-DECADES)) / DECADES)
