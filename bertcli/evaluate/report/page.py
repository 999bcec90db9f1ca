"""An evaluation as a web page: figures with their intervals as a picture, confusion matrix, curves, worst cases."""

from collections.abc import Iterator, Sequence

from bertcli.evaluate.bootstrap import Record
from bertcli.evaluate.evaluation import Evaluation
from bertcli.evaluate.outcome import Curve
from bertcli.evaluate.report.tables import (
    INTERVAL,
    OF_LABELS,
    below,
    figures_of,
    interval,
    rows_of_labels,
    tabled,
    value,
)
from bertcli.report.page import Markup, element, page, shaded, table
from bertcli.report.tables import Row
from bertcli.report.terminal import Column

LEAD = (
    "An interval holds 95 % of what other texts of the same kind would have given. It does not show whether these "
    "texts are like those that the model will see, nor errors in their labels."
)
STYLE = """
.strip { width: 11rem; height: 1rem; vertical-align: middle; }
.curve { width: min(100%, 24rem); height: auto; display: block; margin: .5rem 0 1.2rem; }
.strip line, .curve line, .curve polyline { stroke: currentColor; fill: none; vector-effect: non-scaling-stroke; }
.strip .range { stroke-width: 4px; stroke: rgb(var(--for)); }
.curve .range { stroke-width: 2px; stroke: rgb(var(--for)); }
.beside { stroke-dasharray: 4 3; opacity: .7; }
.quiet { opacity: .35; }
.strip circle, .curve circle { fill: currentColor; }
.curve text { fill: currentColor; font-size: 4.5px; }
"""

COLUMNS = (
    Column("Group", optional=True),
    Column("Figure"),
    Column("Model", varying=True),
    *(Column(name, number=True) for name in ("Value", INTERVAL)),
    Column("from 0 to 1", optional=True),
)


def evaluation_page(evaluation: Evaluation, title: str, lead: str = LEAD, worst: str = "the worst cases") -> str:
    """The whole page; `worst` is what its last tables are called."""
    models = evaluation.record["models"]
    rows: list[Row] = [
        (group, metric, model["model"], value(figure), interval(figure), strip(figure))
        for group, names in figures_of(models[0]).items()
        for metric in names
        for model in models
        for figure in [figures_of(model)[group][metric]]
    ]
    content = [element("p", sentence) for sentence in below(evaluation)]
    content.append(table("Figures", *tabled(COLUMNS, rows)))
    if labels := [*rows_of_labels(models)]:
        content.append(table("By label", *tabled(OF_LABELS, labels)))
    for model, curve in zip(models, evaluation.curves, strict=True):
        content += _of_model(model, curve, worst)
    return page(title, *content, lead=lead, style=STYLE)


def strip(figure: Record) -> Markup | str:
    """An interval on a line from 0 to 1, with the figure in it; nothing for figures that go beyond."""
    point, low, high = figure["value"], figure["low"], figure["high"]
    if point is None or not 0 <= low <= high <= 1:
        return ""
    line = element("line", x1="0", x2="100", y1="5", y2="5", class_="quiet")
    part = element("line", x1=f"{100 * low:.2f}", x2=f"{100 * high:.2f}", y1="5", y2="5", class_="range")
    dot = element("circle", cx=f"{100 * point:.2f}", cy="5", r="2")
    text = f"{value(figure)} {interval(figure)}"
    return element("svg", line, part, dot, viewBox="-3 0 106 10", class_="strip", role="img", aria_label=text)


def _of_model(model: Record, curve: Curve | None, worst: str) -> Iterator[Markup]:
    name = model["model"]
    if confusion := model.get("confusion"):
        yield confused(name, [row["label"] for row in model["labels"]], confusion)
    if curve is not None:
        yield element("h2", f"{name}: {curve.title}")
        yield drawn(curve)
    if model["worst"]:
        columns = [Column(key.replace("_", " ").capitalize(), optional=True) for key in model["worst"][0]]
        yield table(f"{name}: {worst}", *tabled(columns, [tuple(one.values()) for one in model["worst"]]))


def confused(name: str, labels: Sequence[str], confusion: Sequence[Sequence[int]]) -> Markup:
    """A confusion matrix [true][found], shaded by the share of the row."""
    rows = [
        [label, *(shaded(f"{count:,}", count / max(1, sum(counts))) for count in counts)]
        for label, counts in zip(labels, confusion, strict=True)
    ]
    columns = [Column("True"), *(Column(label, number=True) for label in labels)]
    return table(f"{name}: true labels down, found ones across", columns, rows)


def drawn(curve: Curve) -> Markup:
    """Points in a square from 0 to 1, joined in their order, with their ranges, and other points beside them."""
    places, *beside = ([(100 * x, 100 - 100 * y) for x, y in points] for points in (curve.points, *curve.beside))
    frame = [(0, 0, 0, 100), (0, 100, 100, 100), *([(0, 100, 100, 0)] if curve.ideal else [])]
    parts = [_line("quiet", *ends) for ends in frame]
    for (x, y), (low, high) in zip(places, curve.ranges, strict=False):
        title = element("title", f"{1 - y / 100:.4f} [{low:.4f}, {high:.4f}]")
        parts.append(_line("range", x, 100 - 100 * low, x, 100 - 100 * high, title))
    for kind, points in [(None, places), *(("beside", points) for points in beside)]:
        parts.append(element("polyline", points=" ".join(f"{x:.2f},{y:.2f}" for x, y in points), class_=kind))
    parts += [element("circle", cx=f"{x:.2f}", cy=f"{y:.2f}", r="0.9") for x, y in places]
    for (x, _), name in zip(places, curve.names, strict=False):
        parts.append(element("text", name, x=f"{x:.2f}", y="106", text_anchor="middle"))
    across, up = f"{curve.across} →", f"↑ {curve.up}, 0 to 1"
    parts += [element("text", across, x="0", y="113"), element("text", up, x="0", y="-4")]
    return element("svg", *parts, viewBox="-4 -14 112 130", class_="curve", role="img", aria_label=curve.title)


def _line(kind: str, x1: float, y1: float, x2: float, y2: float, *title: Markup) -> Markup:
    return element("line", *title, x1=f"{x1:.2f}", y1=f"{y1:.2f}", x2=f"{x2:.2f}", y2=f"{y2:.2f}", class_=kind)
