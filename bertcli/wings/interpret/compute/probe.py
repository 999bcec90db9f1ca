"""Linear probes: predict your labels from each layer's states (Alain and Bengio 2016, arXiv 1610.01644).

A logistic regression reads each layer's states, pooled as `encode` pools them (of a word: the mean of its pieces).
Texts are in folds; each fold is predicted by a probe of the other folds, whose C the next fold has chosen. Figures are
means over the folds, with the 95 % intervals of `evaluate`.

    majority      the share of the most frequent label
    control       the accuracy of the same probe where every distinct text, or word, has a label drawn at random: the
                  mean of ten draws, with their standard deviation
    selectivity   accuracy - control        Hewitt and Liang 2019, arXiv 1909.03368

The best of several layers, chosen on the folds that also measure it, looks better than it is, so the table says of how
many it is the best. This file puts the steps together: states (layer_states.py), labels (probe_labels.py), folds and
fits (probe_folds.py), figures (probe_figures.py), result and classifier's file (probe_result.py), page (probe_page.py).
"""

import logging
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from bertcli.files.texts import Texts, from_values
from bertcli.kinds.vectors import unit
from bertcli.loaded_model import LoadedModel, expect_model
from bertcli.tasks.compute.encode import layer_numbers
from bertcli.tasks.options import takes
from bertcli.tracing.dispatch import Array
from bertcli.wings.interpret.compute.layer_states import Pooling, labelled_states, modes_of, poolings_of, states_task
from bertcli.wings.interpret.compute.probe_folds import CrossValidation
from bertcli.wings.interpret.compute.probe_labels import check_labels
from bertcli.wings.interpret.compute.probe_page import FEW_TEXTS, draw
from bertcli.wings.interpret.compute.probe_result import Origin, Probe
from bertcli.wings.interpret.specs.probe import ProbeOptions

__all__ = ["draw", "measure", "probe"]
logger = logging.getLogger("bertcli")
# Wraps a loop to show progress; it gets the items and their unit.
Counting = Callable[[Sequence[Any], str], Iterable[Any]]


@takes(ProbeOptions)
def probe(model: LoadedModel, texts: Any, options: ProbeOptions) -> Probe:
    """Linear probes of every layer, trained on these labels: `.layers`, `.best`, `.record`, `.save(file)`.

    clusters: what each text belongs to, such as its author: whole clusters are in one fold, and resampled together.
    labels: one for each text; lists of names where a text may have several (multi-label). words: texts are lists of
    words, and labels lists with one for each. save: a .safetensors file for a classifier, the probe of the best layer
    or of `layer`, which `bertcli.load("MODEL+FILE")` takes.
    Errors: BertcliError for labels that do not fit, one label only, fewer texts of one than folds, and as in `encode`.
    """
    found = measure(model, texts, options)
    if options.save is not None:
        found.save(options.save)
    return found


def measure(
    model: LoadedModel, texts: Any, options: ProbeOptions, counting: Counting = lambda items, unit: items
) -> Probe:
    """Probe a model as `probe` does, but write nothing."""
    expect_model(model)
    words = [list(of_text) for of_text in texts] if options.words else []
    rows = list(from_values(map(" ".join, words) if words else texts, options.pairs))
    labels = list(options.labels)
    check_labels(rows, labels, words, options)
    last = model.config.num_hidden_layers
    layer = None if options.layer is None else layer_numbers(options.layer, last)[0]
    # A file that cannot be written is refused before the states are computed, which may take long.
    origin = None if options.save is None else Origin.of(model, options.save)
    poolings = poolings_of(model, options)
    task = states_task(model, options, poolings)
    if len(rows) < FEW_TEXTS:
        logger.info("%d texts are few: differences between layers are mostly chance below %d.", len(rows), FEW_TEXTS)
    way_on = texts.way_on if isinstance(texts, Texts) else ""
    counted = Texts(counting(rows, "texts"), at_hand=True, way_on=way_on)
    found = list(labelled_states(task, counted, labels, words))
    validation = CrossValidation.of(found, options)
    modes = modes_of(poolings)
    states = np.concatenate([of_text.states for of_text in found])
    # [item, layer, mode, hidden]; words have one mean of their pieces, which is no mode
    states = states.reshape(len(states), last + 1, max(1, len(modes)), -1)

    def vectors(number: int, pooling: Pooling) -> Array:
        """The states of a layer, pooled [item, width]."""
        of_layer = states[:, number]
        if pooling:
            of_layer = of_layer[:, [modes.index(mode) for mode in pooling]]
        flat = of_layer.reshape(len(of_layer), -1)
        return unit(flat) if options.normalize else flat

    numbers = range(last + 1)
    settings = [(pooling, number) for pooling in poolings for number in numbers]
    measured = {
        (pooling, number): validation.measure(vectors(number, pooling))
        for pooling, number in counting(settings, "layers")
    }
    considered = [(pooling, number) for pooling, number in settings if layer is None or number == layer]
    best_pooling, _ = max(considered, key=lambda setting: measured[setting].accuracy)
    layers = [
        validation.layer(number, vectors(number, best_pooling), measured[best_pooling, number])
        for number in counting(numbers, "controls")
    ]
    best = max(layers, key=lambda figures: figures.accuracy.value).layer
    return Probe(
        layers=layers,
        labels=validation.names,
        best=best,
        chosen=best if layer is None else layer,
        unit="words" if words else "texts",
        pooling=best_pooling,
        poolings=poolings,
        validation=validation,
        vectors=vectors,
        normalize=options.normalize,
        task=task,
        origin=origin,
    )
