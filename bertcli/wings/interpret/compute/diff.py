"""`bertcli diff`: compare two models on the same text step by step, and find the first step that differs.

    max_abs = max |x - y|        max_rel = max |x - y| / max(|x|, |y|)        cosine = mean over rows of cos(x, y)

Without a text only the weights are compared, and each model gets a digest of its weights' names, shapes and values in
float32, so that it does not depend on the stored type.
"""

import hashlib
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from math import log10
from numbers import Real
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.lib.npyio import NpzFile
from numpy.typing import NDArray

from bertcli.analysis.texts import tokens_of
from bertcli.analysis.trace.recorder import Trace, recording
from bertcli.errors import BertcliError, first_line, names_checked, quoted, quoted_object
from bertcli.files.formats import SEVERAL, ending_of
from bertcli.files.texts import from_values
from bertcli.folder.files import open_regular
from bertcli.loaded_model import LoadedModel, expect_model
from bertcli.network.module import parameters
from bertcli.report.digits import short
from bertcli.report.documents import ByName, Document, View
from bertcli.report.model_names import told_apart
from bertcli.report.page import document_table, element, page, side_by_side, table
from bertcli.report.shades import Shaded
from bertcli.report.terminal import Column
from bertcli.tasks.running.task import length_limit
from bertcli.tokens import Tokens
from bertcli.tracing.dispatch import Array
from bertcli.weights.tensors import FLOATS, open_file

TOLERANCE = 1e-4
MOST = 3  # weights named below the table
DECADES = 8  # of relative differences that shades tell apart, below 1
WEIGHT_FIELDS = ("path", "max_abs", "max_rel")  # of a record
HIDDEN = re.compile(r"(?:.*\.)?hidden_states\.(\d+)")  # as transformers numbers them: 0 is the embeddings' output
MEANING = (
    "For each step of both models on the same text: the largest difference, the same as a share of the step's largest "
    "number (which the tolerance is compared with), and the mean cosine of rows. The first step beyond the tolerance "
    "is where the models part; later ones follow from it, and need no fault of their own."
)

NO_TEXT = "There is no text to compare on: give one."
OF_WEIGHTS = (
    "The weights of both models, by the names that they have here: those that differ, and those that only one has. "
    "max rel is the largest difference as a share of the largest number of the weight."
)


class OtherText(BertcliError):
    """The stored arrays were computed from another text than the one given."""


@dataclass(frozen=True)
class Difference(ByName):
    """The difference of a step or a parameter of both models; its numbers are None if the two cannot be compared.

    That is so where one has NaN, infinite numbers or another shape. cosine: of steps only.
    """

    path: str
    max_abs: float | None = None
    max_rel: float | None = None
    cosine: float | None = None

    def beyond(self, tolerance: float) -> bool:
        """True if they differ by more than `tolerance` times the largest number, or cannot be compared."""
        return self.max_rel is None or self.max_rel > tolerance

    def cells(self, none: str) -> list[str]:
        """The table's cells: path, max abs, max rel; `none` is written for a difference that is None."""
        return [self.path, _small(self.max_abs, none), Shaded(_small(self.max_rel, none), -_strength(self.max_rel))]

    def named(self, *names: str) -> dict[str, Any]:
        """A JSON record of these fields."""
        return {name: short(self[name]) for name in names}


class Single(NamedTuple):
    """The paths that only the first model has, and those that only the second has."""

    first: tuple[str, ...] = ()
    second: tuple[str, ...] = ()

    def lines(self, names: Sequence[str]) -> list[str]:
        """A line for each model that has paths of its own."""
        return [f"Only in {name}: {', '.join(paths)}" for name, paths in zip(names, self, strict=True) if paths]


def single(first: Iterable[str], second: Iterable[str], both: Collection[str]) -> Single:
    """The paths of either model that are not in `both`."""
    only_first = tuple(path for path in first if path not in both)
    only_second = tuple(path for path in second if path not in both)
    return Single(only_first, only_second)


@dataclass(frozen=True)
class Diff(View):
    """The comparison of two models step by step.

    first: path of the first step beyond the tolerance, None if there is none. only: paths of steps of one model alone,
    or of another shape in the other. text: the first of the texts, for the page.
    """

    names: tuple[str, str]
    tolerance: float
    steps: tuple[Difference, ...]
    weights: tuple[Difference, ...]
    only: Single = Single()
    text: str = ""

    @property
    def differs(self) -> str | None:
        """The sentence that `--check` fails with; None if no step is beyond the tolerance."""
        return self.first and f"{self.first} is the first step beyond the tolerance of {self.tolerance:g}."

    @property
    def first(self) -> str | None:
        return next((step.path for step in self.steps if step.beyond(self.tolerance)), None)

    @property
    def record(self) -> dict[str, Any]:
        steps = [step.named("path", "max_abs", "max_rel", "cosine") for step in self.steps]
        weights = [weight.named("path", "max_abs") for weight in self.weights]
        return {"steps": steps, "first": self.first, "weights": weights, "only": [list(paths) for paths in self.only]}

    def document(self) -> Document:
        numbers = [Column(name, number=True) for name in ("Max abs", "Max rel", "Cosine")]
        columns = [Column("Step"), *numbers, Column("Beyond")]
        rows = []
        for step in self.steps:
            cosine = "NaN" if step.cosine is None else f"{step.cosine:.6f}"
            beyond = "yes" if step.beyond(self.tolerance) else ""
            if step.path == self.first:
                beyond = "first"
            rows.append([*step.cells("NaN"), cosine, beyond])
        return Document(columns, rows, self.below(), self.record, self.record["steps"])

    def below(self) -> list[str]:
        """The lines below the table: the first step that differs, the largest difference, the weights that differ."""
        # Numbers that cannot be compared are the largest difference.
        largest = max(self.steps, key=lambda step: np.inf if step.max_rel is None else step.max_rel)
        begins = f"no step beyond {self.tolerance:g}"
        if self.first:
            begins = f"first beyond {self.tolerance:g}: {self.first}"
        where = f" at {largest.path}" if largest.max_rel != 0 else ""
        size = _small(largest.max_rel, "not a number")
        lines = [f"{' and '.join(told_apart(self.names))}: {begins}", f"Largest relative difference: {size}{where}"]
        if self.weights:
            most = [f"{weight.path} ({_small(weight.max_abs, '?')})" for weight in self.weights[:MOST]]
            lines.append(f"Weights that differ: {len(self.weights)}, most of all {', '.join(most)}")
        return lines + self.only.lines(told_apart(self.names))


@dataclass(frozen=True)
class Weights(View):
    """The comparison of two models' weights alone: how many are equal, which differ, and a digest of each model."""

    names: tuple[str, str]
    tolerance: float
    equal: int
    weights: tuple[Difference, ...]
    only: Single
    digests: tuple[str, str]

    @property
    def differs(self) -> str | None:
        """The sentence that `--check` fails with; None if no weight is beyond the tolerance."""
        worst = next((weight for weight in self.weights if weight.beyond(self.tolerance)), None)
        return None if worst is None else f"{worst.path} differs by more than the tolerance of {self.tolerance:g}."

    @property
    def record(self) -> dict[str, Any]:
        weights = [weight.named(*WEIGHT_FIELDS) for weight in self.weights]
        only = [list(paths) for paths in self.only]
        return {"equal": self.equal, "weights": weights, "only": only, "digests": list(self.digests)}

    def document(self) -> Document:
        names = told_apart(self.names)
        below = [
            *(f"{name}: {digest}" for name, digest in zip(names, self.digests, strict=True)),
            f"Equal weights: {self.equal:,}; different ones: {len(self.weights):,}",
            *self.only.lines(names),
        ]
        if any(weight.max_rel is None for weight in self.weights):
            below.insert(0, "?: cannot be compared, since one has another shape, NaN or infinite numbers.")
        columns = [Column("Weight"), Column("Max abs", number=True), Column("Max rel", number=True)]
        rows = [weight.cells("?") for weight in self.weights]
        return Document(columns, rows, below, self.record, self.record["weights"], WEIGHT_FIELDS)


@names_checked
def diff(
    model: LoadedModel,
    other: LoadedModel | str | Path | Mapping[str, NDArray[Any]],
    texts: str | Iterable[str] | None = None,
    *,
    tolerance: float = TOLERANCE,
    max_length: int | None = None,
) -> Diff | Weights:
    """Compare two models, or a model and stored arrays (by name, or a .npz or .safetensors file), on the same texts.

    Without a text the weights of two models are compared, and stored arrays with a pass of the ids that are stored with
    them. Arrays are named by the paths of a trace, or `hidden_states.N` as transformers counts them. Errors:
    BertcliError for texts that the two tokenize differently, models without a step in common, arrays of other shapes or
    of another text, and unknown names.
    """
    expect_model(model)
    if not isinstance(tolerance, Real) or not tolerance >= 0:
        raise BertcliError(f"A tolerance of {quoted_object(tolerance)} is not possible: it must be 0 or more.")
    limit = length_limit(model, max_length)
    if not isinstance(other, LoadedModel):
        values = [] if texts is None else list(from_values(texts))
        if texts is not None and len(values) != 1:
            raise BertcliError("The file has the arrays of one text: give that text alone.")
        if isinstance(other, Mapping):
            name, arrays = "the arrays", other
        else:
            name, arrays = str(other), read_arrays(str(other))
        given = [tokens_of(model, text.text, limit=limit) for text in values]
        ids, segments = _inputs(model, arrays, name, given)
        return _with_arrays(model, arrays, name, ids, segments, tolerance)
    if texts is None:
        return _weights(model, other, tolerance)
    limit = min(limit, length_limit(other, max_length))
    by_path: dict[str, list[Difference]] = {}
    only, first_text = None, ""
    for text in from_values(texts):
        first_text = first_text or text.text
        tokens, other_tokens = _same_tokens(model, other, text.text, limit)
        xs = _pass(model, [tokens.ids], [tokens.segments]).arrays
        ys = _pass(other, [other_tokens.ids], [other_tokens.segments]).arrays
        both = [path for path, x in xs.items() if path in ys and x.shape == ys[path].shape]
        only = single(xs, ys, both)
        for path in both:
            by_path.setdefault(path, []).append(step_diff(path, xs[path], ys[path]))
    if only is None:
        raise BertcliError(NO_TEXT)
    if not by_path:
        raise BertcliError(f"{model.name} and {other.name} have no step of the same name and shape to compare.")
    return Diff(
        names=(model.name, other.name),
        tolerance=tolerance,
        steps=tuple(_over_texts(path, steps) for path, steps in by_path.items()),
        weights=weight_differences(weights_of(model), weights_of(other)),
        only=only,
        text=first_text,
    )


# ------------------------------------------------------------------------------------------------ the same steps


def _same_tokens(model: LoadedModel, other: LoadedModel, text: str, limit: int) -> tuple[Tokens, Tokens]:
    """The text as tokenized for either model. Errors: BertcliError if the two have other tokens."""
    tokens = tokens_of(model, text, limit=limit)
    other_tokens = tokens_of(other, text, limit=limit)
    for position, (piece, other_piece) in enumerate(zip_longest(tokens.pieces, other_tokens.pieces)):
        if piece != other_piece:
            first, second = ("missing" if one is None else quoted(one) for one in (piece, other_piece))
            raise BertcliError(
                f"{model.name} and {other.name} tokenize {quoted(text)} differently (token {position} is {first} in "
                f"one, {second} in the other), so their states cannot be compared."
            )
    return tokens, other_tokens


def _pass(model: LoadedModel, ids: Any, segments: Any) -> Trace:
    """Trace a pass through every prediction head, and keep the output of each step."""
    with recording(model, keep=lambda path: True) as recorded, np.errstate(all="ignore"):
        model.outputs(np.array(ids), np.array(segments))
    return recorded


def step_diff(path: str, x: NDArray[Any], y: NDArray[Any]) -> Difference:
    """The difference of two arrays of one shape, whose rows are along the last axis.

    Numbers that are -∞ in both, as attention scores behind a mask are, count as equal.
    """
    masked = np.isneginf(x) & np.isneginf(y)
    if masked.any():
        x, y = np.where(masked, 0, x), np.where(masked, 0, y)
    if not (np.isfinite(x).all() and np.isfinite(y).all()):
        return Difference(path)
    width = x.shape[-1] if x.ndim else 1
    a = x.astype(np.float64).reshape(-1, width)
    b = y.astype(np.float64).reshape(-1, width)
    largest = max(np.abs(a).max(initial=0.0), np.abs(b).max(initial=0.0))
    max_abs = float(np.abs(a - b).max(initial=0.0))
    max_rel = float(max_abs / largest) if largest else 0.0
    lengths = np.linalg.norm(a, axis=1) * np.linalg.norm(b, axis=1)
    cosines = (a * b).sum(axis=1) / np.where(lengths > 0, lengths, 1.0)
    # Equal rows have cosine 1, also rows of zeros, whose cosine is not defined.
    is_equal = (a == b).all(axis=1)
    cosines = np.where(is_equal, 1.0, cosines)
    return Difference(path, max_abs, max_rel, float(np.clip(cosines, -1, 1).mean()))


def _over_texts(path: str, steps: Sequence[Difference]) -> Difference:
    """Merge a step's differences over all texts: the largest ones, and the mean cosine."""
    # NumPy makes NaN of None.
    numbers = np.array([(step.max_abs, step.max_rel, step.cosine) for step in steps], dtype=np.float64)
    if np.isnan(numbers).any():
        return Difference(path)
    max_abs, max_rel, cosines = numbers.T
    return Difference(path, float(max_abs.max()), float(max_rel.max()), float(cosines.mean()))


def weights_of(model: LoadedModel) -> dict[str, Array]:
    """The parameters by path; a tied one is under each of its paths."""
    return {parameter.path: parameter.array for parameter in parameters(model.network)}


def weight_differences(xs: Mapping[str, Array], ys: Mapping[str, Array]) -> tuple[Difference, ...]:
    """The parameters of both models whose values differ, the largest difference first; a tied one counts once."""
    differing: dict[int, Difference] = {}
    for path, x in xs.items():
        # A tied parameter is compared where it is first used.
        if path not in ys or id(x) in differing:
            continue
        y = ys[path]
        if x.shape != y.shape:
            differing[id(x)] = Difference(path)
        elif not np.array_equal(x, y):
            differing[id(x)] = step_diff(path, x, y)
    return tuple(sorted(differing.values(), key=lambda one: -np.inf if one.max_abs is None else -one.max_abs))


def _weights(model: LoadedModel, other: LoadedModel, tolerance: float) -> Weights:
    """Compare the weights of two models, without a pass."""
    xs, ys = weights_of(model), weights_of(other)
    both = xs.keys() & ys.keys()
    return Weights(
        names=(model.name, other.name),
        tolerance=tolerance,
        equal=sum(np.array_equal(xs[path], ys[path]) for path in both),
        weights=weight_differences(xs, ys),
        only=single(xs, ys, both),
        digests=(_digest(xs), _digest(ys)),
    )


def _digest(arrays: Mapping[str, Array]) -> str:
    """The digest of weights: of names, shapes and float32 values, in hexadecimal digits."""
    whole = hashlib.blake2b(digest_size=16)
    for path, array in sorted(arrays.items()):
        whole.update(f"{path} {array.shape} ".encode())
        whole.update(np.ascontiguousarray(array, "<f4").data)
    return whole.hexdigest()


# ---------------------------------------------------------------------------------------------- arrays of a file


def read_arrays(file: str) -> dict[str, NDArray[Any]]:
    """The arrays of a .npz or .safetensors file by name; BertcliError if it cannot be read."""
    path, ending = Path(file), ending_of(file)
    if ending not in SEVERAL:
        raise BertcliError(f"{file}: stored arrays are read from {' or '.join(SEVERAL)} files.")
    if not path.exists():
        raise BertcliError(f"{file} is missing: give a file that `bertcli trace -o` wrote, or one like it.")
    if ending == ".safetensors":
        arrays = {}
        for name, tensor in open_file(path).items():
            # Ids are integers of 64 bits; tensors of other types are no states.
            if tensor.dtype == "I64":
                arrays[name] = tensor.array
            elif tensor.dtype in FLOATS:
                arrays[name] = tensor.float32()
        return arrays
    with open_regular(path) as opened:
        try:
            with NpzFile(opened) as stored:
                arrays = {name: stored[name] for name in stored.files}
        # An array's header in a .npz file is a Python literal, and Python's parser has many ways to fail on a bad one.
        except Exception as error:
            raise BertcliError(f"{file} cannot be read as arrays: {first_line(error)}.") from None
    # Members of the file that are no arrays come as bytes.
    return {name: array for name, array in arrays.items() if isinstance(array, np.ndarray)}


def _inputs(
    model: LoadedModel, arrays: Mapping[str, NDArray[Any]], name: str, given: Sequence[Tokens]
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Ids and segments [sentence, token]: the stored ones, else those of the text.

    Errors: OtherText if both exist and differ; BertcliError without either.
    """
    ids = arrays.get("input_ids")
    if ids is None:
        if not given:
            raise BertcliError(f"{name} has no input_ids, so the text of its arrays is unknown: give the text.")
        return np.array([given[0].ids]), np.array([given[0].segments])
    if given and np.ravel(ids).tolist() != given[0].ids:
        raise OtherText(f"The arrays in {name} are those of another text: give that one, or none.")
    return ids, arrays.get("token_type_ids", np.zeros_like(ids))


def _with_arrays(
    model: LoadedModel,
    arrays: Mapping[str, NDArray[Any]],
    name: str,
    ids: NDArray[Any],
    segments: NDArray[Any],
    tolerance: float,
) -> Diff:
    recorded = _pass(model, ids, segments)
    states = _state_paths(recorded, model.config.num_hidden_layers)
    steps: dict[str, Difference] = {}
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
            f"are {', '.join(map(quoted, list(arrays)[:3])) or 'none'}."
        )
    order = tuple(steps[path] for path in recorded.arrays if path in steps)
    return Diff((model.name, name), tolerance, order, ())


def _state_paths(recorded: Trace, layers: int) -> dict[int, str]:
    """The path of the step that gives each state: 0 is the embeddings' output, the last one the encoder's output."""
    state_of = {"embeddings": 0, "encoder": layers}
    for layer in range(layers):
        state_of[f"encoder.layers.{layer}"] = layer + 1
    paths = {}
    # The encoder returns after its last layer, whose state it may norm: its step replaces the layer's.
    for call in recorded.calls:
        if call.path in state_of:
            last_step = recorded.steps[call.made[-1]]
            paths[state_of[call.path]] = last_step.path
    return paths


def _fitted(stored: NDArray[Any], computed: Array, key: str, name: str) -> NDArray[Any]:
    """Drop leading axes of length 1 of a stored array, so that it has as many axes as the model's."""
    fitted = stored
    while fitted.ndim > computed.ndim and len(fitted) == 1:
        fitted = fitted[0]
    if fitted.shape != computed.shape or fitted.dtype.kind not in "fiu":
        raise BertcliError(
            f"{quoted(key)} in {name} is {stored.dtype} of shape {stored.shape}, but here it has the shape "
            f"{computed.shape}: the arrays belong to another text, or another model."
        )
    return fitted


def _small(number: float | None, none: str) -> str:
    """A difference as text; `none` if it is None."""
    if number is None:
        return none
    return f"{number:.2e}" if number else "0"


# The name by which wings/interpret/command.py calls the work of every view.
measure = diff


def draw(view: Diff | Weights) -> str:
    """The page: the steps with the size of their differences, and the weights that differ."""
    document = view.document()
    models = " and ".join(view.names)
    summary = [element("p", line) for line in document.below]
    if isinstance(view, Weights):
        numbers = document_table("Weights that differ", document)
        return page("Which weights of two models differ", side_by_side(summary, numbers), lead=OF_WEIGHTS, model=models)
    weights = [[weight.path, _small(weight.max_abs, "")] for weight in view.weights]
    if weights:
        columns = [Column("Weight"), Column("Max abs", number=True)]
        summary.append(table("Weights that differ", columns, weights))
    steps = document_table("Steps in the order they run", document)
    title = "Where two models first differ"
    return page(title, side_by_side(summary, steps), lead=MEANING, model=models, text=view.text)


def _strength(max_rel: float | None) -> float:
    """The shade of a relative difference, on a log scale: 0 for 1e-8 or less, 1 for 1 or more and for None."""
    if max_rel is None:
        return 1.0
    return min(1.0, 1 + log10(max(max_rel, 10.0**-DECADES)) / DECADES)
