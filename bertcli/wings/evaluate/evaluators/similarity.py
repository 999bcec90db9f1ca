"""Evaluators of `sts`, `pairs` and `triplets`: similarities of texts' vectors against people's judgements."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bertcli.errors import BertcliError, number_of, quoted
from bertcli.files.labelled.fields import LABEL, SECOND, TEXT, FieldSpec, read_number, read_text
from bertcli.files.search import similarities
from bertcli.files.texts import Text
from bertcli.files.write.vector_writer import quantize
from bertcli.model import Model
from bertcli.report.charts import Curve
from bertcli.statistics import metrics
from bertcli.statistics.intervals import FigureFacts
from bertcli.statistics.metrics import Figures, Numbers
from bertcli.tasks.registry import SENTENCE_SAMPLE
from bertcli.wings.evaluate.evaluators.evaluator import Evaluator, FigureSpec
from bertcli.wings.evaluate.load.labelled import Labelled, texts_of
from bertcli.wings.evaluate.options import Evaluate
from bertcli.wings.evaluate.outcome import Arrays, Details, Names, Outcome, VectorStorage, means_of

Vectors = NDArray[Any]
OF_VECTORS = ("truncate_dim", "dtype")  # options about how vectors are stored
UNIT = 1e-3  # how far from 1 the length of a normalized vector may be
BYTES = {"float32": 4, "float16": 2, "int8": 1, "binary": 1 / 8}  # a number takes
UNBOUNDED = "similarities without bounds may have outliers, of which a few decide it; spearman ranks them"
FEWEST_OF_A_CLASS = 10  # pairs of each label: with six the resampled intervals cover 81 %


# ------------------------------------------------------------------------------------------------------------- vectors


def storages(model: Model, width: int, options: Evaluate) -> Iterator[tuple[str, VectorStorage]]:
    """Yield each storage to evaluate for vectors of this width, with its name (--truncate-dim, --dtype)."""
    several = options.truncate_dim or options.dtype
    for dim in dict.fromkeys([width, *(options.truncate_dim or ())]):
        if dim > width:
            raise BertcliError(f"Vectors of {number_of(width, 'number')} cannot be cut to {dim} (--truncate-dim).")
        for dtype in dict.fromkeys(["float32", *(options.dtype or ())]):
            storage = VectorStorage(dim, dtype, math.ceil(dim * BYTES[dtype]))
            yield f"{model.name}, {storage.title}" if several else model.name, storage


def as_stored(vectors: Vectors, storage: VectorStorage) -> Vectors:
    """Round vectors [row, width] as a storage does: to steps of int8, to ±1 of binary."""
    values, scales = quantize(vectors[:, : storage.truncate_dim], storage.dtype)
    if storage.dtype == "binary":
        return signs(values, storage.truncate_dim)
    return np.asarray(values, np.float32) * (1 if scales is None else scales[:, None])


def signs(bits: Vectors, width: int) -> Vectors:
    """±1 [row, width] from rows of bits, eight in a byte.

    Their cosine orders pairs as the Hamming distance does. sentence-transformers compares 0 and 1, which orders
    otherwise where vectors have different numbers of ones.
    """
    return 2 * np.unpackbits(bits, axis=1, count=width).astype(np.float32) - 1


def vectors_of(
    model: Model, texts: Sequence[Text], options: Evaluate, **more: Any
) -> tuple[Vectors, NDArray[np.bool_]]:
    """The vector of each text [text, width], zeros for one that could not be used, and which could.

    A text that occurs several times is encoded once.
    """
    distinct = {text.text: text for text in texts}
    found: dict[str, Vectors] = {}
    for block in model.encode_blocks(texts_of([*distinct.values()]), **options.reading_options, **more):
        for item, vector in zip(block.items, np.asarray(block.vectors), strict=True):
            found[item.text.text] = vector
    nothing = np.zeros_like(next(iter(found.values()), np.empty(0)))
    vectors = np.array([found.get(text.text, nothing) for text in texts])
    return vectors, np.array([text.text in found for text in texts])


# ---------------------------------------------------------------------------------------------------------- evaluators


def evaluate(model: Model, data: Labelled, options: Evaluate) -> list[Outcome]:
    """Compare the texts of each row as the model's files say, for each way to store vectors."""
    rows = data.rows
    texts = []
    for row in rows:
        texts += [Text(row.text, None, row.location), Text(row.pair or "", None, row.location)]
        if data.task == "triplets":
            texts.append(Text(row.label, None, row.location))
    vectors, usable = vectors_of(model, texts, options)
    usable = np.asarray(usable.reshape(len(rows), -1).all(axis=1))
    normalized = np.allclose(np.linalg.norm(vectors.astype(float), axis=1), 1, atol=UNIT)

    outcomes = []
    for name, storage in storages(model, vectors.shape[1], options):
        stored = as_stored(vectors, storage).reshape(len(rows), -1, storage.truncate_dim)
        first, others = stored[:, :1], stored[:, 1:]
        how = model.kind.compared
        compared = similarities(first, others, how)[:, 0]  # [row, other]
        if data.task == "triplets":
            outcome = _triplets(name, how, data, compared, usable)
        elif data.task == "pairs":
            outcome = _pairs(name, how, data, compared[:, 0], usable)
        else:
            says_more = how == "cosine" and not normalized
            dots = similarities(first, others, "dot")[:, 0, 0] if says_more else None
            outcome = _correlated(name, how, data, compared[:, 0], dots, usable)
        outcomes.append(replace(outcome, storage=storage))
    return outcomes


def _triplets(name: str, how: str, data: Labelled, compared: Numbers, usable: NDArray[np.bool_]) -> Outcome:
    """Count how often the second text of a row is more similar to the first than the third is."""
    near, far = compared.T
    found = [f"{score:.3f} with {row.label}" for score, row in zip(far, data.rows, strict=True)]
    return Outcome(
        name=name,
        **means_of({"accuracy": near > far}),
        usable=usable,
        badness=far - near,
        expected=[f"{how} {score:.3f}" for score in near],
        found=found,
    )


def _pairs(name: str, how: str, data: Labelled, scores: Numbers, usable: NDArray[np.bool_]) -> Outcome:
    """Evaluate a similarity threshold as a classifier of pairs: 1 for those that belong together, else 0."""
    labels = np.array([row.label for row in data.rows], np.float64)
    once = np.ones((1, int(usable.sum())))
    threshold = pair_figures((), once, labels[usable], scores[usable])["best_f1_threshold"]
    return Outcome(
        name=name,
        figures_from=pair_figures,
        arrays=[labels, scores],
        facts=pair_facts,
        details=precision_over_recall,
        exchangeable=ranked_scores,
        usable=usable,
        badness=(threshold - scores) * (2 * labels - 1),
        expected=[f"{label:g}" for label in labels],
        found=[f"{how} {score:.3f}" for score in scores],
    )


def _correlated(
    name: str, how: str, data: Labelled, scores: Numbers, dots: Numbers | None, usable: NDArray[np.bool_]
) -> Outcome:
    """Correlate similarities with people's scores."""
    truth = np.array([row.label for row in data.rows], np.float64)
    once = np.ones((1, len(truth)))
    rank_errors = np.abs(metrics.ranks(scores, once) - metrics.ranks(truth, once))[0]
    return Outcome(
        name=name,
        figures_from=correlations,
        arrays=[truth, scores] if dots is None else [truth, scores, dots],
        facts=correlation_facts if how == "cosine" else unbounded_facts,
        exchangeable=standardized_scores,
        usable=usable,
        badness=rank_errors,
        expected=[f"{label:g}" for label in truth],
        found=[f"{how} {score:.3f}" for score in scores],
    )


# ------------------------------------------------------------------------------------------------------------- figures


def correlations(
    columns: Names, counts: Numbers, truth: Numbers, scores: Numbers, dots: Numbers | None = None
) -> Figures:
    """With people's scores: of similarities, and of the dot products of vectors that have no common length."""
    figures = {
        "spearman": metrics.spearman(scores, truth, counts),
        "pearson": metrics.pearson(scores, truth, counts),
    }
    if dots is not None:
        figures["spearman_dot"] = metrics.spearman(dots, truth, counts)
        figures["pearson_dot"] = metrics.pearson(dots, truth, counts)
    return figures


def correlation_facts(columns: Names, *arrays: Numbers) -> FigureFacts:
    """Say that a linear correlation of dot products can have no interval."""
    return FigureFacts(no_interval={"pearson_dot": UNBOUNDED})


def unbounded_facts(columns: Names, *arrays: Numbers) -> FigureFacts:
    """Say that a linear correlation of similarities without bounds can have no interval."""
    return FigureFacts(no_interval={"pearson": UNBOUNDED})


def standardized_scores(truth: Numbers, *scores: Numbers) -> Arrays:
    """Scores of mean 0 and deviation 1, so that those of two models can be exchanged."""
    return [truth, *((some - some.mean()) / (some.std() or 1) for some in scores)]


def pair_figures(columns: Names, counts: Numbers, labels: Numbers, scores: Numbers) -> Figures:
    """Figures of the best thresholds, and of all."""
    return metrics.Cuts.of(scores, labels, counts).figures


def pair_facts(columns: Names, labels: Numbers, scores: Numbers) -> FigureFacts:
    """Say which figures can have no interval."""
    no_interval = {
        "best_f1_threshold": "the best threshold jumps from one resample to the next",
        "best_accuracy": "the best of all thresholds on these pairs exceeds what it is on others, and resampling adds "
        "to that",
    }
    rare = min(labels.sum(), len(labels) - labels.sum())
    if rare == 0:
        few = "all pairs have one label, so nothing can be told apart"
    elif rare < FEWEST_OF_A_CLASS:
        few = f"fewer than {FEWEST_OF_A_CLASS} pairs have one of the labels"
    else:
        few = ""
    if few:
        no_interval |= {"average_precision": few, "best_f1": few}
    return FigureFacts(no_interval=no_interval, bias_corrected=("average_precision", "best_f1"))


def ranked_scores(labels: Numbers, scores: Numbers) -> Arrays:
    """Ranks in place of scores, so that those of two models can be exchanged."""
    return [labels, metrics.ranks(scores, np.ones((1, len(scores))))[0]]


def precision_over_recall(columns: Names, labels: Numbers, scores: Numbers) -> Details:
    """Precision over recall, at every threshold."""
    once = np.ones((1, len(labels)))
    recall, precision = metrics.Cuts.of(scores, labels, once).curve
    points = list(zip(recall[0].tolist(), precision[0].tolist(), strict=True))
    return Details(curve=Curve("precision over recall", "recall", "precision", points))


# ------------------------------------------------------------------------------------------------------------ the tasks


def read_truth(value: Any) -> float:
    """0 or 1."""
    number = read_number(value)
    if number not in (0, 1):
        raise ValueError(f"the label {quoted(value)} is neither 0 nor 1.")
    return number


EVALUATORS = {
    "sts": Evaluator(
        unit="pairs",
        fields=(TEXT, SECOND, FieldSpec(LABEL, read_number)),
        figures={
            "spearman": FigureSpec("rank correlation of similarities with people's scores"),
            "pearson": FigureSpec("linear correlation of similarities with people's scores"),
            "spearman_dot": FigureSpec("rank correlation of dot products with people's scores"),
            "pearson_dot": FigureSpec("linear correlation of dot products with people's scores"),
        },
        evaluate=evaluate,
        place=4,
        of_any_names=True,
        options=OF_VECTORS,
        sample=SENTENCE_SAMPLE,
    ),
    "pairs": Evaluator(
        unit="pairs",
        fields=(TEXT, SECOND, FieldSpec(LABEL, read_truth)),
        figures={
            "average_precision": FigureSpec("area under precision over recall: pairs with label 1 ranked first"),
            "best_f1": FigureSpec("F1 at the threshold that is best on these pairs"),
            "best_f1_threshold": FigureSpec("the similarity at which F1 is best on these pairs", None),
            "best_accuracy": FigureSpec("accuracy at the threshold that is best on these pairs"),
        },
        evaluate=evaluate,
        place=5,
        of_any_names=True,
        options=OF_VECTORS,
        sample=SENTENCE_SAMPLE,
    ),
    "triplets": Evaluator(
        unit="triplets",
        fields=(
            FieldSpec(("anchor", "query", "text"), read_text),
            FieldSpec(("positive", "near"), read_text),
            FieldSpec(("negative", "far"), read_text),
        ),
        figures={"accuracy": FigureSpec("share of rows whose second text is nearer to the first than the third is")},
        evaluate=evaluate,
        place=0,
        options=OF_VECTORS,
        sample=SENTENCE_SAMPLE,
    ),
}
