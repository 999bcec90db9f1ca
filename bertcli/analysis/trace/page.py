"""The pass as a page: one text goes through the network, step by step, and every number can be looked at.

The page is one file without a network. It holds the steps of the trace, and of their results as many numbers as fit
into a bound (selection.py). Its script (pass.js) draws the numbers and works out how a chosen one came about, from
numbers that are on the page.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from bertcli.analysis.trace.formulas import formula, latex, mathml
from bertcli.analysis.trace.selection import BEST, Selection, choose, stop_of
from bertcli.analysis.trace.steps import Step
from bertcli.engine.packing import Packed
from bertcli.engine.seam import Array
from bertcli.errors import BertcliError
from bertcli.network.heads import Outputs
from bertcli.report.page import Markup, element, page
from bertcli.report.terminal import visible

if TYPE_CHECKING:
    from bertcli.analysis.trace.recorder import Inputs, Trace
    from bertcli.model import Model

BOUND, FULL_BOUND = 4_000_000, 64_000_000  # bytes of a page, by default and with every number
NOTE = 500  # of them for the note that says which numbers they are
MANY = 24  # tokens from which they stand in one line that scrolls
LEAD = (
    "One text on its way through the network. Choose a token, a layer, a head; choose a cell of a picture to see how "
    "its number came about. Blue is below zero, red above; attention weights are darker the larger they are."
)


class Stop(NamedTuple):
    """One stop of the pass: what has happened to each token's vector by then."""

    norms: list[float]  # the length of each token's vector
    cosines: list[float]  # with the vector at the stop before; 1 at the first
    readings: list[tuple[str, float]]  # what the masked-language-model head would predict there, if there is one


@dataclass(frozen=True)
class Pass:
    """A traced pass of one sentence, and what was read beside it: nothing without weights."""

    model: "Model"
    trace: "Trace"
    inputs: "Inputs"
    outputs: Outputs | None = None
    stops: Sequence[Stop] = ()

    @property
    def ids(self) -> list[int]:
        """The ids of the sentence's tokens."""
        return [int(id) for id in self.inputs.ids[0]]

    @property
    def layers(self) -> int:
        """How many encoder layers there are."""
        return self.model.config.num_hidden_layers


def read_stops(model: "Model", inputs: "Inputs") -> list[Stop]:
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


def _readings(model: "Model", state: Array, batch: Packed, inputs: "Inputs") -> list[tuple[str, float]]:
    if "mlm" not in model.heads:
        return []
    logits = model.network.predict("mlm", state, batch).astype(np.float64)
    best = logits.argmax(axis=1)
    scores = np.exp(logits.max(axis=1) - np.logaddexp.reduce(logits, axis=1))
    return [(inputs.spell(int(id)), float(score)) for id, score in zip(best, scores, strict=True)]


# ---------------------------------------------------------------------------------------------------------- the page


def pass_page(run: Pass, layer: int | None = None, full: bool = False) -> str:
    """The page; `layer` (default: the last) is open at first, and the one of which most numbers are there.

    Errors: BertcliError for a layer that is not there, and for more numbers than a page may hold.
    """
    layer = -1 if layer is None else layer
    layer = layer + run.layers if layer < 0 else layer
    if not 0 <= layer < run.layers:
        raise BertcliError(f"There is no such layer: this model has layers 0 to {run.layers - 1}.")
    without = _page(run, layer, Selection({}, {}, 0))
    room = (FULL_BOUND if full else BOUND) - len(without.encode()) - NOTE
    return _page(run, layer, choose(run.trace, run.model, layer, room, full))


def _page(run: Pass, layer: int, kept: Selection) -> str:
    """The page with these numbers."""
    steps = run.trace.steps
    data = {
        "model": visible(run.model.name),
        "tokens": [visible(piece) for piece in run.inputs.pieces],
        "ids": run.ids,
        "layer": layer,
        "token": next((i for i, id in enumerate(run.ids) if id == run.inputs.mask), 0),
        "layers": run.layers,
        "heads": run.model.config.num_attention_heads,
        "steps": [{**step.record(), **_beside(step, run.layers)} for step in steps],
        "lines": [stop._asdict() for stop in run.stops],
        "arrays": {path: numbers.record() for path, numbers in kept.arrays.items()},
        "parameters": {path: numbers.record() for path, numbers in kept.parameters.items()},
    }
    title = f"{run.model.name} reads a text" if run.inputs.pieces else f"A pass through {run.model.name}"
    sections = [
        _section(stop, [step for step in steps if stop_of(step, run.layers) == stop], run)
        for stop in range(run.layers + 2)
    ]
    here = files(__package__)
    style, script = (here.joinpath(f"pass.{kind}").read_text(encoding="utf-8") for kind in ("css", "js"))
    note = element("p", _note(run, kept, layer), class_="note")
    top = element("div", _chips(run), element("section", *_result(run), id="result"), id="top")
    body = element(
        "div",
        element("nav", id="line", aria_label="The pass"),
        element("div", *sections, id="cards"),
        element(
            "aside",
            element("h2", "One number"),
            element("div", "Choose a cell.", id="worked", aria_live="polite"),
            id="side",
        ),
        id="pass",
    )
    return page(title, top, _totals(run), note, body, lead=LEAD, style=style, script=script, data=data)


def _beside(step: Step, layers: int) -> dict[str, Any]:
    """What the script needs of a step beside its record."""
    return {
        "op": step.op, "stop": stop_of(step, layers), "sources": step.sources, "parameters": step.parameters,
        "settings": step.settings,
    }  # fmt: skip


def stop_name(stop: int, layers: int) -> str:
    """`Embeddings`, `Layer 0`, …, `Head`."""
    return "Embeddings" if stop == 0 else "Head" if stop > layers else f"Layer {stop - 1}"


def _chips(run: Pass) -> Markup:
    chips = [
        element("button", piece, element("small", str(id)), type="button", class_="chip", data_token=str(i))
        for i, (piece, id) in enumerate(zip(run.inputs.pieces, run.ids, strict=True))
    ]
    many = "many" if len(chips) > MANY else None
    return element("div", *chips, id="tokens", class_=many, role="group", aria_label="Tokens and their ids")


def _totals(run: Pass) -> Markup:
    totals = run.trace.totals
    parts = [f"{totals.params:,} parameters", f"{totals.macs:,} MACs", f"{totals.activation_bytes:,} bytes of results"]
    if totals.seconds:
        parts.append(f"{1000 * totals.seconds:,.1f} ms")
    return element("p", " · ".join(parts), class_="totals")


def _note(run: Pass, kept: Selection, layer: int) -> str:
    """What of the pass is on the page, and how to have more."""
    results, arrays = run.trace.arrays, kept.arrays
    if not results:
        return "This model has no weights: the page shows shapes and formulas, and no numbers."
    whole = {path for path, numbers in arrays.items() if numbers.features is None}
    text = f"On this page are {kept.size / 1e6:.2f} MB of numbers. Results: {len(whole)} of {len(results)} whole"
    features = [numbers.features for numbers in arrays.values() if numbers.features is not None]
    first = [len(places) for places in features if places[-1] == len(places) - 1]
    text += f", of others the first {max(first)} features at most" if first else ""
    text += ", of the vocabulary's logits those of the best tokens" if len(first) < len(features) else ""
    missing = len(results) - len(arrays)
    text += f", {missing} only as statistics" if missing else ""
    weights = {path for step in run.trace.steps for path in step.parameters}
    text += f". Weights: at least some rows of {len(kept.parameters)} of {len(weights)} arrays."
    if len(whole) == len(results):
        return text
    of_layer = {
        step.path for step in run.trace.steps if stop_of(step, run.layers) == layer + 1 and step.path in results
    }
    text += f" Layer {layer} is whole" if of_layer <= whole else f" Layer {layer} has most of it"
    return text + " (--layer chooses another); --full has all results."


def _section(stop: int, steps: Sequence[Step], run: Pass) -> Markup:
    cards = list(_cards(steps))
    name = stop_name(stop, run.layers)
    return element("section", element("h2", name), *cards, class_="stop", data_stop=str(stop), id=f"stop-{stop}")


def _cards(steps: Sequence[Step]) -> Iterator[Markup]:
    group = ""
    for i, step in enumerate(steps):
        if step.group != group and step.group:
            group = step.group
            yield element("h3", group)
        yield _card(step, "third" if any(_alike(steps[j : j + 3]) for j in range(max(0, i - 2), i + 1)) else "half")


def _alike(steps: Sequence[Step]) -> bool:
    """Whether these are three products of one shape, such as query, key and value."""
    return (
        len(steps) == 3 and steps[0].macs > 0 and len({(step.op, step.group, step.output.shape) for step in steps}) == 1
    )


def _card(step: Step, width: str) -> Markup:
    inputs = [operand.name for operand in step.inputs]
    shapes = [f"{operand.name} {operand.size}" for operand in step.inputs]
    facts = [("Parameters", f"{step.params:,}"), ("MACs", f"{step.macs:,}"), ("Bytes", f"{step.bytes:,}")]
    if step.seconds is not None:
        facts.append(("Milliseconds", f"{1000 * step.seconds:.3f}"))
    if step.stats is not None:
        names = {"min": "Minimum", "mean": "Mean", "max": "Maximum", "std": "Standard deviation"}
        facts += [(title, _short(step.stats[name])) for name, title in names.items()]
    listed = [part for name, value in facts for part in (element("dt", name), element("dd", value))]
    damaged = step.stats is not None and not step.stats.finite
    return element(
        "article",
        element("h4", element("a", step.operation, href=f"#{step.path}")),
        element("p", "NaN or infinite values", class_="damaged") if damaged else Markup(""),
        mathml(formula(step.op, inputs, step.output.name, step.settings)),
        element("div", class_="picture", data_step=str(step.index)),
        element("p", " · ".join(shapes), f" → {step.output.name} {step.output.size}", class_="shapes"),
        element("details", element("summary", "Statistics and costs"), element("dl", *listed)),
        class_=f"card {width}",
        id=step.path,
    )  # fmt: skip


def _short(value: float | None) -> str:
    return "not finite" if value is None else f"{value:.4g}"


# --------------------------------------------------------------------------------------------------------- the result


def results(run: Pass) -> list[tuple[str, list[tuple[str, float]]]]:
    """What the heads say: a title and its best entries, with probabilities (or logits where there are none)."""
    model, inputs, out = run.model, run.inputs, run.outputs
    titles: list[tuple[str, list[tuple[str, float]]]] = []
    if out is None:
        return titles
    if out.mlm is not None:
        masks = [i for i, id in enumerate(run.ids) if id == inputs.mask]
        logits = out.mlm.reshape(len(run.ids), -1)
        titles += [(f"{run.inputs.pieces[i]} at position {i}", _best(logits[i], inputs.spell)) for i in masks]
    if out.classifier is not None:
        titles.append(("Label", _best(out.classifier.reshape(-1), lambda i: model.config.labels[i])))
    if out.nsp is not None and inputs.paired:
        titles.append(("Second text", _best(out.nsp.reshape(-1), lambda i: ("is next", "not next")[i])))
    return titles


def _best(logits: Array, name: Any) -> list[tuple[str, float]]:
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


def _result(run: Pass) -> Iterator[Markup]:
    for title, entries in results(run):
        items = [
            element("li", element("span", name), " ", element("b", f"{value:.4f}"), style=f"--share: {abs(value):.3f}")
            for name, value in entries
        ]
        yield element("div", element("h2", title), element("ol", *items))


# ---------------------------------------------------------------------------------------------------------- the notes


def pass_notes(run: Pass) -> str:
    """The pass as Markdown, without pictures: formulas, shapes, statistics."""
    parts = [f"# {visible(run.model.name)}", " ".join(f"`{visible(piece)}`" for piece in run.inputs.pieces), ""]
    parts += [line for result in results_in_words(run) for line in (result, "")]
    last, group = -1, ""
    for step in run.trace.steps:
        stop = stop_of(step, run.layers)
        if stop != last:
            parts += [f"## {stop_name(stop, run.layers)}", ""]
            last, group = stop, ""
        if step.group != group:
            parts += [f"### {step.group}", ""]
            group = step.group
        shapes = [value.size for value in (*step.inputs, step.output)]
        tree = formula(step.op, [operand.name for operand in step.inputs], step.output.name, step.settings)
        parts += [f"**{step.operation}** {', '.join(shapes[:-1])} → {shapes[-1]}", "", f"$${latex(tree)}$$", ""]
        if step.stats is not None:
            low, mean, high = map(_short, (step.stats.min, step.stats.mean, step.stats.max))
            parts += [f"{step.params:,} parameters, {step.macs:,} MACs; minimum {low}, mean {mean}, maximum {high}", ""]
    return "\n".join(parts)
