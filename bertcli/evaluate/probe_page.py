"""Probes as a web page: the curve over layers with its intervals, the numbers, and where one layer's probe errs."""

from collections.abc import Iterable

from bertcli.analysis.results import state_name
from bertcli.evaluate.page import confused
from bertcli.evaluate.probe import Probe
from bertcli.evaluate.report import interval, value
from bertcli.report.page import Markup, element, page, table

LEAD = (
    "A probe shows what a linear classifier can read from a layer's states, not that the model uses it. The line is "
    "accuracy with its 95 % interval over folds; dots are the share of the most frequent label (majority), dashes the "
    "same probe on labels drawn at random (control)."
)
WIDTH, HEIGHT, LEFT, FOOT = 400, 220, 34, 34  # of the picture, in its own units
STYLE = """
.curve { width: min(100%, 34rem); height: auto; display: block; margin: .5rem 0 1.2rem; }
.curve text { font-size: 12px; fill: currentColor; }
.curve line, .curve polyline { stroke: currentColor; fill: none; }
.curve .quiet { opacity: .25; }
.curve .accuracy { stroke: rgb(var(--for)); stroke-width: 2.5; }
.curve .control { stroke-dasharray: 7 4; }
.curve .majority { stroke-dasharray: 2 4; }
.curve circle { fill: currentColor; }
"""


def probe_page(view: Probe, model: str = "") -> str:
    """The whole page."""
    document, chosen = view.document(), view.layers[view.shown]
    told = [element("p", sentence) for sentence in document.below]
    rows = [[row[0], row[1].split()[0], *row[2:]] for row in document.rows]  # without bars
    numbers = table("Layers", document.columns, rows)
    matrix = confused(f"Probe ({state_name(chosen.layer)})", view.labels, chosen.confusion.astype(int).tolist())
    content = _curve(view), *told, numbers, matrix
    return page("What each layer knows", *content, lead=LEAD, model=model, style=STYLE)


def _curve(view: Probe) -> Markup:
    """Layers across, shares from 0 to 1 up."""
    layers = view.layers

    def x(layer: int) -> str:
        return f"{LEFT + 10 + (WIDTH - LEFT - 20) * layer / max(1, len(layers) - 1):.1f}"

    def y(share: float) -> str:
        return f"{8 + (HEIGHT - FOOT - 8) * (1 - share):.1f}"

    def joined(kind: str, shares: Iterable[float]) -> Markup:
        points = " ".join(f"{x(layer)},{y(share)}" for layer, share in enumerate(shares))
        return element("polyline", points=points, class_=kind)

    parts = []
    for share, kind in ((0, "quiet"), (0.5, "quiet"), (1, "quiet"), (layers[0].majority, "majority")):
        parts.append(element("line", x1=str(LEFT), x2=str(WIDTH), y1=y(share), y2=y(share), class_=kind))
        if kind == "quiet":
            parts.append(element("text", f"{share:g}", x="0", y=y(share - 0.02)))
    parts.append(joined("control", (one.control for one in layers)))
    parts.append(joined("accuracy", (one.accuracy.value for one in layers)))
    for one in layers:
        at, (low, high) = x(one.layer), one.accuracy.interval
        parts.append(element("line", x1=at, x2=at, y1=y(low), y2=y(high)))
        title = element("title", f"{state_name(one.layer)}: {value(one.accuracy)} {interval(one.accuracy)}")
        parts.append(element("circle", title, cx=at, cy=y(one.accuracy.value), r="4"))
        if one.layer % -(-len(layers) // 13) == 0:
            parts.append(element("text", str(one.layer), x=at, y=str(HEIGHT - 18), text_anchor="middle"))
    parts.append(element("text", "layer (0: embeddings)", x=str(WIDTH // 2), y=str(HEIGHT - 2), text_anchor="middle"))
    label = "Accuracy of the probe of each layer; all numbers are below."
    return element("svg", *parts, viewBox=f"0 0 {WIDTH} {HEIGHT}", class_="curve", role="img", aria_label=label)
