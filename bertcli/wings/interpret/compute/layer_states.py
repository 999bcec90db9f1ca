"""Every layer's states of labelled texts or words, pooled, as the items that a probe classifies.

The network runs as it does for `encode` (tasks/compute/encode.py); here only its steps are changed, so that all layers
and poolings come out of one pass.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from bertcli.files.texts import Item, Texts
from bertcli.loaded_model import LoadedModel
from bertcli.tasks.compute.encode import EncodeTask, plan_dense
from bertcli.tasks.encode import EncodeOptions
from bertcli.tasks.running.run import results
from bertcli.tokens.word_places import WordPlaces
from bertcli.tracing.dispatch import Array
from bertcli.wings.interpret.specs.probe import ProbeOptions

# Modes whose vectors are concatenated; () for words, whose pieces are averaged.
Pooling = tuple[str, ...]


class LabelledStates(NamedTuple):
    """The items of one text that are classified: the text itself, or its words.

    text: its number. states [item, …]. labels: the names that each item has, one, or in a multi-label task any number.
    types: the string of each item; equal strings get equal labels in the control task.
    """

    text: int
    states: Array
    labels: Sequence[Sequence[str]]
    types: Sequence[str]


def poolings_of(model: LoadedModel, options: ProbeOptions) -> list[Pooling]:
    """The poolings to compare: one, or two if a classifier is saved and neither the options nor the model name one.

    For words it is (), since `_word_means` averages their pieces.
    """
    if options.words:
        return [()]
    if options.pooling not in (None, "auto"):
        return [(str(options.pooling),)]
    trained = model.kind.pooling_of_text
    if trained:
        return [trained]
    is_static = not model.config.contextual
    if options.pooling == "auto" or options.save is None or is_static:
        return [("mean",)]
    # A causal model's first token has seen no other one; its last has seen all.
    is_causal = getattr(model.config, "is_causal", False)
    return [("mean",), ("lasttoken",) if is_causal else ("cls",)]


def modes_of(poolings: Sequence[Pooling]) -> tuple[str, ...]:
    """The distinct modes of several poolings: each is computed once."""
    return tuple(dict.fromkeys(mode for pooling in poolings for mode in pooling))


def states_task(model: LoadedModel, options: ProbeOptions, poolings: Sequence[Pooling]) -> EncodeTask:
    """An encode task that gives the states of all layers as one vector.

    It is [layer · mode · hidden] for a text; for words, each token has [layer · hidden].
    """
    # A folder's Dense layers only fit its own pooling, so `plan_dense` gets that one, though they do not run here.
    of_texts = "auto" if model.kind.pooling_of_text else "mean"
    pooling = "none" if options.words else of_texts
    # A prompt's tokens would belong to no word.
    prompt = "" if options.words else None
    encode_options: Any = {"pooling": pooling, "prompt": prompt, **vars(options.read_options)}
    task = plan_dense(model, EncodeOptions(**encode_options))
    modes = modes_of(poolings)
    layers = tuple(range(model.config.num_hidden_layers + 1))
    all_layers = replace(
        task.steps,
        pooling=modes,
        layers=layers,
        width=len(layers) * model.config.hidden_size * max(1, len(modes)),
        dense=(),
        normalize=False,
        last_layer_only=False,
        role=None,
    )
    return replace(task, steps=all_layers)


def labelled_states(
    task: EncodeTask, texts: Texts, labels: Sequence[Any], words: Sequence[Any]
) -> Iterator[LabelledStates]:
    """Yield the states and labels of each text, or of its words; texts with errors and cut words are left out.

    words [text, word] is empty where texts are classified.
    """
    for block in results(task, texts):
        for item, states in zip(block.items, block.vectors, strict=True):
            number = item.index
            if not words:
                # The control task gives equal texts, with equal second texts, one label.
                whole = f"{item.text.text}\n{item.text.pair or ''}"
                yield LabelledStates(number, states[None], [names_in(labels[number])], [whole])
                continue
            means = _word_means(item, words[number], states)
            if means:
                tags = [names_in(labels[number][word]) for word in means]
                types = [words[number][word] for word in means]
                yield LabelledStates(number, np.array([*means.values()]), tags, types)


def names_in(label: Any) -> tuple[str, ...]:
    """The names of a label, each once: a list has any number, everything else is one name."""
    if not isinstance(label, list):
        return (str(label),)
    return tuple(dict.fromkeys(map(str, label)))


def _word_means(item: Item, words: Sequence[str], states: Array) -> dict[int, Array]:
    """The mean of each word's pieces, by the word's number; words that were cut off have none."""
    places = WordPlaces(words)
    pieces: dict[int, list[Array]] = {}
    tokens = item.tokens
    for side, (start, end), state in zip(tokens.sides, tokens.offsets, states, strict=True):
        is_special = side is None
        if not is_special:
            pieces.setdefault(places.number(start, end), []).append(state)
    return {number: np.mean(of_word, axis=0) for number, of_word in pieces.items()}
