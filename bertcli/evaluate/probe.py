"""What each layer knows: linear classifiers of its states, "probes" (Alain and Bengio 2016, arXiv 1610.01644).

Of each layer's states, pooled as `encode` pools them (of a word: the mean of its pieces), a logistic regression tells
the labels. Texts are in folds; each fold is told by a probe of the others, after the next one has chosen C. Figures are
means over the folds, with 95 % intervals by Student's t over them.

    majority      the share of the most frequent label
    control       the accuracy of the same probe where every distinct text, or word, has a label drawn at random
    selectivity   accuracy - control        Hewitt and Liang 2019, arXiv 1909.03368
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import fields, replace
from typing import Any, NamedTuple

import numpy as np

from bertcli.analysis.layers import state_name
from bertcli.engine.float64 import product
from bertcli.engine.packing import Packed
from bertcli.engine.threads import each
from bertcli.errors import BertcliError, shown
from bertcli.evaluate.bootstrap import Figure, Record
from bertcli.evaluate.evaluators.classification import single_label_figures
from bertcli.evaluate.logistic import ROUGH, STRENGTHS, TOLERANCE, Fit, fits
from bertcli.evaluate.metrics import Numbers, Whole, log_loss, mean, one_hot
from bertcli.evaluate.options import ProbeOptions
from bertcli.evaluate.report.tables import interval, value
from bertcli.evaluate.saved_probe import CHECKED, Head, check_new, head_of, save_probe
from bertcli.evaluate.words import WordPlaces
from bertcli.files.texts import Item, Text, Texts, from_values
from bertcli.lean import lean_dataclass
from bertcli.loaded_model import LoadedModel, expect_model
from bertcli.report.documents import Document, View
from bertcli.report.terminal import Column
from bertcli.tasks.compute.encode import EncodeTask, layer_numbers, plan
from bertcli.tasks.compute.run import results
from bertcli.tasks.encode import EncodeOptions
from bertcli.tasks.options import takes
from bertcli.tracing.dispatch import Array

SEED = 0  # of folds, and of the control's labels
STUDENT = (4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262)  # t at 97.5 % for 3 to 10 folds
BAR = 8  # cells of a terminal for an accuracy of 1
Counting = Callable[[Sequence[Any], str], Iterable[Any]]


# ------------------------------------------------------------------------------------------------------------ states


class HeadStates(EncodeTask):
    """Every layer's state as a head would read it, were that layer the last."""

    def states(self, packed: Packed) -> list[Array]:
        *others, last = super().states(packed)
        return [*map(self.model.network.final_norm, others), last]


def reading(model: LoadedModel, wanted: ProbeOptions, head: Head | None) -> EncodeTask:
    """What gives the states of all layers side by side: of texts [layer · width], of words [token, layer · width]."""
    pooling = (
        "none"
        if wanted.words
        else head.pooling
        if head
        else "auto"
        if model.sentence.pooling and not model.sentence.ranks
        else "mean"
    )
    prompt = "" if wanted.words or head else None  # words and classify have none
    options: Any = {"pooling": pooling, "prompt": prompt, **vars(wanted.reading)}
    task = plan(model, EncodeOptions(**options))
    layers = tuple(range(model.config.num_hidden_layers + 1))
    width = len(layers) * model.config.hidden_size * max(1, len(task.plan.pooling))
    whole = replace(task.plan, layers=layers, width=width, dense=(), normalize=False, last_layer_only=False, role=None)
    values = {item.name: getattr(task, item.name) for item in fields(task)} | {"plan": whole}
    return (HeadStates if head else EncodeTask)(**values)


class Part(NamedTuple):
    """Of one text: its number, the states of what is classified in it [item, …], the labels, and what each reads."""

    text: int
    states: Array
    labels: Sequence[str]
    types: Sequence[str]


def parts_of(task: EncodeTask, rows: Iterable[Text], labels: Sequence[Any], words: Sequence[Any]) -> Iterator[Part]:
    """Each text with its label, or its words with theirs; what cannot be used, or was cut off, is left out."""
    for block in results(task, Texts(rows, at_hand=True)):
        for item, states in zip(block.items, block.vectors, strict=True):
            number = item.index
            if words and (means := of_words(item, words[number], states)):
                own, types = ([column[n] for n in means] for column in (labels[number], words[number]))
                yield Part(number, np.array([*means.values()]), [*map(str, own)], types)
            elif not words:
                yield Part(number, states[None], [str(labels[number])], [f"{item.text.text}\n{item.text.pair or ''}"])


def of_words(item: Item, words: Sequence[str], states: Array) -> dict[int, Array]:
    """The mean of the pieces of every word that has some, by its number."""
    places = WordPlaces(words)
    pieces: dict[int, list[Array]] = {}
    for side, (start, end), state in zip(item.tokens.sides, item.tokens.offsets, states, strict=True):
        if side is not None:
            pieces.setdefault(places.number(start, end), []).append(state)
    return {number: np.mean(some, axis=0) for number, some in pieces.items()}


# ----------------------------------------------------------------------------------------------------------- probing


class OverFolds(Figure):
    """A mean over folds, of which `drawn` are the values [fold]."""

    @property
    def record(self) -> Record:
        folds = len(self.drawn)
        reach = STUDENT[folds - 3] * float(self.drawn.std(ddof=1)) / folds**0.5
        return {"value": self.value, "low": max(0.0, self.value - reach), "high": min(1.0, self.value + reach)}


class Knowledge(NamedTuple):
    """What the probes of a layer tell of items that they have not seen, and the fits that were made.

    confusion: how often a label was taken for another [true, said].
    """

    layer: int
    accuracy: Figure
    macro_f1: Figure
    majority: float
    control: float
    confusion: Numbers
    fits: list[Fit]

    @property
    def record(self) -> dict[str, Any]:
        figures = {"accuracy": self.accuracy.record, "macro_f1": self.macro_f1.record}
        selectivity = self.accuracy.value - self.control
        shares = {"majority": self.majority, "control": self.control, "selectivity": selectivity}
        return {"layer": self.layer, **figures, **shares}


def folds_of(strata: Whole, folds: int, generator: np.random.Generator) -> Whole:
    """A fold for each item [item], drawn so that each has as many of every stratum as the others, give or take one."""
    order = generator.permutation(len(strata))
    order = order[np.argsort(strata[order], kind="stable")]
    numbers = np.empty_like(order)
    numbers[order] = np.arange(len(order)) % folds
    return numbers


class Probing(NamedTuple):
    """How probes are made: the labels' names, the labels [item], those of the control, and each item's fold."""

    names: list[str]
    labels: Whole
    control: Whole
    folds: Whole

    def fit(self, x: Array, labels: Whole, strength: float) -> Fit:
        """A probe of states [item, width]."""
        return next(fits(x, labels, len(self.names), [strength]))

    def strength(self, x: Array, train: Any, fold: int) -> float:
        """The C of which this fold is told best by a probe of the others to `train` on; no weaker one does better."""
        inner, rest = train & (self.folds == fold), train & (self.folds != fold)
        best, least = STRENGTHS[0], np.inf
        made = fits(x[rest], self.labels[rest], len(self.names), STRENGTHS, ROUGH)
        for strength, fit in zip(STRENGTHS, made, strict=True):
            loss = log_loss(fit.probabilities(x[inner]), one_hot(self.labels[inner], len(self.names))).mean()
            if loss >= least:
                break
            best, least = strength, loss
        return best

    def layer(self, number: int, x: Array) -> Knowledge:
        """What is known of states [item, width]."""
        probabilities, right = np.zeros((len(x), len(self.names))), np.zeros(len(x))
        counts, made = one_hot(self.folds, int(self.folds.max()) + 1).T, list[Fit]()

        def tell(fold: int) -> None:
            held = self.folds == fold
            strength = self.strength(x, ~held, (fold + 1) % len(counts))
            real, drawn = (self.fit(x[~held], y[~held], strength) for y in (self.labels, self.control))
            probabilities[held] = real.probabilities(x[held])
            right[held] = drawn.logits(x[held]).argmax(axis=1) == self.control[held]
            made.extend((real, drawn))

        each(tell, range(len(counts)))
        true, said = (one_hot(labels, len(self.names)) for labels in (self.labels, probabilities.argmax(axis=1)))
        figures = single_label_figures(self.names, counts, probabilities, said, true)
        accuracy, f1 = (OverFolds(float(figures[name].mean()), figures[name]) for name in ("accuracy", "macro_f1"))
        majority, control = float(true.mean(axis=0).max()), float(mean(right, counts).mean())
        return Knowledge(number, accuracy, f1, majority, control, product(true.T, said), made)

    def whole(self, x: Array) -> Fit:
        """The probe of all items, whose C the first fold has chosen."""
        return self.fit(x, self.labels, self.strength(x, np.ones(len(x), bool), 0))


@takes(ProbeOptions)
def probe(model: LoadedModel, texts: Any, wanted: ProbeOptions) -> "Probe":
    """What each layer's states tell of the labels: `.layers`, `.best`, `.record`. One label for each text.

    words: texts are lists of words, and labels lists with one for each. save: the name of a new folder for a model that
    classifies as the probe of the best layer, or of `layer`, does; states are then what its classification head reads.
    Errors: BertcliError for labels that do not fit, one label only, fewer texts of one than folds, a model without such
    a head (save), and as in `encode`.
    """
    return probed(model, texts, wanted)


def probed(
    model: LoadedModel, texts: Any, wanted: ProbeOptions, counting: Counting = lambda items, unit: items
) -> "Probe":
    """The same; `counting` passes on texts and layers as they are done."""
    expect_model(model)
    words = [list(words) for words in texts] if wanted.words else []
    rows, labels = list(from_values(map(" ".join, words) if words else texts, wanted.pairs)), list(wanted.labels)
    if len(labels) != len(rows) or any(len(one) != len(own) for one, own in zip(words, labels, strict=False)):
        raise BertcliError(f"{len(labels)} labels do not fit {len(rows)} texts: give one for each text, or word.")
    if not words and (several := next((label for label in labels if isinstance(label, list)), None)) is not None:
        raise BertcliError(f"A probe tells one label of each text, not {shown(several)}.")
    last, head = model.config.num_hidden_layers, None
    layer = None if wanted.layer is None else layer_numbers(wanted.layer, last)[0]
    if wanted.save is not None:
        check_new(wanted.save)
        head = head_of(model, len({*map(str, labels)}))
        if layer == 0:
            raise BertcliError(f"No model ends before its first layer: save one of 1 to {last} (--layer).")
    task = reading(model, wanted, head)
    parts = list(parts_of(task, counting(rows, "texts"), labels, words))
    probing = probing_of(parts, wanted)
    states = np.concatenate([part.states for part in parts]).reshape(len(probing.labels), last + 1, -1)
    layers = [probing.layer(n, states[:, n]) for n in counting(range(last + 1), "layers")]
    best = max(layers, key=lambda one: one.accuracy.value).layer
    if head is not None and wanted.save is not None:
        layer = layer or max(layers[1:], key=lambda one: one.accuracy.value).layer
        fit, some = probing.whole(states[:, layer]), [rows[part.text] for part in parts[:CHECKED]]
        expected = fit.logits(states[:CHECKED, layer])
        save_probe(model, wanted.save, head, layer, fit, probing.names, task.limit, some, expected)
    return Probe(layers, probing.names, best, best if layer is None else layer, "words" if words else "texts")


def probing_of(parts: Sequence[Part], wanted: ProbeOptions) -> Probing:
    """How probes of these texts are made. Errors: BertcliError for too few labels, or texts."""
    found, labels = np.unique([label for part in parts for label in part.labels], return_inverse=True)
    names: list[str] = found.tolist()
    if len(names) < 2:
        raise BertcliError(f"A probe tells labels apart, and here is {shown(*names) if names else 'none'} alone.")
    few = int(np.bincount(labels).argmin())
    strata = np.zeros(len(parts), np.intp) if wanted.words else labels
    least, of = (len(parts), "") if wanted.words else ((labels == few).sum(), f" with the label {shown(names[few])}")
    if least < wanted.folds:
        raise BertcliError(
            f"There are fewer texts{of} ({least}) than folds ({wanted.folds}): give more, or fewer folds (--folds)."
        )
    generator = np.random.default_rng(SEED)
    folds = np.repeat(folds_of(strata, wanted.folds, generator), [len(part.labels) for part in parts])
    kinds, kind = np.unique([one for part in parts for one in part.types], return_inverse=True)
    return Probing(names, labels, generator.choice(labels, len(kinds))[kind], folds)


# ----------------------------------------------------------------------------------------------------- what is shown


@lean_dataclass
class Probe(View):
    """What every layer knows; `best` is the one whose probes tell most, `shown` the one to look at closer."""

    layers: list[Knowledge]
    labels: list[str]
    best: int
    shown: int
    unit: str

    @property
    def record(self) -> dict[str, Any]:
        layers = [layer.record for layer in self.layers]
        return {"layers": layers, "best": self.best, "count": self.count, "labels": self.labels}

    @property
    def count(self) -> int:
        """How many texts or words were told."""
        return int(self.layers[0].confusion.sum())

    def document(self) -> Document:
        """The table that `bertcli probe` prints."""
        names = ("State", "Accuracy", "95 % interval", "Macro F1", "Control", "Selectivity")
        columns, rows, lines = [Column(name, number=i > 1) for i, name in enumerate(names)], [], []
        for layer in self.layers:
            record, of_layer = layer.record, [state_name(layer.layer)]
            figures = {name: record.pop(name) for name in ("accuracy", "macro_f1")}
            accuracy, f1 = figures.values()
            of_layer += [f"{value(accuracy)} {bar(accuracy['value'])}", interval(accuracy)]
            rows.append([*of_layer, value(f1), f"{layer.control:.4f}", f"{record['selectivity']:+.4f}"])
            flat = {f"{name}_{part}": number for name, one in figures.items() for part, number in one.items()}
            lines.append({"layer": record.pop("layer"), **flat, **record})
        best, made = self.layers[self.best], [fit for layer in self.layers for fit in layer.fits]
        accuracy = best.accuracy.record
        slow, most = sum(not fit.converged for fit in made), max(fit.steps for fit in made)
        fitted = f"{slow} have not converged" if slow else f"all have converged within {most} steps"
        below = [
            f"Best: {state_name(self.best)}, {value(accuracy)} {interval(accuracy)}. Majority: "
            f"{best.majority:.4f} of {self.count:,} {self.unit}, {len(self.labels)} labels.",
            f"Intervals are 95 % over {len(best.accuracy.drawn)} folds. {len(made)} fits: {fitted} of L-BFGS, to a "
            f"gradient of {TOLERANCE:g}.",
        ]
        return Document(columns, rows, below, self.record, lines)


def bar(share: float) -> str:
    """A share of BAR cells, to an eighth of a cell."""
    whole, rest = divmod(round(8 * BAR * share), 8)
    return "█" * whole + " ▏▎▍▌▋▊▉"[rest].strip()
