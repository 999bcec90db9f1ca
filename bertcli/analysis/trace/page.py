"""The page of `trace -o pass.html`: the forward pass of one text, step by step, with every number that fits on it.

A model without weights has no numbers: operations_page.py draws its operations.

The page is one file without a network. It holds the steps of the trace, and of their results as many numbers as fit
into a bound (selection.py). Its script works out how a chosen number came about from others on the page (worked.js),
and draws them (pass.js). Two passes can stand side by side.
"""

import sys
from collections.abc import Iterator, Mapping, Sequence
from importlib.resources import files
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from bertcli.analysis.texts import partners
from bertcli.analysis.trace.formulas import formula, mathml
from bertcli.analysis.trace.passes import NEXT, Pass, results, run_pass
from bertcli.analysis.trace.recorder import inputs_of_text
from bertcli.analysis.trace.selection import Chosen, Numbers, Selection, choose
from bertcli.analysis.trace.steps import Step
from bertcli.engine.pauses import check_wanted
from bertcli.errors import BertcliError, number_of
from bertcli.extensions.of_kinds import kind_files
from bertcli.report.page import COLORS, Markup, element, html, page
from bertcli.report.terminal import visible
from bertcli.tracing.dispatch import Array

if TYPE_CHECKING:
    from bertcli.loaded_model import LoadedModel

# Bytes of a page: at most, and of a short text, whose numbers are few: so many and so many for each token.
BOUND = 8_000_000
SHORT, PER_TOKEN = 2_500_000, 45_000
# Bytes of these kept for the note that lists the numbers on the page.
NOTE = 500
# Share of the room for a second text's numbers. It needs less than half: the first text's share holds the weights.
SECOND = 0.35
# With more tokens than this, they stand in one line that scrolls.
MANY = 24
HINT = (
    "Choose a token, a layer, an attention head; choose a cell of a picture to see how its number is computed. "
    f"{COLORS} Of attention weights the blue is stronger the larger they are."
)
LEAD = (
    "All numbers are from this forward pass, in float32. They show how the result is computed, not which of them it "
    "depends on: explain, heads --ablate and patch measure that."
)


class PageOptions(NamedTuple):
    """The section, head and token that a page opens at, and how much it holds.

    layer: from 1, 0 for the embeddings, negative from the end. head: from 1. token: None for the first mask, else the
    first token. bound: bytes of the page, at most; None is no bound, and every number is on the page. ask: where a box
    on the page sends another text, with `text`, `layer`, `head` and `token` in the query; it then offers the same for
    numbers that the page cannot work out.
    """

    layer: int = -1
    head: int = 1
    token: int | None = None
    bound: int | None = BOUND
    ask: str | None = None


DEFAULT = PageOptions()


def bound_for(*tokens: int) -> int:
    """The bytes of a page whose passes have so many tokens each."""
    return min(BOUND, sum(SHORT + PER_TOKEN * count for count in tokens))


CHIP = '<button type="button" class="chip" data-token="{token}">{piece}<small>{id}</small></button>'
CHIPS = '<div id="{name}tokens" class="{css_class}" role="group" aria-label="Tokens and their ids">{chips}</div>'
RESULT = '<li style="--share: {share:.3f}"><span>{name}</span> <b>{value:.4f}</b></li>'
BOX = (
    '<form id="ask" method="get" action="{ask}">'
    '<input type="text" name="text" value="{text}" aria-label="The text" dir="auto"><button>Read this</button></form>'
)
SECTION = '<section class="section" data-section="{number}" id="section-{number}"><h2>{name}</h2>{cards}</section>'
CARD = (
    '<article class="card {width}" id="{path}"><h4><a href="#{path}">{operation}</a></h4>{notes}{formula}'
    '<div class="picture" data-step="{index}"></div><p class="shapes">{shapes}</p>'
    "<details><summary>Statistics and costs</summary><dl>{facts}</dl></details></article>"
)
PASS = (
    '<div id="pass"><nav id="line" aria-label="The pass"></nav><div id="cards">{sections}</div>'
    '<aside id="side"><h2>One number</h2><div id="worked" aria-live="polite"></div></aside></div>'
)


def page_of_text(
    model: "LoadedModel", text: str, pair: str | None = None, versus: str | None = None, options: PageOptions = DEFAULT
) -> str:
    """Run and draw the pass of a text or a pair, and beside it that of the text `versus`. Errors: as in pass_page."""
    beside = None if versus is None else run_pass(model, inputs_of_text(model, versus))
    return pass_page(run_pass(model, inputs_of_text(model, text, pair)), options, beside, text)


def pass_page(run: Pass, options: PageOptions = DEFAULT, versus: Pass | None = None, text: str = "") -> str:
    """Draw a pass, and beside it the pass `versus`. `text`: the content of the box for another text (`options.ask`).

    Errors: BertcliError for a layer or a head that the model does not have.
    """
    runs = [run] if versus is None else [run, versus]
    chosen = _chosen(run, options)
    # The page without numbers shows how many bytes of the bound are left for them.
    empty = [Selection(each.trace, each.model, 0, chosen) for each in runs]
    room = sys.maxsize
    if options.bound is not None:
        room = options.bound - NOTE - len(_page(runs, empty, chosen, options, text).encode())
    rest = 0 if versus is None else int(SECOND * room)
    kept = [choose(run.trace, run.model, chosen, room - rest)]
    if versus is not None:
        kept.append(choose(versus.trace, run.model, chosen, rest + kept[0].room, kept[0].parameters))
    return _page(runs, kept, chosen, options, text)


def _chosen(run: Pass, options: PageOptions) -> Chosen:
    """The section, head and token that the page shows first. Errors: as in pass_page."""
    heads, section = run.model.config.num_attention_heads, options.layer
    section = section + run.layers + 1 if section < 0 else section
    if not 0 <= section <= run.layers:
        known = f"this model has layers 1 to {run.layers}; 0 is the embeddings"
        raise BertcliError(f"There is no layer {options.layer}: {known}.")
    if not 1 <= options.head <= heads:
        raise BertcliError(f"There is no head {options.head}: a layer of this model has heads 1 to {heads}.")
    mask = next((i for i, id in enumerate(run.ids) if id == run.inputs.mask), 0)
    token = mask if options.token is None else min(max(0, options.token), max(0, len(run.ids) - 1))
    return Chosen(section, options.head - 1, token)


def _page(runs: Sequence[Pass], kept: Sequence[Selection], chosen: Chosen, options: PageOptions, text: str) -> str:
    """The whole page; `kept` are the numbers on it, a selection for each pass."""
    run = runs[0]
    data = _data(run, kept[0]) | {
        "layer": chosen.section, "head": 1 + chosen.head, "token": chosen.token, "ask": options.ask,
    }  # fmt: skip
    if len(runs) > 1:
        data |= {"versus": _data(runs[1], kept[1]), "pairs": partners(*(each.inputs.pieces for each in runs))}
    top = []
    for each, name in zip(runs, ("", "versus-"), strict=False):
        top += [_chips(each, name), element("section", *_result(each), class_="result")]
    content = [element("p", HINT, class_="hint")]
    if options.ask is not None:
        content.append(html(BOX, ask=options.ask, text=text))
    content += [element("div", *top, id="top"), _totals(run), element("p", _note(run, kept[0]), class_="note")]
    content.append(html(PASS, sections=[*_sections(run)]))
    return page(
        f"The forward pass of {_input_name(run)}",
        *content,
        lead=LEAD,
        model=run.model.name,
        text=text or (run.inputs.text if _is_of_text(run) else ""),
        command="" if options.ask else None,  # a page from a server does not show the server's command line
        style=_asset("pass.css"),
        script=worked_out() + _asset("pass.js"),
        data=data,
    )


def worked_out() -> str:
    """The script that works out numbers: worked.js, and what kinds have for their own ops."""
    return _asset("worked.js") + "".join(file.read_text(encoding="utf-8") for file in kind_files("worked.js"))


def _asset(name: str) -> str:
    """A file beside this one."""
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


def _is_of_text(run: Pass) -> bool:
    """True for the pass of a text; random tokens and shapes have no mask token."""
    return run.inputs.mask is not None


def _input_name(run: Pass) -> str:
    if _is_of_text(run):
        return "a text"
    return number_of(len(run.ids), "random token")


def _sections(run: Pass) -> Iterator[Markup]:
    """The embeddings, each layer, and the heads, with a card for each step."""
    for number in range(run.layers + 2):
        check_wanted()
        steps = [step for step in run.trace.steps if run.sections[step.index] == number]
        name = section_name(number, run.layers)
        yield html(SECTION, number=number, name=name, cards=[*_cards(steps, run)])


def _data(run: Pass, kept: Selection) -> dict[str, Any]:
    """The data of a pass for the page's scripts (pass.js, worked.js)."""
    return {
        "model": visible(run.model.name),
        "tokens": [visible(piece) for piece in run.inputs.pieces],
        "ids": run.ids,
        "layers": run.layers,
        "heads": run.model.config.num_attention_heads,
        "steps": [{**step.record(), **_beside(step, run)} for step in run.trace.steps],
        "lines": [state._asdict() for state in run.states],
        "names": dict(_columns(run, kept)),
        "arrays": _records(kept.arrays),
        "parameters": _records(kept.parameters),
        "products": {path: products.record() for path, products in kept.products.items()},
    }


def _records(numbers: Mapping[str, Numbers]) -> dict[str, Any]:
    """Numbers by path, as the scripts read them."""
    records = {}
    for path, of_path in numbers.items():
        check_wanted()
        records[path] = of_path.record()
    return records


def _beside(step: Step, run: Pass) -> dict[str, Any]:
    """The fields of a step that the scripts need beside its record."""
    return {
        "op": step.op, "section": run.sections[step.index], "sources": step.sources, "parameters": step.parameters,
        "settings": step.settings,
    }  # fmt: skip


def _columns(run: Pass, kept: Selection) -> Iterator[tuple[str, list[str]]]:
    """Column names (labels, tokens) of the prediction heads' results, by the paths of their steps."""
    of_heads = {"nsp": NEXT, "sop": ("in order", "swapped"), "qa": ("start", "end"), "rtd": ("replaced",)}
    for step in run.trace.steps:
        numbers, width = kept.arrays.get(step.path), step.output.symbols.split(" × ")[-1]
        if numbers is None or run.sections[step.index] <= run.layers:
            continue
        head = of_heads.get(step.path.partition(".")[0])
        if width == "V":
            ids = range(step.output.shape[-1]) if numbers.features is None else numbers.features
            yield step.path, [visible(run.inputs.spell(id)) for id in ids]
        elif width == "C":
            yield step.path, [visible(label) for label in run.model.config.labels]
        elif head is not None and len(head) == numbers.array.shape[-1]:
            yield step.path, [*head]


def section_name(section: int, layers: int) -> str:
    """`Embeddings`, `Layer 1`, …, `Head`."""
    if section == 0:
        return "Embeddings"
    return "Head" if section > layers else f"Layer {section}"


def _chips(run: Pass, name: str) -> Markup:
    """The tokens of a pass as a row of buttons."""
    chips = []
    for position, (piece, id) in enumerate(zip(run.inputs.pieces, run.ids, strict=True)):
        chips.append(html(CHIP, token=position, piece=piece, id=id))
    return html(CHIPS, name=name, css_class="chips many" if len(chips) > MANY else "chips", chips=chips)


def _totals(run: Pass) -> Markup:
    totals = run.trace.totals
    parts = [f"{totals.params:,} parameters", f"{totals.macs:,} MACs", f"{totals.activation_bytes:,} bytes of results"]
    if totals.seconds:
        parts.append(f"{1000 * totals.seconds:,.1f} ms")
    return element("p", " · ".join(parts), class_="totals")


def _note(run: Pass, kept: Selection) -> str:
    """The note with the number of the pass's results on the page."""
    results, arrays = run.trace.arrays, kept.arrays
    whole = {path for path, numbers in arrays.items() if numbers.features is None}
    text = f"This page holds all numbers of {len(whole)} of {number_of(len(results), 'step')}"
    features = [numbers.features for numbers in arrays.values() if numbers.features is not None]
    first = [len(indices) for indices in features if indices[-1] == len(indices) - 1]
    text += f", of others the first {number_of(max(first), 'feature')} at most" if first else ""
    text += ", of the vocabulary's logits those of the best tokens" if len(first) < len(features) else ""
    missing = len(results) - len(arrays)
    return text + (f", {missing} only as statistics." if missing else ".")


def _cards(steps: Sequence[Step], run: Pass) -> Iterator[Markup]:
    group = ""
    for i, step in enumerate(steps):
        if step.group != group and step.group:
            group = step.group
            yield element("h3", group)
        third = any(_alike(steps[j : j + 3]) for j in range(max(0, i - 2), i + 1))
        yield _card(step, "third" if third else "half", run.trace.arrays.get(step.path))


def _alike(steps: Sequence[Step]) -> bool:
    """True for three products of one shape and group, such as query, key and value: their cards share a row."""
    return (
        len(steps) == 3 and steps[0].macs > 0 and len({(step.op, step.group, step.output.shape) for step in steps}) == 1
    )


def _card(step: Step, width: str, numbers: Array | None) -> Markup:
    inputs = [operand.name for operand in step.inputs]
    shapes = [f"{operand.name} {operand.size}" for operand in step.inputs]
    facts = [("Parameters", f"{step.params:,}"), ("MACs", f"{step.macs:,}"), ("Bytes", f"{step.bytes:,}")]
    if step.seconds is not None:
        facts.append(("Milliseconds", f"{1000 * step.seconds:.3f}"))
    if step.stats is not None:
        names = {"min": "Minimum", "mean": "Mean", "max": "Maximum", "std": "Standard deviation"}
        facts += [(title, _short(step.stats[name])) for name, title in names.items()]
    listed = [part for name, value in facts for part in (element("dt", name), element("dd", value))]
    return html(
        CARD, width=width, path=step.path, operation=step.operation, index=step.index,
        notes=[] if numbers is None else [*_alarms(numbers)],
        formula=mathml(formula(step.op, inputs, step.output.name, step.settings)),
        shapes=f"{' · '.join(shapes)} → {step.output.name} {step.output.size}", facts=listed,
    )  # fmt: skip


def _alarms(numbers: Array) -> Iterator[Markup]:
    """Warnings on a result's card: NaN or +∞, or a count of −∞, which comes from an attention mask and is no fault."""
    if np.isnan(numbers).any() or np.isposinf(numbers).any():
        yield element("p", "NaN or infinite values", class_="damaged")
    elif masked := int(np.isneginf(numbers).sum()):
        yield element("p", f"{masked:,} of {numbers.size:,} masked (−∞)", class_="shapes")


def _short(value: float | None) -> str:
    return "not finite" if value is None else f"{value:.4g}"


def _result(run: Pass) -> Iterator[Markup]:
    for title, entries in results(run):
        items = [html(RESULT, name=name, value=value, share=abs(value)) for name, value in entries]
        yield element("div", element("h2", title), element("ol", *items))
