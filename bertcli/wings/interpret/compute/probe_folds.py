"""Cross-validation of probes: folds of the items, C chosen on one fold, each fold predicted by the others.

The logistic regression itself is in logistic.py; what is made of the folds' values in probe_figures.py.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from bertcli.engine.threads import each
from bertcli.statistics.label_figures import LIKELY, multi_label_figures, single_label_figures
from bertcli.statistics.metrics import Numbers, Whole, log_loss, one_hot
from bertcli.tracing.dispatch import Array
from bertcli.wings.interpret.compute.layer_states import LabelledStates
from bertcli.wings.interpret.compute.logistic import ROUGH, STRENGTHS, TOLERANCE, Features, Fit
from bertcli.wings.interpret.compute.probe_figures import LayerFigures, over_folds
from bertcli.wings.interpret.compute.probe_labels import check_clusters, check_counts, is_multi_label
from bertcli.wings.interpret.specs.probe import ProbeOptions

# Of the folds, and of the control's labels.
SEED = 0
# Random labellings of the control task.
DRAWS = 10


class Measured(NamedTuple):
    """A layer's figures before its control task: [fold] by name; the C of each fold, what is predicted, fits."""

    figures: dict[str, Numbers]
    strengths: dict[int, float]
    predicted: Numbers
    fits: list[Fit]

    @property
    def accuracy(self) -> float:
        """The mean over folds."""
        return float(self.figures["accuracy"].mean())


class CrossValidation(NamedTuple):
    """The set-up of all probes, which every layer shares.

    names: of the labels. true [item, label]: 1 for the labels an item has. control [draw, item]: the number of the item
    whose labels each item gets in the control task. folds [item]. clusters [item]: the number of what is resampled
    together, and is in one fold; `resampled` is its name. unit: what an item is.
    """

    names: list[str]
    true: Numbers
    control: Whole
    folds: Whole
    multi_label: bool
    clusters: Whole | None
    resampled: str
    unit: str

    @classmethod
    def of(cls, texts: Sequence[LabelledStates], options: ProbeOptions) -> "CrossValidation":
        """Set up the probes of these texts. Errors: BertcliError for too few labels or texts."""
        multi_label = is_multi_label(options)
        check_counts([states.labels for states in texts], options, multi_label)
        items = [labels for states in texts for labels in states.labels]
        names = sorted({name for labels in items for name in labels})
        numbers = {name: number for number, name in enumerate(names)}
        true = np.zeros((len(items), len(names)))
        for row, labels in zip(true, items, strict=True):
            row[[numbers[name] for name in labels]] = 1
        has_one_label = not (options.words or multi_label)
        # Folds are stratified by label where each text has one; sentences of words and multi-label texts are not.
        strata = true.argmax(axis=1) if has_one_label else np.zeros(len(texts), np.intp)
        generator = np.random.default_rng(SEED)
        sizes = [len(states.labels) for states in texts]
        clusters = None
        if options.clusters is None:
            of_texts = folds_of(strata, options.folds, generator)
        else:
            values = [str(options.clusters[states.text]) for states in texts]
            known, clusters = np.unique(values, return_inverse=True)
            check_clusters(len(known), options)
            # Whole clusters are in one fold; a cluster counts as its most frequent label.
            votes = np.array([np.bincount(strata[clusters == number]).argmax() for number in range(len(known))])
            of_texts = folds_of(votes, options.folds, generator)[clusters]
        # The words of a sentence are in one fold, and resampled together.
        folds = np.repeat(of_texts, sizes)
        together = np.arange(len(texts)) if options.words and clusters is None else clusters
        clusters = None if together is None else np.repeat(together, sizes)
        resampled = "sentences" if options.words and options.clusters is None else "clusters"
        types, type_of = np.unique([string for states in texts for string in states.types], return_inverse=True)
        # Labels are taken from random items, so that each is drawn as often as it is there.
        control = generator.integers(len(items), size=(DRAWS, len(types)))[:, type_of]
        return cls(names, true, control, folds, multi_label, clusters, resampled, "words" if options.words else "texts")

    @property
    def fold_count(self) -> int:
        """The number of folds."""
        return int(self.folds.max()) + 1

    @property
    def majority(self) -> float:
        """The share of the most frequent label, or set of labels."""
        sets = Counter(map(tuple, self.true.tolist()))
        return max(sets.values()) / len(self.true)

    def fits(self, x: Features, true: Numbers, strengths: Sequence[float], tolerance: float) -> Iterator[Fit]:
        """Fit a probe for each C, lazily: the next, weaker regularization only when the caller goes on."""
        if self.multi_label:
            return x.multi_label_fits(true, strengths, tolerance)
        return x.fits(true.argmax(axis=1), len(self.names), strengths, tolerance)

    def losses(self, fit: Fit, x: Array, true: Numbers) -> Numbers:
        """-ln p of each item's labels [item]."""
        p = fit.probabilities(x)
        if not self.multi_label:
            return log_loss(p, true)
        right = np.where(true > 0, p, 1 - p)
        smallest = np.finfo(np.float64).eps
        return np.asarray(-np.log(right.clip(smallest, 1)).sum(axis=1))

    def predicted(self, p: Numbers) -> Numbers:
        """The predicted labels [item, label]: the likeliest one, or in a multi-label task all above LIKELY."""
        if self.multi_label:
            return np.asarray(p > LIKELY, np.float64)
        return one_hot(p.argmax(axis=1), len(self.names))

    def strength(self, x: Array, training: Any, fold: int) -> float:
        """Choose C: fit on the training folds without `fold`, and take the C with the least loss on `fold`.

        The search goes from strong to weak regularization and stops at the first C that does no better.
        """
        validating = training & (self.folds == fold)
        fitting = training & (self.folds != fold)
        best, least = STRENGTHS[0], np.inf
        fits = self.fits(Features(x[fitting]), self.true[fitting], STRENGTHS, ROUGH)
        for strength, fit in zip(STRENGTHS, fits, strict=False):
            loss = self.losses(fit, x[validating], self.true[validating]).mean()
            if loss >= least:
                break
            best, least = strength, loss
        return best

    def measure(self, x: Array) -> Measured:
        """Cross-validate states [item, width]: predict each fold by a probe fitted on the others."""
        p = np.zeros(self.true.shape)
        strengths: dict[int, float] = {}
        made: list[Fit] = []

        def predict(fold: int) -> None:
            held_out = self.folds == fold
            training = ~held_out
            next_fold = (fold + 1) % self.fold_count
            strengths[fold] = self.strength(x, training, next_fold)
            (fit,) = self.fits(Features(x[training]), self.true[training], [strengths[fold]], TOLERANCE)
            p[held_out] = fit.probabilities(x[held_out])
            made.append(fit)

        each(predict, range(self.fold_count))
        predicted = self.predicted(p)
        figures_from = multi_label_figures if self.multi_label else single_label_figures
        of_folds = one_hot(self.folds, self.fold_count).T
        figures = figures_from(self.names, of_folds, p, predicted, self.true)
        return Measured(figures, strengths, predicted, made)

    def control_task(self, x: Array, strengths: dict[int, float]) -> tuple[Numbers, Numbers, list[Fit]]:
        """The control task of probes with the same C on random labels.

        Its accuracy [draw, fold], the share of the draws in which each item is right [item], and the fits.
        """
        accuracies = np.zeros((len(self.control), self.fold_count))
        shares = np.zeros(len(self.true))
        made: list[Fit] = []

        def predict(fold: int) -> None:
            held_out = self.folds == fold
            training = ~held_out
            features = Features(x[training])
            for draw, items in enumerate(self.control):
                true = self.true[items]
                (fit,) = self.fits(features, true[training], [strengths[fold]], ROUGH)
                predicted = self.predicted(fit.probabilities(x[held_out]))
                right = (predicted == true[held_out]).all(axis=1)
                accuracies[draw, fold] = right.mean()
                shares[held_out] += right / len(self.control)
                made.append(fit)

        each(predict, range(self.fold_count))
        return accuracies, shares, made

    def layer(self, number: int, x: Array, measured: Measured) -> LayerFigures:
        """Add the control task to a measured layer."""
        control_draws, control_right, control_fits = self.control_task(x, measured.strengths)
        predicted = measured.predicted
        of_folds = over_folds(
            self.names, self.folds, predicted, self.true, control_right, self.clusters, self.resampled, self.unit
        )
        fits = [*measured.fits, *control_fits]
        confusion = self.true.T @ predicted
        accuracy, macro_f1, selectivity = (of_folds[name] for name in ("accuracy", "macro_f1", "selectivity"))
        return LayerFigures(number, accuracy, macro_f1, selectivity, self.majority, control_draws, confusion, fits)

    def whole(self, x: Array) -> tuple[Fit, float]:
        """Fit the probe that is saved, on all items; its C is the one with the least loss over all folds."""
        losses = np.zeros(len(STRENGTHS))
        for fold in range(self.fold_count):
            held_out = self.folds == fold
            training = ~held_out
            fits = self.fits(Features(x[training]), self.true[training], STRENGTHS, ROUGH)
            losses += [self.losses(fit, x[held_out], self.true[held_out]).sum() for fit in fits]
        strength = STRENGTHS[int(losses.argmin())]
        (fit,) = self.fits(Features(x), self.true, [strength], TOLERANCE)
        return fit, strength


def folds_of(strata: Whole, folds: int, generator: np.random.Generator) -> Whole:
    """Assign a fold to each item [item], stratified: each stratum is spread evenly over the folds."""
    order = generator.permutation(len(strata))
    order = order[np.argsort(strata[order], kind="stable")]
    numbers = np.empty_like(order)
    numbers[order] = np.arange(len(order)) % folds
    return numbers
