"""classification: true labels against those that a model gives, and how far its probabilities can be trusted."""

from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np

from bertcli.errors import BertcliError, shown
from bertcli.evaluate import metrics
from bertcli.evaluate.load.tables import Labelled
from bertcli.evaluate.metrics import Figures, Numbers
from bertcli.evaluate.options import Evaluate
from bertcli.evaluate.outcome import Curve, Details, Outcome, usable
from bertcli.files.texts import Text
from bertcli.model import Model

COVERAGES = (50, 80, 90)  # percent
LIKELY = 0.5  # what a label of several at once needs


def judge(model: Model, data: Labelled, wanted: Evaluate) -> list[Outcome]:
    """The likeliest label of each text; all that are likely, where a model's labels do not exclude each other.

    Errors: BertcliError for a model that gives no labels, and for a label that it does not have.
    """
    config = model.config
    trained = "classifier" in model.heads
    if trained and (config.problem_type == "regression" or config.num_labels < 2):
        raise BertcliError(f"{model.name} does not choose labels, so there is no accuracy: use another.")
    several = trained and config.problem_type == "multi_label_classification"
    records = model.classify(data.texts, **wanted.doing)
    scores = [{entry["label"]: entry["score"] for entry in record.get("labels", ())} for record in records]
    names = [*config.labels] if trained else sorted({name for some in scores for name in some})
    p = np.array([[some.get(name, 0.0) for name in names] for some in scores])
    read = partial(_true, names=names, renamed=wanted.labels or {}, several=several)
    known, fits = data.left_out.what_fits(data.rows, read, np.zeros(len(names)))
    true = np.array(known)
    chosen = np.asarray(p > LIKELY, float) if several else metrics.one_hot(p.argmax(axis=1), len(names))
    losses = (chosen != true).any(axis=1) * (np.abs(p - true) if several else p).max(axis=1)
    expected = [", ".join(names[i] for i in np.flatnonzero(row)) or "none" for row in true]
    found = [
        ", ".join(f"{names[i]} ({p[n, i]:.3f})" for i in np.flatnonzero(row)) or "none" for n, row in enumerate(chosen)
    ]
    make, details = (of_several, partial(_of_labels, names)) if several else (of_one, partial(_of_one, names))
    return [Outcome(model.name, make, [p, chosen, true], usable(records) & fits, losses, expected, found, details)]


def _true(row: Text, names: Sequence[str], renamed: Mapping[str, str], several: bool) -> Numbers:
    """1 for the true labels [label] of a row: by name, as --labels says, or by number; a list, or between commas."""
    given = row.label if isinstance(row.label, list) else row.label.split(",") if several else [row.label]
    found = np.zeros(len(names))
    for label in (renamed.get(name.strip(), name.strip()) for name in given if name.strip()):
        if label in names:
            found[names.index(label)] = 1
        elif label.isdecimal() and len(label) < 10 and int(label) < len(names):
            found[int(label)] = 1
        else:
            known = ", ".join(map(shown, names[:20]))
            raise ValueError(f"the label {shown(label)} is not one of this model's: {known} (--labels a=b says which).")
    if not several and found.sum() != 1:
        raise ValueError(f"there is {'more than one' if found.any() else 'no'} label, and this model chooses one.")
    return found


def _sums(counts: Numbers, chosen: Numbers, true: Numbers) -> metrics.Sums:
    return metrics.Sums(counts @ (chosen * true), counts @ chosen, counts @ true)


def of_several(counts: Numbers, p: Numbers, chosen: Numbers, true: Numbers) -> Figures:
    """F1 over all labels, and the share of texts with all labels right, and no others."""
    right = np.asarray((chosen == true).all(axis=1), float)
    return {**_sums(counts, chosen, true).averages(every=True), "accuracy": metrics.mean(right, counts)}


def of_one(counts: Numbers, p: Numbers, chosen: Numbers, true: Numbers) -> Figures:
    """Figures of the labels, and of how far the probabilities [text, label] can be trusted."""
    sums, right, confidence = _sums(counts, chosen, true), (chosen * true).sum(axis=1), p.max(axis=1)
    covered = metrics.covered_accuracy(confidence, right, counts, COVERAGES)
    return {
        "accuracy": metrics.mean(right, counts),
        **sums.averages(),
        "mcc": sums.mcc,
        "ece": metrics.ece(confidence, right, counts),
        "brier": metrics.mean(metrics.brier(p, true), counts),
        "log_loss": metrics.mean(metrics.log_loss(p, true), counts),
        **{f"accuracy@{percent}%": some for percent, some in zip(COVERAGES, covered, strict=True)},
    }


def _of_labels(names: Sequence[str], p: Numbers, chosen: Numbers, true: Numbers) -> Details:
    return Details(_sums(np.ones((1, len(p))), chosen, true).by_label(names))


def _of_one(names: Sequence[str], p: Numbers, chosen: Numbers, true: Numbers) -> Details:
    """Labels, the confusion matrix of those that occur, and accuracy by confidence."""
    occurs, once = (chosen + true).any(axis=0), np.ones((1, len(p)))
    confusion = (true.T @ chosen)[np.ix_(occurs, occurs)].astype(int).tolist()
    items, *sums = metrics.calibration(p.max(axis=1), (chosen * true).sum(axis=1), once)
    points = np.concatenate(sums).T[items[0] > 0] / items.T[items[0] > 0]
    curve = Curve("reliability", "mean confidence", "accuracy", points.tolist(), ideal=True)
    return _of_labels(names, p, chosen, true)._replace(confusion=confusion, curve=curve)
