"""sts, pairs, triplets: how well the cosine of two texts' vectors agrees with what people say of the texts."""

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bertcli.errors import BertcliError
from bertcli.evaluate import metrics
from bertcli.evaluate.load.tables import Labelled, texts_of
from bertcli.evaluate.metrics import Figures, Numbers
from bertcli.evaluate.options import Evaluate
from bertcli.evaluate.outcome import Curve, Details, Outcome, Way, means_of
from bertcli.files.search import similarities
from bertcli.files.texts import Text
from bertcli.files.vectors import quantize
from bertcli.model import Model

Vectors = NDArray[Any]
UNIT = 1e-3  # how far from 1 the length of a normalized vector may be
BYTES = {"float32": 4, "float16": 2, "int8": 1, "binary": 1 / 8}  # a number takes


def ways(model: Model, width: int, wanted: Evaluate) -> Iterator[tuple[str, Way]]:
    """The ways to store vectors of this width that are judged, each with its name."""
    for dim in dict.fromkeys([width, *(wanted.truncate_dim or ())]):
        if dim > width:
            raise BertcliError(f"Vectors of {width} numbers cannot be cut to {dim} (--truncate-dim).")
        for dtype in dict.fromkeys(["float32", *(wanted.dtype or ())]):
            way = Way(dim, dtype, math.ceil(dim * BYTES[dtype]))
            yield f"{model.name}, {way.title}" if wanted.truncate_dim or wanted.dtype else model.name, way


def as_stored(vectors: Vectors, way: Way) -> Vectors:
    """Vectors [row, width] as they are once they have been stored so: whole steps of int8, ±1 of binary."""
    values, scales = quantize(vectors[:, : way.truncate_dim], way.dtype)
    if way.dtype == "binary":
        return signs(values, way.truncate_dim)
    return np.asarray(values, np.float32) * (1 if scales is None else scales[:, None])


def signs(bits: Vectors, width: int) -> Vectors:
    """±1 [row, width] from rows of bits, eight in a byte."""
    return 2 * np.unpackbits(bits, axis=1, count=width).astype(np.float32) - 1


def vectors_of(
    model: Model, texts: Sequence[Text], wanted: Evaluate, **options: Any
) -> tuple[Vectors, NDArray[np.bool_]]:
    """The vector of each text [text, width], zeros for one that could not be used, and which could."""
    distinct = {text.text: text for text in texts}
    found: dict[str, Vectors] = {}
    for block in model.encode_blocks(texts_of([*distinct.values()]), **wanted.doing, **options):
        found.update(zip((item.text.text for item in block.items), np.asarray(block.vectors), strict=True))
    nothing = np.zeros_like(next(iter(found.values()), np.empty(0)))
    return np.array([found.get(text.text, nothing) for text in texts]), np.array([text.text in found for text in texts])


def judge(model: Model, data: Labelled, wanted: Evaluate) -> list[Outcome]:
    """How alike the texts of each row are, for each way to store vectors, by what the model's files compare them with.

    triplets: how often the second text is more like the first than the third is. sts: correlations with people's
    scores. pairs: how well a cut tells those that belong together, 1, from others, 0.
    """
    rows, how = data.rows, model.sentence.compared
    sides = [[row.text, row.pair or "", *([row.label] if data.task == "triplets" else [])] for row in rows]
    texts = [Text(side, None, row.place) for row, some in zip(rows, sides, strict=True) for side in some]
    every, usable = vectors_of(model, texts, wanted)
    usable = np.asarray(usable.reshape(len(rows), -1).all(axis=1))
    unit = np.allclose(np.linalg.norm(every.astype(float), axis=1), 1, atol=UNIT)
    outcomes = []
    for name, way in ways(model, every.shape[1], wanted):
        x = as_stored(every, way).reshape(len(rows), -1, way.truncate_dim)
        scores, *third = similarities(x[:, :1], x[:, 1:], how)[:, 0].T
        found = [f"{how} {score:.3f}" for score in scores]
        if third:
            right, wrong = means_of({"accuracy": scores > third[0]}), third[0] - scores
            other = [f"{score:.3f} with {row.label}" for score, row in zip(third[0], rows, strict=True)]
            outcomes.append(Outcome(name, *right, usable, wrong, found, other, way=way))
            continue
        truth, ones = np.array([row.label for row in rows], float), np.ones((1, len(rows)))
        expected = [f"{label:g}" for label in truth]
        if data.task == "pairs":
            threshold = of_pairs(ones[:, usable], truth[usable], scores[usable])["best_f1_threshold"]
            wrong, arrays = (threshold - scores) * (2 * truth - 1), [truth, scores]
            outcomes.append(Outcome(name, of_pairs, arrays, usable, wrong, expected, found, over_recall, way))
        else:
            dots = [similarities(x[:, :1], x[:, 1:], "dot")[:, 0, 0]] if how == "cosine" and not unit else []
            wrong = np.abs(metrics.ranks(scores, ones) - metrics.ranks(truth, ones))[0]
            outcomes.append(
                Outcome(name, correlations, [truth, scores, *dots], usable, wrong, expected, found, way=way)
            )
    return outcomes


def correlations(counts: Numbers, truth: Numbers, scores: Numbers, dots: Numbers | None = None) -> Figures:
    """With people's scores: of scores, and of the dot products of vectors that have no common length."""
    return {
        f"{figure.__name__}{suffix}": figure(some, truth, counts)
        for some, suffix in ((scores, ""), (dots, "_dot"))
        if some is not None
        for figure in (metrics.spearman, metrics.pearson)
    }


def of_pairs(counts: Numbers, truth: Numbers, scores: Numbers) -> Figures:
    """How well a cut of the scores tells the pairs that belong together."""
    return metrics.Cuts.of(scores, truth, counts).figures


def over_recall(truth: Numbers, scores: Numbers) -> Details:
    """Precision over recall, at every cut."""
    points = np.concatenate(metrics.Cuts.of(scores, truth, np.ones((1, len(truth)))).curve).T.tolist()
    return Details(curve=Curve("precision over recall", "recall", "precision", points))
