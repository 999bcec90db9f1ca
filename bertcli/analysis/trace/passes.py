"""Run traced passes: `bertcli.trace`, and the pass of one sentence that the page draws, with states and predictions."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import cached_property
from time import perf_counter
from typing import TYPE_CHECKING, NamedTuple, overload

import numpy as np

from bertcli.analysis.trace.recorder import Keep, Trace, inputs_of_text, recording
from bertcli.analysis.trace.selection import BEST, sections_of
from bertcli.engine.packing import Packed
from bertcli.engine.pauses import check_wanted
from bertcli.errors import names_checked
from bertcli.files.texts import Pairs, from_values, is_one
from bertcli.loaded_model import expect_model
from bertcli.report.terminal import visible
from bertcli.tracing.dispatch import Array

if TYPE_CHECKING:
    from bertcli.analysis.trace.recorder import Inputs
    from bertcli.loaded_model import LoadedModel

NEXT = ("is next", "not next")
# Passes that are timed, unless they have taken so many seconds before: the fastest counts.
MOST_PASSES, ENOUGH = 10, 1.0


@overload
def trace(
    model: "LoadedModel", texts: None = None, *, time: bool = False, stats: bool = False, keep: Keep | None = None
) -> "AbstractContextManager[Trace]": ...
@overload
def trace(  # type: ignore[overload-overlap]
    model: "LoadedModel",
    texts: str,
    pairs: str | None = None,
    *,
    time: bool = False,
    stats: bool = False,
    keep: Keep | None = None,
) -> Trace: ...
@overload
def trace(
    model: "LoadedModel",
    texts: Iterable[str],
    pairs: Pairs = None,
    *,
    time: bool = False,
    stats: bool = False,
    keep: Keep | None = None,
) -> list[Trace]: ...
@names_checked
def trace(
    model: "LoadedModel",
    texts: str | Iterable[str] | None = None,
    pairs: Pairs = None,
    *,
    time: bool = False,
    stats: bool = False,
    keep: Keep | None = None,
) -> "AbstractContextManager[Trace] | Trace | list[Trace]":
    """`trace(model, "text")`, or `with bertcli.trace(model) as trace: model.forward(ids)`; then `trace.steps`.

    With a text it is the trace of one pass through every head, as `bertcli trace TEXT` prints it; of a list of texts a
    list. Without one it records what runs inside the `with`: `model.forward` runs the encoder, `model.outputs` also
    every head. Watches only this thread. Results are bit-identical to those without a trace; only a `forward` of so
    many tokens that it is otherwise computed in micro-batches differs, by at most 1e-6 of a vector's largest number. A
    model without weights is traced by its shapes: nothing is multiplied, and the result holds no numbers. `time`
    measures each op in seconds, `stats` describes each result, `keep(path)` says for which steps a copy of the result
    is kept in `trace.arrays`. Errors: BertcliError inside another trace.
    """
    if texts is None:
        return recording(model, time=time, stats=stats, keep=keep)
    expect_model(model)
    traces = []
    for text, pair, *_ in from_values(texts, pairs):
        inputs = inputs_of_text(model, text, pair)
        with recording(model, time=time, stats=stats, keep=keep) as traced:
            model.outputs(inputs.ids, inputs.segments)
        if time:
            time_again(model, inputs, traced)
        traces.append(traced)
    return traces[0] if is_one(texts) else traces


class State(NamedTuple):
    """The tokens' hidden states after the embeddings or after a layer; a number or a prediction for each token.

    norms: length of the vector. cosines: with the state before; 1 for the first. readings: the logit lens, that is the
    best token and its probability from the masked-language-model head; empty without that head.
    """

    norms: list[float]
    cosines: list[float]
    readings: list[tuple[str, float]]


@dataclass(frozen=True)
class Pass:
    """A traced pass of one sentence. Without weights it has no outputs and no states."""

    model: "LoadedModel"
    trace: "Trace"
    inputs: "Inputs"
    outputs: Mapping[str, Array] | None = None
    states: Sequence[State] = ()  # after the embeddings and after each layer

    @cached_property
    def ids(self) -> list[int]:
        """The ids of the sentence's tokens."""
        return [int(id) for id in self.inputs.ids[0]]

    @property
    def layers(self) -> int:
        """Number of encoder layers, L."""
        return self.model.config.num_hidden_layers

    @cached_property
    def sections(self) -> list[int]:
        """The section of each step: 0 for the embeddings, 1 … L for the layers, L + 1 for the heads."""
        return sections_of(self.trace.steps, self.layers)


def run_pass(model: "LoadedModel", inputs: "Inputs") -> Pass:
    """Trace a pass through every prediction head, with time, statistics and a copy of every result."""
    with recording(model, time=True, stats=True, keep=lambda path: True) as traced:
        outputs = model.outputs(inputs.ids, inputs.segments)
    time_again(model, inputs, traced)
    return Pass(model, traced, inputs, outputs, _states(model, inputs))


def time_again(model: "LoadedModel", inputs: "Inputs", first: "Trace") -> None:
    """Repeat a timed pass, and give its steps the seconds of the fastest one, in place.

    The first pass of a process waits for memory and for threads to start, and takes up to twice as long.
    """
    begun, passes = perf_counter(), 1
    while passes < MOST_PASSES and perf_counter() - begun < ENOUGH:
        with recording(model, time=True) as again:
            model.outputs(inputs.ids, inputs.segments)
        passes += 1
        if (again.totals.seconds or 0.0) < (first.totals.seconds or 0.0):
            timed = zip(first.steps, again.steps, strict=True)
            first.steps[:] = [replace(step, seconds=other.seconds) for step, other in timed]


def _states(model: "LoadedModel", inputs: "Inputs") -> list[State]:
    """The states after the embeddings and after each layer, from a second pass that is not traced.

    Empty if one has a number that is not finite: the page then shows where, and lengths and cosines mean nothing.
    """
    batch, states = model.padded(inputs.ids, inputs.segments, None).batch, list[State]()
    before: Array | None = None
    for state in model.network.states(batch):
        check_wanted()
        if not np.isfinite(state).all():
            return []
        norms = np.linalg.norm(state, axis=1)
        cosines = [1.0] * len(state)
        if before is not None:
            products = (state * before).sum(axis=1)
            lengths = norms * np.linalg.norm(before, axis=1)
            cosines = (products / np.maximum(lengths, 1e-12)).tolist()
        # The last state has been through the final norm; the head expects the same of the others.
        is_last = len(states) == model.config.num_hidden_layers
        normed = state if is_last else model.network.final_norm(state)
        readings = _readings(model, normed, batch, inputs)
        states.append(State(norms.tolist(), cosines, readings))
        # A copy, since the next layer may write over the array.
        before = state.copy()
    return states


def _readings(model: "LoadedModel", state: Array, batch: Packed, inputs: "Inputs") -> list[tuple[str, float]]:
    if "mlm" not in model.heads:
        return []
    logits = model.network.predict("mlm", state, batch).astype(np.float64)
    best = logits.argmax(axis=1)
    scores = np.exp(logits.max(axis=1) - np.logaddexp.reduce(logits, axis=1))
    return [(inputs.spell(int(id)), float(score)) for id, score in zip(best, scores, strict=True)]


# --------------------------------------------------------------------------------------------------------- the result


def results(run: Pass) -> Iterator[tuple[str, list[tuple[str, float]]]]:
    """The predictions of a pass: for each mask or head a title, and its best entries with their probabilities."""
    model, inputs, out = run.model, run.inputs, run.outputs
    if out is None:
        return
    if "mlm" in out:
        logits = out["mlm"].reshape(len(run.ids), -1)
        for position, id in enumerate(run.ids):
            if id == inputs.mask:
                yield f"{inputs.pieces[position]} at position {position}", _best(logits[position], inputs.spell)
    if "classifier" in out:
        yield "Label", _best(out["classifier"].reshape(-1), lambda i: model.config.labels[i])
    if "nsp" in out and inputs.paired:
        yield "Second text", _best(out["nsp"].reshape(-1), lambda i: NEXT[i])


def _best(logits: Array, name: Callable[[int], str]) -> list[tuple[str, float]]:
    """The BEST most probable entries; none if a logit is not finite, as from damaged weights."""
    numbers = logits.astype(np.float64)
    if not np.isfinite(numbers).all():
        return []
    probabilities = np.exp(numbers - np.logaddexp.reduce(numbers))
    order = np.argsort(-probabilities, kind="stable")
    return [(name(int(number)), float(probabilities[number])) for number in order[:BEST]]


def results_in_words(run: Pass) -> list[str]:
    """The predictions as lines below the table: `[MASK] at position 8: tea 0.1982, water 0.1629`."""
    lines = []
    for title, entries in results(run):
        predictions = [f"{visible(name)} {value:.4f}" for name, value in entries]
        lines.append(f"{title}: {', '.join(predictions)}")
    return lines
