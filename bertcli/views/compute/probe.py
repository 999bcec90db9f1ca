"""Linear probes: predict your labels from each layer's states (Alain and Bengio 2016, arXiv 1610.01644).

A logistic regression reads each layer's states, pooled as `encode` pools them (of a word: the mean of its pieces).
Texts are in folds; each fold is predicted by a probe of the other folds, whose C the next fold has chosen. Figures are
means over the folds, with 95 % intervals by Student's t over them.

    majority      the share of the most frequent label
    control       the accuracy of the same probe where every distinct text, or word, has a label drawn at random: the
                  mean of ten draws, with their standard deviation
    selectivity   accuracy - control        Hewitt and Liang 2019, arXiv 1909.03368

The best of several layers, chosen on the folds that also measure it, looks better than it is, so the table says of how
many it is the best. `Probe.save` writes the probe of one layer, fitted to all texts (`bertcli/classifier.py`).
"""

import json
import logging
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, NamedTuple, Self

import numpy as np

from bertcli._version import __version__
from bertcli.analysis.layers import state_name
from bertcli.classifier import ENDING, Classifier, digest_of
from bertcli.engine.float64 import product
from bertcli.engine.threads import each
from bertcli.errors import BertcliError, quoted
from bertcli.evaluate.bootstrap import Figure, Record
from bertcli.evaluate.evaluators.classification import (
    LIKELY,
    multi_label_figures,
    single_label_figures,
)
from bertcli.evaluate.logistic import ROUGH, STRENGTHS, TOLERANCE, Features, Fit
from bertcli.evaluate.metrics import Numbers, Whole, log_loss, one_hot
from bertcli.evaluate.options import INSTEAD_OF_FOLDER, ProbeOptions
from bertcli.evaluate.report.tables import interval, value
from bertcli.evaluate.words import WordPlaces
from bertcli.files.arrays import Stored
from bertcli.files.formats import check_output, ending_of
from bertcli.files.texts import Item, Text, Texts, from_values
from bertcli.files.write.save_arrays import save_stored
from bertcli.loaded_model import LoadedModel, expect_model
from bertcli.report.documents import Document, View
from bertcli.report.terminal import Column
from bertcli.tasks.compute.encode import EncodeTask, layer_numbers, plan, unit
from bertcli.tasks.compute.run import results
from bertcli.tasks.encode import EncodeOptions
from bertcli.tasks.options import takes
from bertcli.tracing.dispatch import Array

logger = logging.getLogger("bertcli")

# Of the folds, and of the control's labels.
SEED = 0
# Random labellings of the control task.
DRAWS = 10
# With fewer texts, an interval of the accuracy is wider than most differences between layers.
FEW_TEXTS = 100
# Student's t at 97.5 % for 3 to 10 folds, that is for 2 to 9 degrees of freedom.
STUDENT = (4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262)
# Cells of a terminal for an accuracy of 1.
BAR = 8
Counting = Callable[[Sequence[Any], str], Iterable[Any]]
Pooling = tuple[str, ...]  # modes whose vectors are concatenated


# ------------------------------------------------------------------------------------------------------------ states


def poolings_of(model: LoadedModel, options: ProbeOptions) -> list[Pooling]:
    """The poolings to compare: one, or two if a classifier is saved and neither the options nor the model name one.

    For words it is (), since `of_words` averages their pieces.
    """
    if options.words:
        return [()]
    if options.pooling not in (None, "auto"):
        return [(str(options.pooling),)]
    trained = _trained_pooling(model)
    if trained or options.pooling == "auto" or options.save is None or not model.config.contextual:
        return [trained or ("mean",)]
    causal = getattr(model.config, "is_causal", False)
    return [("mean",), ("lasttoken",) if causal else ("cls",)]


def _trained_pooling(model: LoadedModel) -> Pooling:
    """The pooling that a sentence model was trained with; () for models without one vector a text."""
    own = model.sentence
    one_vector = not own.ranks and own.late is None and own.sparse is None
    return own.pooling if one_vector else ()


def modes_of(poolings: Sequence[Pooling]) -> tuple[str, ...]:
    """The distinct modes of several poolings: each is computed once."""
    return tuple(dict.fromkeys(mode for pooling in poolings for mode in pooling))


def states_task(model: LoadedModel, options: ProbeOptions, poolings: Sequence[Pooling]) -> EncodeTask:
    """An encode task that gives the states of all layers as one vector.

    It is [layer · mode · hidden] for a text; for words, each token has [layer · hidden].
    """
    # A folder's Dense layers only fit its own pooling, so `plan` gets that one, though they do not run here.
    pooling = "none" if options.words else "auto" if _trained_pooling(model) else "mean"
    # A prompt's tokens would belong to no word.
    prompt = "" if options.words else None
    encode_options: Any = {"pooling": pooling, "prompt": prompt, **vars(options.reading)}
    task = plan(model, EncodeOptions(**encode_options))
    modes = modes_of(poolings)
    layers = tuple(range(model.config.num_hidden_layers + 1))
    all_layers = replace(
        task.plan,
        pooling=modes,
        layers=layers,
        width=len(layers) * model.config.hidden_size * max(1, len(modes)),
        dense=(),
        normalize=False,
        last_layer_only=False,
        role=None,
    )
    values = {item.name: getattr(task, item.name) for item in fields(task)} | {"plan": all_layers}
    return EncodeTask(**values)


class LabelledStates(NamedTuple):
    """The items of one text that are classified: the text itself, or its words.

    text: its number. states [item, …]. labels: the names that each item has, one, or in a multi-label task any number.
    types: the string of each item; equal strings get equal labels in the control task.
    """

    text: int
    states: Array
    labels: Sequence[Sequence[str]]
    types: Sequence[str]


def labelled_states(
    task: EncodeTask, rows: Iterable[Text], labels: Sequence[Any], words: Sequence[Any]
) -> Iterator[LabelledStates]:
    """Yield the states and labels of each text, or of its words; texts with errors and cut words are left out."""
    for block in results(task, Texts(rows, at_hand=True)):
        for item, states in zip(block.items, block.vectors, strict=True):
            number = item.index
            if words and (means := of_words(item, words[number], states)):
                tags = [names_in(labels[number][n]) for n in means]
                types = [words[number][n] for n in means]
                yield LabelledStates(number, np.array([*means.values()]), tags, types)
            elif not words:
                whole = f"{item.text.text}\n{item.text.pair or ''}"
                yield LabelledStates(number, states[None], [names_in(labels[number])], [whole])


def names_in(label: Any) -> tuple[str, ...]:
    """The names of a label, each once: a list has any number, everything else is one name."""
    return tuple(dict.fromkeys(map(str, label))) if isinstance(label, list) else (str(label),)


def of_words(item: Item, words: Sequence[str], states: Array) -> dict[int, Array]:
    """The mean of each word's pieces, by the word's number; words that were cut off have none."""
    places = WordPlaces(words)
    pieces: dict[int, list[Array]] = {}
    for side, (start, end), state in zip(item.tokens.sides, item.tokens.offsets, states, strict=True):
        if side is not None:
            pieces.setdefault(places.number(start, end), []).append(state)
    return {number: np.mean(some, axis=0) for number, some in pieces.items()}


# ----------------------------------------------------------------------------------------------------------- probing


class OverFolds(Figure):
    """A mean over cross-validation folds with a t interval; `drawn` are the folds' values [fold]."""

    least = 0.0

    @property
    def record(self) -> Record:
        low, high = self.value - self.reach, self.value + self.reach
        return {"value": self.value, "low": max(self.least, low), "high": min(1.0, high), "n": self.n}

    @property
    def reach(self) -> float:
        """Half the width of the interval: t · s / √folds."""
        folds = len(self.drawn)
        return float(STUDENT[folds - 3] * self.drawn.std(ddof=1) / folds**0.5)

    @classmethod
    def of(cls, drawn: Numbers, items: int) -> Self:
        """Make the mean of the folds' values; `items` is the number of items in all folds."""
        return cls(float(drawn.mean()), drawn, items)


class Gain(OverFolds):
    """A mean over folds of a difference of two shares, which may be negative."""

    least = -1.0


class Knowledge(NamedTuple):
    """The figures of a layer's probes on held-out items, and the fits that were made.

    control: accuracy [draw, fold] with labels drawn at random. confusion: how often a label was taken for another
    [true, predicted]; of a multi-label task only its diagonal says anything.
    """

    layer: int
    accuracy: Figure
    macro_f1: Figure
    majority: float
    control_draws: Numbers
    confusion: Numbers
    fits: list[Fit]

    @property
    def control(self) -> float:
        """The control's accuracy."""
        return float(self.control_draws.mean())

    @property
    def control_spread(self) -> float:
        """The standard deviation of the control's accuracy over its draws."""
        return float(self.control_draws.mean(axis=1).std(ddof=1))

    @property
    def selectivity(self) -> "Gain":
        """Accuracy less control, fold by fold."""
        return Gain.of(self.accuracy.drawn - self.control_draws.mean(axis=0), self.accuracy.n)

    @property
    def record(self) -> dict[str, Any]:
        return {
            "layer": self.layer,
            "accuracy": self.accuracy.record,
            "macro_f1": self.macro_f1.record,
            "majority": self.majority,
            "control": self.control,
            "control_spread": self.control_spread,
            "selectivity": self.selectivity.record,
        }


class Measured(NamedTuple):
    """A layer's figures before its control task: [fold] by name; the C of each fold, confusion, fits."""

    figures: dict[str, Numbers]
    strengths: dict[int, float]
    confusion: Numbers
    fits: list[Fit]

    @property
    def accuracy(self) -> float:
        """The mean over folds."""
        return float(self.figures["accuracy"].mean())


def folds_of(strata: Whole, folds: int, generator: np.random.Generator) -> Whole:
    """Assign a fold to each item [item], stratified: each stratum is spread evenly over the folds."""
    order = generator.permutation(len(strata))
    order = order[np.argsort(strata[order], kind="stable")]
    numbers = np.empty_like(order)
    numbers[order] = np.arange(len(order)) % folds
    return numbers


class Probing(NamedTuple):
    """The set-up of all probes, the same for every layer.

    names: of the labels. true [item, label]: 1 for the labels an item has. control [draw, item]: the number of the item
    whose labels each item gets in the control task. folds [item].
    """

    names: list[str]
    true: Numbers
    control: Whole
    folds: Whole
    multi_label: bool

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
        """Fit a probe for each C, lazily: weaker regularization only if it is asked for."""
        if self.multi_label:
            return x.multi_label_fits(true, strengths, tolerance)
        return x.fits(true.argmax(axis=1), len(self.names), strengths, tolerance)

    def losses(self, fit: Fit, x: Array, true: Numbers) -> Numbers:
        """-ln p of each item's labels [item]."""
        p = fit.probabilities(x)
        if not self.multi_label:
            return log_loss(p, true)
        right = np.where(true > 0, p, 1 - p)
        return np.asarray(-np.log(right.clip(np.finfo(np.float64).eps, 1)).sum(axis=1))

    def predicted(self, p: Numbers) -> Numbers:
        """The predicted labels [item, label]: the likeliest one, or in a multi-label task all above LIKELY."""
        if self.multi_label:
            return np.asarray(p > LIKELY, np.float64)
        return one_hot(p.argmax(axis=1), len(self.names))

    def strength(self, x: Array, train: Any, fold: int) -> float:
        """Choose C: fit on the training folds without `fold`, and take the C with the least loss on `fold`.

        The search goes from strong to weak regularization and stops at the first C that does no better.
        """
        inner, rest = train & (self.folds == fold), train & (self.folds != fold)
        best, least = STRENGTHS[0], np.inf
        made = self.fits(Features(x[rest]), self.true[rest], STRENGTHS, ROUGH)
        for strength, fit in zip(STRENGTHS, made, strict=False):
            loss = self.losses(fit, x[inner], self.true[inner]).mean()
            if loss >= least:
                break
            best, least = strength, loss
        return best

    def measure(self, x: Array) -> Measured:
        """Cross-validate states [item, width]: predict each fold by a probe fitted on the others."""
        p = np.zeros(self.true.shape)
        strengths, made = dict[int, float](), list[Fit]()

        def predict(fold: int) -> None:
            held = self.folds == fold
            strengths[fold] = self.strength(x, ~held, (fold + 1) % self.fold_count)
            (fit,) = self.fits(Features(x[~held]), self.true[~held], [strengths[fold]], TOLERANCE)
            p[held] = fit.probabilities(x[held])
            made.append(fit)

        each(predict, range(self.fold_count))
        chosen = self.predicted(p)
        figures_from = multi_label_figures if self.multi_label else single_label_figures
        figures = figures_from(self.names, one_hot(self.folds, self.fold_count).T, p, chosen, self.true)
        return Measured(figures, strengths, product(self.true.T, chosen), made)

    def control_task(self, x: Array, strengths: dict[int, float]) -> tuple[Numbers, list[Fit]]:
        """The control task: accuracy [draw, fold] of probes with the same C on random labels, and their fits."""
        accuracies, made = np.zeros((len(self.control), self.fold_count)), list[Fit]()

        def predict(fold: int) -> None:
            held = self.folds == fold
            features = Features(x[~held])
            for draw, items in enumerate(self.control):
                true = self.true[items]
                (fit,) = self.fits(features, true[~held], [strengths[fold]], ROUGH)
                right = self.predicted(fit.probabilities(x[held])) == true[held]
                accuracies[draw, fold] = right.all(axis=1).mean()
                made.append(fit)

        each(predict, range(self.fold_count))
        return accuracies, made

    def layer(self, number: int, x: Array, measured: Measured) -> Knowledge:
        """Add the control task to a measured layer."""
        control, controls = self.control_task(x, measured.strengths)
        accuracy, macro_f1 = (OverFolds.of(measured.figures[name], len(x)) for name in ("accuracy", "macro_f1"))
        fits = [*measured.fits, *controls]
        return Knowledge(number, accuracy, macro_f1, self.majority, control, measured.confusion, fits)

    def whole(self, x: Array) -> tuple[Fit, float]:
        """Fit the probe that is saved, on all items; its C is the one with the least loss over all folds."""
        losses = np.zeros(len(STRENGTHS))

        def add(fold: int) -> None:
            held = self.folds == fold
            made = self.fits(Features(x[~held]), self.true[~held], STRENGTHS, ROUGH)
            losses[:] += [self.losses(fit, x[held], self.true[held]).sum() for fit in made]

        for fold in range(self.fold_count):
            add(fold)
        strength = STRENGTHS[int(losses.argmin())]
        (fit,) = self.fits(Features(x), self.true, [strength], TOLERANCE)
        return fit, strength


# ------------------------------------------------------------------------------------------------------- from Python


@takes(ProbeOptions)
def probe(model: LoadedModel, texts: Any, options: ProbeOptions) -> "Probe":
    """Linear probes of every layer, trained on these labels: `.layers`, `.best`, `.record`, `.save(file)`.

    labels: one for each text; lists of names where a text may have several (multi-label). words: texts are lists of
    words, and labels lists with one for each. save: a .safetensors file for a classifier, the probe of the best layer
    or of `layer`, which `bertcli.load(model, classifier=FILE)` takes.
    Errors: BertcliError for labels that do not fit, one label only, fewer texts of one than folds, and as in `encode`.
    """
    found = probed(model, texts, options)
    if options.save is not None:
        found.save(options.save)
    return found


def probed(
    model: LoadedModel, texts: Any, options: ProbeOptions, counting: Counting = lambda items, unit: items
) -> "Probe":
    """Probe a model as `probe` does, but write nothing; `counting` wraps the loops (progress)."""
    expect_model(model)
    words = [list(words) for words in texts] if options.words else []
    rows = list(from_values(map(" ".join, words) if words else texts, options.pairs))
    labels = list(options.labels)
    check_labels(rows, labels, words, options)
    last = model.config.num_hidden_layers
    layer = None if options.layer is None else layer_numbers(options.layer, last)[0]
    origin = None if options.save is None else Origin.of(model, options.save)
    poolings = poolings_of(model, options)
    task = states_task(model, options, poolings)
    if len(rows) < FEW_TEXTS:
        logger.info("%d texts are few: differences between layers are mostly chance below %d.", len(rows), FEW_TEXTS)
    found = list(labelled_states(task, counting(rows, "texts"), labels, words))
    probing = probing_of(found, options)
    states = np.concatenate([one.states for one in found])
    modes = modes_of(poolings)
    states = states.reshape(len(states), last + 1, max(1, len(modes)), -1)

    def vectors(number: int, pooling: Pooling) -> Array:
        chosen = states[:, number, [modes.index(mode) for mode in pooling]] if pooling else states[:, number]
        flat = chosen.reshape(len(chosen), -1)
        return unit(flat) if options.normalize else flat

    pairs = [(pooling, number) for pooling in poolings for number in range(last + 1)]
    measured = {pair: probing.measure(vectors(pair[1], pair[0])) for pair in counting(pairs, "layers")}
    considered = [pair for pair in pairs if layer is None or pair[1] == layer]
    pooling, _ = max(considered, key=lambda pair: measured[pair].accuracy)
    layers = [
        probing.layer(number, vectors(number, pooling), measured[pooling, number])
        for number in counting(range(last + 1), "controls")
    ]
    best = max(layers, key=lambda one: one.accuracy.value).layer
    return Probe(
        layers=layers,
        labels=probing.names,
        best=best,
        shown=best if layer is None else layer,
        unit="words" if words else "texts",
        pooling=pooling,
        poolings=poolings,
        probing=probing,
        vectors=vectors,
        normalize=options.normalize,
        task=task,
        origin=origin,
    )


def check_labels(rows: Sequence[Text], labels: Sequence[Any], words: Sequence[Any], options: ProbeOptions) -> None:
    """Raise BertcliError for labels that no probe can be made of, before any text is computed."""
    if len(labels) != len(rows) or any(len(one) != len(own) for one, own in zip(words, labels, strict=False)):
        raise BertcliError(f"{len(labels)} labels do not fit {len(rows)} texts: give one for each text, or word.")
    if words or not labels:
        of_items = [[names_in(tag) for tag in tags] for tags in labels]
    else:
        of_items = [[names_in(label)] for label in labels]
    check_counts(of_items, options, not words and any(isinstance(label, list) for label in labels))


def check_counts(labels: Sequence[Sequence[Sequence[str]]], options: ProbeOptions, multi_label: bool) -> None:
    """Raise BertcliError for too few labels, or too few texts for the folds; labels [text, item] are sets of names."""
    counts = Counter(name for of_text in labels for names in of_text for name in names)
    if len(counts) < 2:
        alone = quoted(*counts) if counts else "none"
        raise BertcliError(f"A probe tells labels apart, and here is {alone} alone.")
    least, of = len(labels), ""
    if not options.words:
        rarest = min(sorted(counts), key=counts.__getitem__)
        least, of = counts[rarest], f" with the label {quoted(rarest)}"
    if least < options.folds:
        raise BertcliError(
            f"There are fewer texts{of} ({least}) than folds ({options.folds}): give more, or fewer folds (--folds)."
        )
    if multi_label and (everywhere := [name for name, count in counts.items() if count == len(labels)]):
        raise BertcliError(
            f"Every text has the label {quoted(everywhere[0])}, so there is nothing to tell: leave it out."
        )


def probing_of(found: Sequence[LabelledStates], options: ProbeOptions) -> Probing:
    """Set up the probes of these texts: labels, folds, control. Errors: BertcliError for too few labels or texts."""
    multi_label = not options.words and any(isinstance(label, list) for label in options.labels)
    check_counts([one.labels for one in found], options, multi_label)
    items = [names for one in found for names in one.labels]
    names = sorted({name for some in items for name in some})
    numbers = {name: number for number, name in enumerate(names)}
    true = np.zeros((len(items), len(names)))
    for row, some in zip(true, items, strict=True):
        row[[numbers[name] for name in some]] = 1
    single = not (options.words or multi_label)
    # Folds are stratified by label where each text has one; sentences of words and multi-label texts are not.
    strata = true.argmax(axis=1) if single else np.zeros(len(found), np.intp)
    generator = np.random.default_rng(SEED)
    folds = np.repeat(folds_of(strata, options.folds, generator), [len(one.labels) for one in found])
    types, type_of = np.unique([one for part in found for one in part.types], return_inverse=True)
    control = generator.integers(len(items), size=(DRAWS, len(types)))[:, type_of]
    return Probing(names, true, control, folds, multi_label)


# ------------------------------------------------------------------------------------------------ the saved classifier


class Origin(NamedTuple):
    """The model that a classifier is for, where its states come from."""

    model: str
    digest: str

    @classmethod
    def of(cls, model: LoadedModel, file: str) -> "Origin":
        """Check that a classifier of this model can be written. Errors: BertcliError."""
        check_file(file)
        if not model.as_stored:
            raise BertcliError("A classifier is for a model as its files have it, and this one was changed.")
        return cls(model.name, digest_of(model.network, model.tokenizer))


def check_file(file: str) -> None:
    """Raise BertcliError for the name of a folder, which older versions wrote, and for what cannot be written."""
    if ending_of(file) != ENDING:
        raise BertcliError(f"{file} is no {ENDING} file. {INSTEAD_OF_FOLDER}")
    check_output(file, (ENDING,))


# ----------------------------------------------------------------------------------------------------- what is shown


@dataclass(frozen=True, eq=False)
class Probe(View):
    """The result of `probe`. best: the layer with the highest accuracy. shown: the layer that is saved and detailed."""

    layers: list[Knowledge]
    labels: list[str]
    best: int
    shown: int
    unit: str
    pooling: Pooling
    poolings: list[Pooling]
    probing: Probing
    vectors: Callable[[int, Pooling], Array]
    normalize: bool
    task: EncodeTask
    origin: Origin | None

    @property
    def record(self) -> dict[str, Any]:
        layers = [layer.record for layer in self.layers]
        pooling = ",".join(self.pooling) or None
        return {
            "layers": layers,
            "best": self.best,
            "count": self.count,
            "labels": self.labels,
            "pooling": pooling,
        }

    @property
    def count(self) -> int:
        """The number of texts or words that were predicted."""
        return len(self.probing.true)

    @property
    def multi_label(self) -> bool:
        """True if a text may have several labels."""
        return self.probing.multi_label

    def save(self, file: str) -> Classifier:
        """Write the probe of the layer `shown`, fitted to all texts, as a classifier. Errors: BertcliError."""
        if self.unit == "words":
            raise BertcliError("A saved probe classifies texts, not words.")
        task = self.task
        origin = self.origin or Origin.of(task.model, file)
        fit, strength = self.probing.whole(self.vectors(self.shown, self.pooling))
        layer = self.layers[self.shown].record
        figures = {name: figure for name, figure in layer.items() if name != "layer"}
        figures |= {"folds": self.probing.fold_count, "texts": self.count, "best_of": self.compared}
        classifier = Classifier(
            weight=fit.weights.astype(np.float32),
            bias=fit.biases.astype(np.float32),
            labels=tuple(self.labels),
            multi_label=self.multi_label,
            layer=self.shown,
            pooling=self.pooling,
            normalize=self.normalize,
            prompt=task.prompt,
            prompt_tokens=task.left_out,
            max_length=task.limit,
            model=origin.model,
            digest=origin.digest,
            made={
                "figures": json.dumps(figures),
                "C": f"{strength:g}",
                "bertcli": __version__,
                "numpy": np.__version__,
            },
            file=file,
        )
        weight, bias = classifier.weight, classifier.bias
        save_stored(
            file,
            *(Stored.text(name, text) for name, text in classifier.metadata.items()),
            Stored("weight", "<f4", weight.shape, [weight]),
            Stored("bias", "<f4", bias.shape, [bias]),
        )
        return classifier

    @property
    def compared(self) -> int:
        """The number of layers and poolings among which the saved one was chosen; 1 if --layer named it."""
        layers = len(self.layers) if self.shown == self.best else 1
        return layers * len(self.poolings)

    def document(self) -> Document:
        """The table that `bertcli probe` prints."""
        names = ("State", "Accuracy", "95 % interval", "Macro F1", "Control", "Selectivity")
        columns = [Column(name, number=i > 1) for i, name in enumerate(names)]
        rows = [self._row(layer) for layer in self.layers]
        return Document(columns, rows, self._below(), self.record, [self._line(layer) for layer in self.layers])

    def _row(self, layer: Knowledge) -> list[str]:
        accuracy, selectivity = layer.accuracy.record, layer.selectivity
        return [
            state_name(layer.layer),
            f"{value(accuracy)} {bar(accuracy['value'])}",
            interval(accuracy),
            value(layer.macro_f1.record),
            f"{layer.control:.4f}",
            # Two digits, so that the table fits 80 columns; the record has all.
            f"{selectivity.value:+.2f} ±{selectivity.reach:.2f}",
        ]

    def _line(self, layer: Knowledge) -> dict[str, Any]:
        """A layer as a line of a .csv file: figures with an interval have a column for each end."""
        line: dict[str, Any] = {}
        for name, figure in layer.record.items():
            if isinstance(figure, dict):
                line |= {f"{name}_{end}": figure[end] for end in ("value", "low", "high")}
            else:
                line[name] = figure
        return line

    def _below(self) -> list[str]:
        best, made = self.layers[self.best], [fit for layer in self.layers for fit in layer.fits]
        accuracy = best.accuracy.record
        poolings = [",".join(pooling) for pooling in self.poolings]
        compared = f"{len(self.layers)} {'layer' if len(self.layers) == 1 else 'layers'}"
        pooling = ""
        if len(poolings) > 1:
            compared += f" and {len(poolings)} poolings ({', '.join(poolings)})"
            pooling = f", pooling {','.join(self.pooling)}"
        kind = ", of which a text may have several" if self.multi_label else ""
        slow, most = sum(not fit.converged for fit in made), max(fit.steps for fit in made)
        fitted = f"{slow} have not converged" if slow else f"all have converged within {most} steps"
        return [
            f"Best of {compared}, chosen on these folds: {state_name(self.best)}{pooling}, {value(accuracy)} "
            f"{interval(accuracy)}. Majority: {best.majority:.4f} of {self.count:,} {self.unit}, "
            f"{len(self.labels)} labels{kind}.",
            f"Intervals are 95 % over {len(best.accuracy.drawn)} folds. Control is the mean of {DRAWS} draws of random "
            f"labels; their standard deviation is {best.control_spread:.4f} at the best layer. {len(made)} fits: "
            f"{fitted} of L-BFGS, to a gradient of {TOLERANCE:g} (control: {ROUGH:g}).",
        ]


def bar(share: float) -> str:
    """A bar of BAR cells for a share from 0 to 1, drawn to an eighth of a cell."""
    whole, rest = divmod(round(8 * BAR * share), 8)
    return "█" * whole + " ▏▎▍▌▋▊▉"[rest].strip()
