"""sts, pairs, triplets: how well the cosine of two texts' vectors agrees with what people say of the texts."""

from collections.abc import Iterator, Sequence
from functools import cached_property, partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from bertcli.errors import BertcliError, shown
from bertcli.evaluate import metrics
from bertcli.evaluate.data import Item, Labelled, Row, number, text
from bertcli.evaluate.metrics import Figures, Numbers
from bertcli.evaluate.options import Evaluate
from bertcli.evaluate.outcome import Curve, Judged, Outcome, Task, texts_of
from bertcli.files.vectors import quantize
from bertcli.lean import lean_dataclass
from bertcli.model import Model

Vectors = NDArray[Any]
UNIT = 1e-3  # how far from 1 the length of a normalized vector may be
BYTES = {"float32": 4, "float16": 2, "int8": 1, "binary": 1 / 8}  # a number takes


@lean_dataclass
class Correlated(Outcome):
    """Cosines and people's scores [pair]; dot products, where vectors have no common length."""

    unit: ClassVar[str] = "pairs"
    cosine: Numbers
    dot: Numbers | None
    truth: Numbers

    def figures(self, counts: Numbers) -> Figures:
        found = {}
        for suffix, values in (("", self.cosine), ("_dot", self.dot)):
            if values is not None:
                found[f"spearman{suffix}"] = metrics.spearman(values, self.truth, counts)
                found[f"pearson{suffix}"] = metrics.pearson(values, self.truth, counts)
        return found

    @cached_property
    def losses(self) -> Numbers:
        """How far apart the ranks by cosine and by score are, as a share of all pairs."""
        ones = np.ones((1, len(self.truth)))
        apart = metrics.ranks(self.cosine, ones) - metrics.ranks(self.truth, ones)
        return np.asarray(np.abs(apart[0]) / len(self.truth))

    def said(self, item: int) -> dict[str, Any]:
        return {"expected": f"{self.truth[item]:g}", "found": f"cosine {self.cosine[item]:.3f}"}


@lean_dataclass
class Told(Correlated):
    """Cosines, and 1 for pairs that belong together."""

    def figures(self, counts: Numbers) -> Figures:
        scores, right, taken = metrics.cut_pairs(self.cosine, self.truth, counts)
        f1, threshold = metrics.best_f1(scores, right, taken)
        return {
            "average_precision": metrics.average_precision(right, taken),
            "best_f1": f1,
            "best_f1_threshold": threshold,
            "best_accuracy": metrics.best_accuracy(right, taken),
        }

    @property
    def curve(self) -> Curve:
        _, right, taken = metrics.cut_pairs(self.cosine, self.truth, np.ones((1, len(self.truth))))
        recall, precision = metrics.ratio(right, right[:, -1:])[0], metrics.ratio(right, taken)[0]
        points = list(zip(recall.tolist(), precision.tolist(), strict=True))
        return Curve("precision over recall", "recall", "precision", points)

    @cached_property
    def losses(self) -> Numbers:
        """How far on the wrong side of the threshold the cosine is."""
        threshold = self.figures(np.ones((1, len(self.truth))))["best_f1_threshold"]
        return np.asarray((threshold - self.cosine) * (2 * self.truth - 1))


@lean_dataclass
class Nearer(Outcome):
    """The cosine of a text with the one that belongs to it, and with the one that does not [triplet]."""

    unit: ClassVar[str] = "triplets"
    near: Numbers
    far: Numbers

    def figures(self, counts: Numbers) -> Figures:
        return {"accuracy": metrics.mean(np.asarray(self.near > self.far, np.float64), counts)}

    @property
    def losses(self) -> Numbers:
        return self.far - self.near

    def said(self, item: int) -> dict[str, Any]:
        return {"expected": f"cosine {self.near[item]:.3f}", "found": f"{self.far[item]:.3f} with the third text"}


def cosines(x: Vectors, y: Vectors) -> Numbers:
    """cos of each row of one with that of the other; 0 for a zero vector."""
    x, y = x.astype(np.float64), y.astype(np.float64)
    lengths = np.linalg.norm(x, axis=1) * np.linalg.norm(y, axis=1)
    return metrics.ratio(np.einsum("ij,ij->i", x, y), lengths)


def stored(model: str, width: int, wanted: Evaluate) -> Iterator[tuple[str, dict[str, Any]]]:
    """The ways to store vectors of this width that are judged: a name, and {truncate_dim, dtype, bytes}."""
    dims, dtypes = [width, *(wanted.truncate_dim or ())], dict.fromkeys(["float32", *(wanted.dtype or ())])
    for dim in dict.fromkeys(dims):
        if dim > width:
            raise BertcliError(f"Vectors of {width} numbers cannot be cut to {dim} (--truncate-dim).")
        for dtype in dtypes:
            size = -int(-dim * BYTES[dtype] // 1)
            plain = (dim, dtype) == (width, "float32") and not (wanted.truncate_dim or wanted.dtype)
            details = {"truncate_dim": dim, "dtype": dtype, "bytes": size}
            yield model if plain else f"{model}, {dim} × {dtype}", details


def as_stored(vectors: Vectors, truncate_dim: int, dtype: str) -> Vectors:
    """Vectors as their cosines see them once they are stored so: whole steps of int8, ±1 of binary."""
    values = quantize(vectors[:, :truncate_dim], dtype).values
    if dtype == "binary":
        values = 2 * np.unpackbits(values, axis=1, count=truncate_dim).astype(np.int8) - 1
    return np.asarray(values, np.float32)


def vectors_of(model: Model, texts: Sequence[tuple[str, str]], wanted: Evaluate, **options: Any) -> Vectors:
    """The vector of each text, given with its place [text, width]; NaN where there is none."""
    places = dict(reversed(texts))
    distinct = dict.fromkeys(text for text, _ in texts)
    rows: dict[int, Vectors] = {}
    source = texts_of([(text, None, places[text]) for text in distinct])
    for block in model.encode_blocks(source, **wanted.doing, **options):
        rows.update(zip((item.index for item in block.items), np.asarray(block.vectors), strict=True))
    width = len(next(iter(rows.values()), ()))
    every = np.full((len(distinct), width), np.nan, np.float32)
    for index, row in rows.items():
        every[index] = row
    number_of = {text: i for i, text in enumerate(distinct)}
    return every[[number_of[text] for text, _ in texts]]


def judge(kind: type[Correlated | Nearer], model: Model, labelled: Labelled, wanted: Evaluate) -> list[Judged]:
    """The cosines of all pairs, for each way to store vectors."""
    items = labelled.items
    each = len(items[0].texts)
    every = vectors_of(model, [(text, item.place) for item in items for text in item.texts], wanted)
    ok = np.asarray(np.isfinite(every).all(axis=1).reshape(-1, each).all(axis=1))
    lengths = np.linalg.norm(np.nan_to_num(every.astype(np.float64)), axis=1)
    judged = []
    for name, how in stored(model.name, every.shape[1], wanted):
        x, y, *rest = np.moveaxis(
            as_stored(np.nan_to_num(every), how["truncate_dim"], how["dtype"]).reshape(len(items), each, -1), 1, 0
        )
        if issubclass(kind, Nearer):
            judged.append(Judged(name, kind(ok, cosines(x, y), cosines(x, rest[0])), how))
            continue
        dot = None
        if name == model.name and (np.abs(lengths - 1) > UNIT).any():
            dot = np.einsum("ij,ij->i", x.astype(np.float64), y.astype(np.float64))
        truth = np.array([item.truth for item in items], np.float64)
        judged.append(Judged(name, kind(ok, cosines(x, y), dot, truth), how))
    return judged


def _scored(row: Row) -> Item:
    first, second, score = row.values
    return Item(row.place, (text(row, first), text(row, second)), number(row.place, score), row.group)


def _paired(row: Row) -> Item:
    item = _scored(row)
    if item.truth not in (0, 1):
        raise BertcliError(f"{row.place}: the label {shown(row.values[2])} is neither 0 nor 1.")
    return item


def _triplet(row: Row) -> Item:
    return Item(row.place, tuple(text(row, value) for value in row.values), None, row.group)


TASKS = {
    "sts": Task(_scored, partial(judge, Correlated)),
    "pairs": Task(_paired, partial(judge, Told)),
    "triplets": Task(_triplet, partial(judge, Nearer)),
}
