"""An evaluation as a web page: figures with their intervals as a picture, confusion matrix, curves, worst cases."""

from collections.abc import Iterator, Sequence

from bertcli.evaluate.intervals import Figure
from bertcli.evaluate.judge import Evaluation, Verdict
from bertcli.evaluate.outcome import Curve
from bertcli.evaluate.report import INTERVAL, OF_LABELS, below, interval, rows_of_labels, tabled, value
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
    models = evaluation.models
    rows: list[Row] = []
    for group in (None, *models[0].by):
        for metric in models[0].figures:
            for verdict in models:
                figure = verdict.of(group)[metric]
                rows.append((group, metric, verdict.outcome.name, value(figure), interval(figure), strip(figure)))
    content = [element("p", sentence) for sentence in below(evaluation)]
    content.append(table("Figures", *tabled(COLUMNS, rows)))
    if labels := [*rows_of_labels(models)]:
        content.append(table("By label", *tabled(OF_LABELS, labels)))
    for verdict in models:
        content += _of_model(verdict, worst)
    return page(title, *content, lead=lead, style=STYLE)


def strip(figure: Figure) -> Markup | str:
    """An interval on a line from 0 to 1, with the figure in it; nothing for figures that go beyond."""
    low, high = figure.interval
    if not 0 <= low <= high <= 1:
        return ""
    line = element("line", x1="0", x2="100", y1="5", y2="5", class_="quiet")
    part = element("line", x1=f"{100 * low:.2f}", x2=f"{100 * high:.2f}", y1="5", y2="5", class_="range")
    point = element("circle", cx=f"{100 * figure.value:.2f}", cy="5", r="2")
    text = f"{value(figure)} {interval(figure)}"
    return element("svg", line, part, point, viewBox="-3 0 106 10", class_="strip", role="img", aria_label=text)


def _of_model(verdict: Verdict, worst: str) -> Iterator[Markup]:
    name, (labels, confusion, curve) = verdict.outcome.name, verdict.details
    if confusion:
        yield confused(name, [row["label"] for row in labels], confusion)
    if curve is not None:
        yield element("h2", f"{name}: {curve.title}")
        yield _drawn(curve)
    if verdict.worst:
        columns = [Column(key.replace("_", " ").capitalize(), optional=True) for key in verdict.worst[0]]
        yield table(f"{name}: {worst}", *tabled(columns, [tuple(one.values()) for one in verdict.worst]))


def confused(name: str, labels: Sequence[str], confusion: Sequence[Sequence[int]]) -> Markup:
    """A confusion matrix [true][found], shaded by the share of the row."""
    rows = [
        [label, *(shaded(f"{count:,}", count / max(1, sum(counts))) for count in counts)]
        for label, counts in zip(labels, confusion, strict=True)
    ]
    columns = [Column("True"), *(Column(label, number=True) for label in labels)]
    return table(f"{name}: true labels down, found ones across", columns, rows)


def _drawn(curve: Curve) -> Markup:
    """Points in a square from 0 to 1, joined in their order."""
    places = [(100 * x, 100 - 100 * y) for x, y in curve.points]
    frame = [element("line", x1="0", x2=x, y1=y, y2="100", class_="quiet") for x, y in (("0", "0"), ("100", "100"))]
    if curve.ideal:
        frame.append(element("line", x1="0", x2="100", y1="100", y2="0", class_="quiet"))
    line = element("polyline", points=" ".join(f"{x:.2f},{y:.2f}" for x, y in places))
    points = [element("circle", cx=f"{x:.2f}", cy=f"{y:.2f}", r="0.9") for x, y in places]
    names = [element("text", f"{curve.across} →", x="0", y="107"), element("text", f"↑ {curve.up}", x="0", y="-4")]
    content = (*frame, line, *points, *names)
    return element("svg", *content, viewBox="-4 -14 112 130", class_="curve", role="img", aria_label=curve.title)
