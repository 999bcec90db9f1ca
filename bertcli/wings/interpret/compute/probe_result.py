"""Probe: the result of `probe` as a record, a table, a classifier's file. Its page is in probe_page.py."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from bertcli._version import __version__
from bertcli.analysis.layers import state_name
from bertcli.errors import BertcliError
from bertcli.files.arrays import FileArray
from bertcli.files.files_beside import check_output
from bertcli.files.write.save import save_stored
from bertcli.kinds.classifier.file import ENDING, Classifier, digest_of
from bertcli.loaded_model import LoadedModel
from bertcli.report.charts import Curve, by_layer, confusion_map
from bertcli.report.documents import Document, View
from bertcli.report.figures import Panel, WithFigure, curve, heat_map
from bertcli.report.intervals import written
from bertcli.report.terminal import Column
from bertcli.statistics.intervals import Figure
from bertcli.tasks.compute.encode import EncodeTask
from bertcli.tracing.dispatch import Array
from bertcli.wings.interpret.compute.layer_states import Pooling
from bertcli.wings.interpret.compute.logistic import ROUGH, TOLERANCE
from bertcli.wings.interpret.compute.probe_figures import LayerFigures
from bertcli.wings.interpret.compute.probe_folds import DRAWS, CrossValidation
from bertcli.wings.interpret.specs.probe import check_name

CAPTION = "Accuracy of a linear classifier on each layer's states, with its 95 % interval"
# Cells of a terminal for an accuracy of 1.
BAR = 8
# Filled eighths of a cell, from none to seven.
EIGHTHS = " ▏▎▍▌▋▊▉"
COLUMNS = ("State", "Accuracy", "95 % interval", "Macro F1", "Control", "Selectivity")


class Origin(NamedTuple):
    """The model that a classifier is for, where its states come from."""

    model: str
    digest: str

    @classmethod
    def of(cls, model: LoadedModel, file: str) -> "Origin":
        """Check that a classifier of this model can be written. Errors: BertcliError."""
        check_name(file)
        check_output(file, (ENDING,))
        if not model.as_stored:
            raise BertcliError("A classifier is for a model as its files have it, and this one was changed.")
        return cls(model.name, digest_of(model.network, model.tokenizer))


@dataclass(frozen=True, eq=False)
class Probe(View, WithFigure):
    """The result of `probe`.

    best: the layer with the highest accuracy. chosen: the layer that is saved, and whose confusion the page shows.
    poolings: those that were compared, of which `pooling` is the best. vectors: the states of a layer, pooled
    [item, width]. origin: None if no file was asked for.
    """

    layers: list[LayerFigures]
    labels: list[str]
    best: int
    chosen: int
    unit: str
    pooling: Pooling
    poolings: list[Pooling]
    validation: CrossValidation
    vectors: Callable[[int, Pooling], Array]
    normalize: bool
    task: EncodeTask
    origin: Origin | None

    @property
    def record(self) -> dict[str, Any]:
        return {
            "layers": [layer.record for layer in self.layers],
            "best": self.best,
            "count": self.count,
            "labels": self.labels,
            "pooling": ",".join(self.pooling) or None,
        }

    @property
    def count(self) -> int:
        """The number of texts or words that were predicted."""
        return len(self.validation.true)

    @property
    def multi_label(self) -> bool:
        """True if a text may have several labels."""
        return self.validation.multi_label

    @property
    def compared(self) -> int:
        """The number of layers and poolings among which the saved one was chosen; 1 if --layer named it."""
        layers = len(self.layers) if self.chosen == self.best else 1
        return layers * len(self.poolings)

    def panels(self) -> list[Panel]:
        """Accuracy by layer with its intervals, and the confusion matrix of the chosen layer, if there is one."""
        panels = [curve(self.accuracy_curve)]
        # Where a text may have several labels, there is no matrix of one against another.
        if not self.multi_label:
            name, labels, counts = self.confusion
            panels.append(heat_map(confusion_map(name, labels, counts), f"{name}: true labels down, predicted across"))
        return panels

    @property
    def confusion(self) -> tuple[str, list[str], list[list[int]]]:
        """The name, the labels and the counts of the chosen layer's confusion matrix."""
        layer = self.layers[self.chosen]
        return f"Probe ({state_name(layer.layer)})", self.labels, layer.confusion.astype(int).tolist()

    @property
    def accuracy_curve(self) -> Curve:
        """Accuracy by layer with its intervals; beside it the majority's share, and the control."""
        ranges = []
        for figure in (layer.accuracy for layer in self.layers):
            # A range without a width is not drawn.
            low, high = figure.value, figure.value
            if figure.low is not None and figure.high is not None:
                low, high = figure.low, figure.high
            ranges.append((low, high))
        return by_layer(
            CAPTION,
            "accuracy",
            [layer.accuracy.value for layer in self.layers],
            ranges=ranges,
            beside=[[layer.majority for layer in self.layers], [layer.control for layer in self.layers]],
            line_names=["accuracy", "majority", "control"],
        )

    # -------------------------------------------------------------------------------------------------- a classifier

    def save(self, file: str) -> Classifier:
        """Write the probe of the layer `chosen`, fitted to all texts, as a classifier. Errors: BertcliError."""
        if self.unit == "words":
            raise BertcliError("A saved probe classifies texts, not words.")
        classifier = self._classifier(file)
        metadata = [FileArray.text(name, text) for name, text in classifier.metadata.items()]
        weight, bias = classifier.weight, classifier.bias
        save_stored(
            file,
            *metadata,
            FileArray("weight", "<f4", weight.shape, [weight]),
            FileArray("bias", "<f4", bias.shape, [bias]),
        )
        return classifier

    def _classifier(self, file: str) -> Classifier:
        origin = self.origin or Origin.of(self.task.model, file)
        fit, strength = self.validation.whole(self.vectors(self.chosen, self.pooling))
        figures = self.layers[self.chosen].record
        del figures["layer"]
        figures |= {"folds": self.validation.fold_count, "texts": self.count, "best_of": self.compared}
        return Classifier(
            weight=fit.weights.astype(np.float32),
            bias=fit.biases.astype(np.float32),
            labels=tuple(self.labels),
            multi_label=self.multi_label,
            layer=self.chosen,
            pooling=self.pooling,
            normalize=self.normalize,
            prompt=self.task.prompt,
            prompt_tokens=self.task.left_out,
            max_length=self.task.limit,
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

    # ------------------------------------------------------------------------------------------------------- a table

    def document(self) -> Document:
        """The table that `bertcli probe` prints."""
        columns = [Column(name, number=position > 1) for position, name in enumerate(COLUMNS)]
        rows = [_row(layer) for layer in self.layers]
        lines = [_line(layer) for layer in self.layers]
        below = [self._best_sentence(), *self._reasons(), self._fits_sentence()]
        return Document(columns, rows, below, self.record, lines)

    def _reasons(self) -> list[str]:
        """Why the best layer's figures have no interval."""
        best = self.layers[self.best]
        named = {"accuracy": best.accuracy, "macro F1": best.macro_f1, "selectivity": best.selectivity}
        reasons: dict[str, list[str]] = {}
        for name, figure in named.items():
            if figure.reason:
                reasons.setdefault(figure.reason, []).append(name)
        return [f"No interval of {' and '.join(names)}: {reason}." for reason, names in reasons.items()]

    @property
    def _together(self) -> str:
        validation = self.validation
        return "" if validation.clusters is None else f" of {validation.resampled} as a whole"

    def _best_sentence(self) -> str:
        best = self.layers[self.best]
        accuracy = best.accuracy.record
        value, interval = written(accuracy)
        shown = "(no interval)" if accuracy["low"] is None else interval
        # The best of several, chosen on the folds that also measure it, looks better than it is.
        compared = f"{len(self.layers)} {'layer' if len(self.layers) == 1 else 'layers'}"
        pooling = ""
        if len(self.poolings) > 1:
            names = ", ".join(",".join(modes) for modes in self.poolings)
            compared += f" and {len(self.poolings)} poolings ({names})"
            pooling = f", pooling {','.join(self.pooling)}"
        several = ", of which a text may have several" if self.multi_label else ""
        return (
            f"Best of {compared}, chosen on these folds: {state_name(self.best)}{pooling}, {value} "
            f"{shown}. Majority: {best.majority:.4f} of {self.count:,} {self.unit}, "
            f"{len(self.labels)} labels{several}."
        )

    def _fits_sentence(self) -> str:
        best = self.layers[self.best]
        fits = [fit for layer in self.layers for fit in layer.fits]
        slow = sum(not fit.converged for fit in fits)
        most = max(fit.steps for fit in fits)
        converged = f"{slow} have not converged" if slow else f"all have converged within {most} steps"
        return (
            f"Figures are means over {self.validation.fold_count} folds, with 95 % intervals{self._together}. Control "
            f"is the mean of {DRAWS} draws of random labels; their standard deviation is {best.control_spread:.4f} at "
            f"the best layer. {len(fits)} fits: {converged} of L-BFGS, to a gradient of {TOLERANCE:g} "
            f"(control: {ROUGH:g})."
        )


def _row(layer: LayerFigures) -> list[str]:
    """A layer as a row of the table."""
    accuracy, selectivity = layer.accuracy.record, layer.selectivity
    shown = written(accuracy)
    return [
        state_name(layer.layer),
        f"{shown.value} {_bar(accuracy['value'])}",
        shown.interval,
        written(layer.macro_f1.record).value,
        f"{layer.control:.4f}",
        # Two digits, so that the table fits 80 columns; the record has all.
        f"{selectivity.value:+.2f}{_half_width(selectivity)}",
    ]


def _half_width(figure: Figure) -> str:
    """Half the width of an interval; nothing where there is none."""
    return "" if figure.low is None or figure.high is None else f" ±{(figure.high - figure.low) / 2:.2f}"


def _line(layer: LayerFigures) -> dict[str, Any]:
    """A layer as a line of a .csv file: figures with an interval have a column for each end."""
    line: dict[str, Any] = {}
    for name, figure in layer.record.items():
        if isinstance(figure, dict):
            line |= {f"{name}_{end}": figure[end] for end in ("value", "low", "high")}
        else:
            line[name] = figure
    return line


def _bar(share: float) -> str:
    """A bar of BAR cells for a share from 0 to 1, drawn to an eighth of a cell."""
    whole, rest = divmod(round(8 * BAR * share), 8)
    return "█" * whole + EIGHTHS[rest].strip()
