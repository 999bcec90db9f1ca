"""The page of `trace -o FILE.html` for a model without weights: the table of operations, with formulas on a click.

It has no numbers of a pass, so it has no cells, no colors and no script; page.py draws a pass that has numbers.
"""

from collections.abc import Iterator
from itertools import groupby

from bertcli.analysis.trace.formulas import formula, mathml
from bertcli.analysis.trace.steps import Account, Folded, Step, Value, folded
from bertcli.report.page import Markup, element, html, page, table
from bertcli.report.terminal import Column

LEAD = (
    "Each row is an operation of one forward pass, by shapes alone: nothing is computed. Choose an operation to see "
    "its formula. Equal layers are shown once, with the costs of one of them; their share of the multiply-accumulates "
    "(MACs) is that of all of them together."
)
COLUMNS = (
    Column("Operation"),
    Column("Inputs"),
    Column("Output"),
    Column("Params", number=True),
    Column("MACs", number=True),
    Column("% of MACs", number=True),
)
STYLE = """
table details summary { cursor: pointer; }
table details math { display: block; margin: .4rem 0 .4rem 1rem; font-size: 1.05rem; }
tr:has(.layers) > *, tr:has(.group) > * { border-bottom: 0; padding-top: .7rem; }
.layers { font-weight: 700; }
.group { font-weight: 600; color: var(--quiet); }
"""
OPERATION = "<details><summary>{operation}</summary>{formula}</details>"


def operations_page(account: Account, all_layers: bool = False) -> str:
    """Draw the operations of a pass by shapes; layers that do the same once, unless `all_layers`."""
    totals = account.totals
    sizes = [
        f"{account.batch} × {account.sequence} tokens",
        f"{totals.params:,} parameters",
        f"{totals.macs:,} MACs",
        f"{totals.activation_bytes:,} bytes",
    ]
    rows = [row for block in folded(account.steps, fold=not all_layers) for row in _rows(block, totals.macs)]
    return page(
        "The operations of a forward pass",
        element("p", " · ".join(sizes)),
        table("Operations, in the order in which they run", COLUMNS, rows, wide=True),
        lead=LEAD,
        model=account.model,
        style=STYLE,
    )


def _rows(block: Folded, macs: int) -> Iterator[list[str]]:
    """The rows of a layer or of equal ones; `macs` are those of the whole pass."""
    if block.layers:
        yield _heading(block.heading, "layers")
    for group, steps in groupby(block.steps, lambda step: step.group):
        if group:
            yield _heading(group, "group")
        for step in steps:
            share = 100 * block.times * step.macs / macs if macs else 0.0
            yield [
                _operation(step),
                _sizes(step.inputs),
                _sizes([step.output]),
                f"{step.params:,}" if step.params else "",
                f"{step.macs:,}" if step.macs else "",
                f"{share:.1f}" if step.macs else "",
            ]


def _heading(text: str, css_class: str) -> list[str]:
    """A row with a heading alone."""
    return [element("span", text, class_=css_class), *[""] * (len(COLUMNS) - 1)]


def _operation(step: Step) -> Markup:
    """An operation's name, behind which its formula opens."""
    names = [operand.name for operand in step.inputs]
    written = mathml(formula(step.op, names, step.output.name, step.settings))
    return html(OPERATION, operation=step.operation, formula=written)


def _sizes(values: "list[Value] | tuple[Value, ...]") -> Markup:
    """Names and sizes, each in a line of its own."""
    lines = [html("{name} {size}<br>", name=value.name, size=value.size) for value in values]
    return Markup("".join(lines).removesuffix("<br>"))
