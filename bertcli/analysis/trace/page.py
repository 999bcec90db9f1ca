"""The pass as a page: one text goes through the network, step by step, and every number can be looked at.

The page is one file without a network. It holds the steps of the trace, and of their results as many numbers as fit
into a bound: the result and the attention weights first, then one layer whole, then the first features of the rest. Its
script (pass.js) draws the numbers and works out how a chosen one came about, from numbers that are on the page.
"""

import re
from base64 import b64encode
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from bertcli.analysis.trace.formulas import formula, latex, mathml
from bertcli.analysis.trace.steps import Step
from bertcli.engine.packing import Packed
from bertcli.engine.seam import Array
from bertcli.errors import BertcliError
from bertcli.network import parameters
from bertcli.network.heads import Outputs
from bertcli.report import visible
from bertcli.report.page import Markup, element, page

if TYPE_CHECKING:
    from bertcli.analysis.trace.recorder import Inputs, Trace
    from bertcli.model import Model

BOUND, FULL_BOUND = 4_000_000, 64_000_000  # bytes of the numbers in a page, as base64
FEWEST, MOST_ROWS = 8, 64  # features of a result that is not whole; rows of a weight matrix
MANY = 24  # tokens from which they stand in one line that scrolls
BEST = 5  # entries of the vocabulary shown of a prediction
LEAD = (
    "One text on its way through the network. Choose a token, a layer, a head; choose a cell of a picture to see how "
    "its number came about. Blue is below zero, red above; attention weights are darker the larger they are."
)
STOP = re.compile(r"\blayers\.(\d+)\b")


class Line(NamedTuple):
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
    lines: Sequence[Line] = ()

    @property
    def ids(self) -> list[int]:
        """The ids of the sentence's tokens."""
        return [int(id) for id in self.inputs.ids[0]]

    @property
    def layers(self) -> int:
        """How many encoder layers there are."""
        return self.model.config.num_hidden_layers


def stop_of(step: Step, layers: int) -> int:
    """0 for the embeddings and what is before the layers, 1 … L for a layer, L + 1 for the heads."""
    found = STOP.search(step.path)
    if found:
        return int(found[1]) + 1
    before = step.path.startswith("embeddings") or (step.path.startswith("encoder") and step.index < layers)
    return 0 if before else layers + 1


def read_lines(model: "Model", inputs: "Inputs") -> list[Line]:
    """The state of every token after the embeddings and after each layer; not part of the trace."""
    batch, found = model.padded(inputs.ids, inputs.segments, None).batch, list[Line]()
    before: Array | None = None
    for state in model.network.states(batch):
        if not np.isfinite(state).all():  # shown where they are; there is nothing to follow
            return []
        norms = np.linalg.norm(state, axis=1)
        cosines = [1.0] * len(state)
        if before is not None:
            products = (state * before).sum(axis=1)
            cosines = (products / np.maximum(norms * np.linalg.norm(before, axis=1), 1e-12)).tolist()
        last = len(found) == model.config.num_hidden_layers
        readings = _readings(model, state if last else model.network.final_norm(state), batch, inputs)
        found.append(Line(norms.tolist(), cosines, readings))
        before = state.copy()
    return found


def _readings(model: "Model", state: Array, batch: Packed, inputs: "Inputs") -> list[tuple[str, float]]:
    if "mlm" not in model.heads:
        return []
    logits = model.network.predict("mlm", state, batch).astype(np.float64)
    best = logits.argmax(axis=1)
    scores = np.exp(logits.max(axis=1) - np.logaddexp.reduce(logits, axis=1))
    return [(inputs.spell(int(id)), float(score)) for id, score in zip(best, scores, strict=True)]


# ---------------------------------------------------------------------------------------------- which numbers are kept


class Numbers(NamedTuple):
    """An array of the page; `features` are those kept of its last axis, None for all."""

    array: Array
    features: list[int] | None = None

    def record(self) -> dict[str, Any]:
        """{shape, base64, features?}: float32, little-endian, in C order."""
        data = np.ascontiguousarray(self.array, dtype="<f4")
        found: dict[str, Any] = {"shape": list(data.shape), "base64": b64encode(data.tobytes()).decode("ascii")}
        return found if self.features is None else found | {"features": self.features}


def encoded_size(shape: Iterable[int]) -> int:
    """Bytes of base64 for so many float32."""
    return 4 * ((4 * prod(shape) + 2) // 3)


class Selection:
    """The numbers that fit into a page: `arrays` are results by the path of their step, `parameters` by their own."""

    def __init__(self, results: Mapping[str, Array], weights: Mapping[str, Array], bound: int) -> None:
        self.arrays: dict[str, Numbers] = {}
        self.parameters: dict[str, Numbers] = {}
        self._results, self._weights, self._left = results, weights, bound

    def _take(self, kept: dict[str, Numbers], more: Mapping[str, Numbers]) -> bool:
        """Whether all of these still fit; if so they are kept."""
        size = sum(encoded_size(numbers.array.shape) for numbers in more.values())
        if size > self._left:
            return False
        self._left -= size
        kept |= more
        return True

    def keep(self, steps: Iterable[Step]) -> None:
        """The results of all these whole; else of each the same number of first features, as many as fit."""
        more = {step.path: self._results[step.path] for step in steps if step.path not in self.arrays}
        if self._take(self.arrays, {path: Numbers(array) for path, array in more.items()}):
            return
        flat = {path: array for path, array in more.items() if array.ndim < 3}
        features = max((array.shape[-1] for array in flat.values()), default=0)
        while features >= FEWEST:
            if self._take(self.arrays, {path: _first(array, features) for path, array in flat.items()}):
                return
            features //= 2

    def keep_best(self, step: Step) -> None:
        """Of logits those of the best entries of each row."""
        logits = self._results[step.path]
        best = sorted({int(i) for row in np.atleast_2d(logits) for i in np.argsort(-row)[:BEST]})
        self._take(self.arrays, {step.path: Numbers(logits[..., best], best)})

    def keep_parameters(self, step: Step) -> None:
        """A step's vectors, and of its matrix [outputs, inputs] the rows of features that are kept of its result."""
        if step.path not in self.arrays or step.op.startswith("embed"):
            return
        features = self.arrays[step.path].features
        for path in step.parameters:
            array = self._weights.get(path)
            if array is None or array.ndim > 2 or path in self.parameters:
                continue
            table = array.T if step.op == "project" else array
            rows = [row for row in features or range(len(table)) if row < len(table)]
            if array.ndim == 1:
                self._take(self.parameters, {path: _rows(table, rows)})
                continue
            rows = rows[:MOST_ROWS]
            while rows and not self._take(self.parameters, {path: _rows(table, rows)}):
                rows = rows[: len(rows) // 2]


def _first(array: Array, features: int) -> Numbers:
    whole = features >= array.shape[-1]
    return Numbers(array) if whole else Numbers(array[..., :features], list(range(features)))


def _rows(table: Array, rows: list[int]) -> Numbers:
    return Numbers(table[rows], None if len(rows) == len(table) else rows)


def choose(found: Pass, layer: int, full: bool) -> Selection:
    """The numbers that fit, those of the heads and of this layer first; with `full` all, or it is a BertcliError."""
    results, bound = found.trace.arrays, FULL_BOUND if full else BOUND
    wanted = sum(encoded_size(array.shape) for array in results.values())
    if full and wanted > bound:
        raise BertcliError(
            f"The whole pass needs {wanted / 1e6:,.0f} MB of numbers, above {bound // 1_000_000} MB: "
            "leave out --full, or give a shorter text."
        )
    weights = {parameter.path: parameter.array for parameter in parameters(found.model.network)}
    kept = Selection(results, weights, bound)
    ran = [step for step in found.trace.steps if step.path in results]
    logits = [step for step in ran if results[step.path].shape[-1] == found.model.config.vocab_size]
    steps = [step for step in ran if step not in logits]
    chosen = [step for step in steps if stop_of(step, found.layers) == layer + 1]
    kept.keep(ran if full else [step for step in chosen if step.op == "softmax"])
    for step in [] if full else logits:
        kept.keep_best(step)
    kept.keep(step for step in chosen if step.output.symbols.endswith("S × S"))
    kept.keep(step for step in steps if step.op == "softmax")
    kept.keep(chosen)
    kept.keep(steps)
    outside = [step for step in ran if stop_of(step, found.layers) in (0, found.layers + 1)]
    for step in [*chosen, *outside, *ran]:
        kept.keep_parameters(step)
    return kept


# ---------------------------------------------------------------------------------------------------------- the page


def pass_page(found: Pass, layer: int | None = None, full: bool = False) -> str:
    """The page; `layer` (default: the last) is open at first, and the one of which most numbers are there.

    Errors: BertcliError for a layer that is not there, and for more numbers than a page may hold.
    """
    layer = found.layers - 1 if layer is None else layer + found.layers * (layer < 0)
    if not 0 <= layer < found.layers:
        raise BertcliError(f"There is no such layer: this model has layers 0 to {found.layers - 1}.")
    kept = choose(found, layer, full)
    steps = found.trace.steps
    data = {
        "model": visible(found.model.name),
        "tokens": [visible(piece) for piece in found.inputs.pieces],
        "ids": found.ids,
        "layer": layer,
        "token": next((i for i, id in enumerate(found.ids) if id == found.inputs.mask), 0),
        "layers": found.layers,
        "heads": found.model.config.num_attention_heads,
        "steps": [{**step.record(), **_beside(step, found.layers)} for step in steps],
        "lines": [line._asdict() for line in found.lines],
        "arrays": {path: numbers.record() for path, numbers in kept.arrays.items()},
        "parameters": {path: numbers.record() for path, numbers in kept.parameters.items()},
    }
    title = f"{found.model.name} reads a text" if found.inputs.pieces else f"A pass through {found.model.name}"
    stops = range(found.layers + 2)
    sections = [_section(stop, [s for s in steps if stop_of(s, found.layers) == stop], found) for stop in stops]
    here = files(__package__)
    style, script = (here.joinpath(f"pass.{kind}").read_text(encoding="utf-8") for kind in ("css", "js"))
    note = element("p", _note(found, kept.arrays, layer), class_="note")
    top = element("div", _chips(found), element("section", *_result(found), id="result"), id="top")
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
    return page(title, top, _totals(found), note, body, lead=LEAD, style=style, script=script, data=data)


def _beside(step: Step, layers: int) -> dict[str, Any]:
    """What the script needs of a step beside its record."""
    return {
        "op": step.op, "stop": stop_of(step, layers), "sources": step.sources, "parameters": step.parameters,
        "settings": step.settings,
    }  # fmt: skip


def stop_name(stop: int, layers: int) -> str:
    """`Embeddings`, `Layer 0`, …, `Head`."""
    return "Embeddings" if stop == 0 else "Head" if stop > layers else f"Layer {stop - 1}"


def _chips(found: Pass) -> Markup:
    chips = [
        element("button", piece, element("small", str(id)), type="button", class_="chip", data_token=str(i))
        for i, (piece, id) in enumerate(zip(found.inputs.pieces, found.ids, strict=True))
    ]
    many = "many" if len(chips) > MANY else None
    return element("div", *chips, id="tokens", class_=many, role="group", aria_label="Tokens and their ids")


def _totals(found: Pass) -> Markup:
    totals = found.trace.totals
    parts = [f"{totals.params:,} parameters", f"{totals.macs:,} MACs", f"{totals.activation_bytes:,} bytes of results"]
    if totals.seconds:
        parts.append(f"{1000 * totals.seconds:,.1f} ms")
    return element("p", " · ".join(parts), class_="totals")


def _note(found: Pass, arrays: dict[str, Numbers], layer: int) -> str:
    if not found.trace.arrays:
        return "This model has no weights: the page shows shapes and formulas, and no numbers."
    size = sum(encoded_size(numbers.array.shape) for numbers in arrays.values())
    whole, count = sum(numbers.features is None for numbers in arrays.values()), len(found.trace.arrays)
    text = f"On this page are {size / 1e6:.2f} MB of numbers: {whole} of {count} results whole"
    cut = [numbers.features for numbers in arrays.values() if numbers.features is not None]
    first = [len(features) for features in cut if features[-1] == len(features) - 1]
    text += f", of others the first {max(first)} features at most" if first else ""
    text += ", of the vocabulary's logits those of the best tokens" if len(first) < len(cut) else ""
    missing = count - len(arrays)
    text += f", {missing} only as statistics" if missing else ""
    return text + ("." if whole == count else f". Layer {layer} is the one with most (--layer).")


def _section(stop: int, steps: Sequence[Step], found: Pass) -> Markup:
    cards = list(_cards(steps))
    name = stop_name(stop, found.layers)
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
    return len(steps) == 3 and steps[0].macs > 0 and len({(one.op, one.group, one.output.shape) for one in steps}) == 1


def _card(step: Step, width: str) -> Markup:
    inputs = [one.name for one in step.inputs]
    shapes = [f"{one.name} {one.size}" for one in step.inputs]
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


def results(found: Pass) -> list[tuple[str, list[tuple[str, float]]]]:
    """What the heads say: a title and its best entries, with probabilities (or logits where there are none)."""
    model, inputs, out = found.model, found.inputs, found.outputs
    titles: list[tuple[str, list[tuple[str, float]]]] = []
    if out is None:
        return titles
    if out.mlm is not None:
        masks = [i for i, id in enumerate(found.ids) if id == inputs.mask]
        logits = out.mlm.reshape(len(found.ids), -1)
        titles += [(f"{found.inputs.pieces[i]} at position {i}", _best(logits[i], inputs.spell)) for i in masks]
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


def results_in_words(found: Pass) -> list[str]:
    """`[MASK] at position 8: tea 0.1982, water 0.1629`, a line for each head that has something to say."""
    return [
        f"{title}: {', '.join(f'{visible(name)} {value:.4f}' for name, value in entries)}"
        for title, entries in results(found)
    ]


def _result(found: Pass) -> Iterator[Markup]:
    for title, entries in results(found):
        items = [
            element("li", element("span", name), " ", element("b", f"{value:.4f}"), style=f"--share: {abs(value):.3f}")
            for name, value in entries
        ]
        yield element("div", element("h2", title), element("ol", *items))


# ---------------------------------------------------------------------------------------------------------- the notes


def pass_notes(found: Pass) -> str:
    """The same column as Markdown, without pictures: formulas, shapes, statistics."""
    parts = [f"# {visible(found.model.name)}", " ".join(f"`{visible(piece)}`" for piece in found.inputs.pieces), ""]
    parts += [line for result in results_in_words(found) for line in (result, "")]
    last, group = -1, ""
    for step in found.trace.steps:
        stop = stop_of(step, found.layers)
        if stop != last:
            parts += [f"## {stop_name(stop, found.layers)}", ""]
            last, group = stop, ""
        if step.group != group:
            parts += [f"### {step.group}", ""]
            group = step.group
        shapes = [one.size for one in (*step.inputs, step.output)]
        tree = formula(step.op, [one.name for one in step.inputs], step.output.name, step.settings)
        parts += [f"**{step.operation}** {', '.join(shapes[:-1])} → {shapes[-1]}", "", f"$${latex(tree)}$$", ""]
        if step.stats is not None:
            low, mean, high = map(_short, (step.stats.min, step.stats.mean, step.stats.max))
            parts += [f"{step.params:,} parameters, {step.macs:,} MACs; minimum {low}, mean {mean}, maximum {high}", ""]
    return "\n".join(parts)
