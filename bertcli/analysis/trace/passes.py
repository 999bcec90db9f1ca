"""A traced pass of one sentence, and what is read beside it: each token's state on its way, and what the heads say."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from bertcli.analysis.trace.recorder import trace
from bertcli.analysis.trace.selection import BEST, stops_of
from bertcli.engine.packing import Packed
from bertcli.network.heads import Outputs
from bertcli.report.terminal import visible
from bertcli.tracing.dispatch import Array

if TYPE_CHECKING:
    from bertcli.analysis.trace.recorder import Inputs, Trace
    from bertcli.loaded_model import LoadedModel

NEXT = ("is next", "not next")


class Stop(NamedTuple):
    """One stop of the pass: what has happened to each token's vector by then."""

    norms: list[float]  # the length of each token's vector
    cosines: list[float]  # with the vector at the stop before; 1 at the first
    readings: list[tuple[str, float]]  # what the masked-language-model head would predict there, if there is one


@dataclass(frozen=True)
class Pass:
    """A traced pass of one sentence, and what was read beside it: nothing without weights."""

    model: "LoadedModel"
    trace: "Trace"
    inputs: "Inputs"
    outputs: Outputs | None = None
    states: Sequence[Stop] = ()  # after the embeddings and after each layer

    @cached_property
    def ids(self) -> list[int]:
        """The ids of the sentence's tokens."""
        return [int(id) for id in self.inputs.ids[0]]

    @property
    def layers(self) -> int:
        """How many encoder layers there are."""
        return self.model.config.num_hidden_layers

    @cached_property
    def stops(self) -> list[int]:
        """The stop of each step: 0 for the embeddings, 1 … L for the layers, L + 1 for the heads."""
        return stops_of(self.trace.steps, self.layers)


def run_pass(model: "LoadedModel", inputs: "Inputs") -> Pass:
    """A pass of every head with all its results, as the page shows it."""
    with trace(model, time=True, stats=True, keep=lambda path: True) as traced:
        outputs = model.outputs(inputs.ids, inputs.segments)
    return Pass(model, traced, inputs, outputs, _states(model, inputs))


def _states(model: "LoadedModel", inputs: "Inputs") -> list[Stop]:
    """The state of every token after the embeddings and after each layer; not part of the trace."""
    batch, stops = model.padded(inputs.ids, inputs.segments, None).batch, list[Stop]()
    before: Array | None = None
    for state in model.network.states(batch):
        if not np.isfinite(state).all():  # shown where they are; there is nothing to follow
            return []
        norms = np.linalg.norm(state, axis=1)
        cosines = [1.0] * len(state)
        if before is not None:
            products = (state * before).sum(axis=1)
            cosines = (products / np.maximum(norms * np.linalg.norm(before, axis=1), 1e-12)).tolist()
        last = len(stops) == model.config.num_hidden_layers
        readings = _readings(model, state if last else model.network.final_norm(state), batch, inputs)
        stops.append(Stop(norms.tolist(), cosines, readings))
        before = state.copy()
    return stops


def _readings(model: "LoadedModel", state: Array, batch: Packed, inputs: "Inputs") -> list[tuple[str, float]]:
    if "mlm" not in model.heads:
        return []
    logits = model.network.predict("mlm", state, batch).astype(np.float64)
    best = logits.argmax(axis=1)
    scores = np.exp(logits.max(axis=1) - np.logaddexp.reduce(logits, axis=1))
    return [(inputs.spell(int(id)), float(score)) for id, score in zip(best, scores, strict=True)]


# --------------------------------------------------------------------------------------------------------- the result


def results(run: Pass) -> Iterator[tuple[str, list[tuple[str, float]]]]:
    """What the heads say: a title and its best entries, with their probabilities."""
    model, inputs, out = run.model, run.inputs, run.outputs
    if out is None:
        return
    if out.mlm is not None:
        logits = out.mlm.reshape(len(run.ids), -1)
        for i in (i for i, id in enumerate(run.ids) if id == inputs.mask):
            yield f"{inputs.pieces[i]} at position {i}", _best(logits[i], inputs.spell)
    if out.classifier is not None:
        yield "Label", _best(out.classifier.reshape(-1), lambda i: model.config.labels[i])
    if out.nsp is not None and inputs.paired:
        yield "Second text", _best(out.nsp.reshape(-1), lambda i: NEXT[i])


def _best(logits: Array, name: Callable[[int], str]) -> list[tuple[str, float]]:
    """The most probable entries; damaged weights have none."""
    numbers = logits.astype(np.float64)
    if not np.isfinite(numbers).all():
        return []
    chances = np.exp(numbers - np.logaddexp.reduce(numbers))
    return [(name(int(i)), float(chances[i])) for i in np.argsort(-chances, kind="stable")[:BEST]]


def results_in_words(run: Pass) -> list[str]:
    """`[MASK] at position 8: tea 0.1982, water 0.1629`, a line for each head that has something to say."""
    return [
        f"{title}: {', '.join(f'{visible(name)} {value:.4f}' for name, value in entries)}"
        for title, entries in results(run)
    ]
