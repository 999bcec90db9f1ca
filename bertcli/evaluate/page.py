"""An evaluation as a web page: figures with their intervals as a picture, confusion matrix, curves, worst cases."""

from collections.abc import Iterator, Sequence

from bertcli.evaluate.intervals import Figure
from bertcli.evaluate.judge import Evaluation, Verdict
from bertcli.evaluate.outcome import Curve
from bertcli.evaluate.report import below, interval, value
from bertcli.report.page import Markup, element, page, shaded, table
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
COLUMNS = (Column("Figure"), Column("Model"), *(Column(name, number=True) for name in ("Value", "95 % interval")))


def evaluation_page(evaluation: Evaluation) -> str:
    """The whole page."""
    labelled, verdicts = evaluation.labelled, evaluation.models
    content = [element("p", sentence) for sentence in below(evaluation)]
    content.append(_figures("Figures", [(one.judged.name, one.figures) for one in verdicts]))
    for group in verdicts[0].by:
        content.append(_figures(f"Of {group}", [(one.judged.name, one.by[group]) for one in verdicts]))
    for verdict in verdicts:
        content += _of_model(verdict)
    return page(f"{labelled.task} on {labelled.file}", *content, lead=LEAD, style=STYLE)


def _figures(caption: str, models: Sequence[tuple[str, dict[str, Figure]]]) -> Markup:
    """Figures down, under each the models, so that their intervals can be compared."""
    rows = [
        [metric, name, value(figures[metric]), interval(figures[metric]), strip(figures[metric])]
        for metric in models[0][1]
        for name, figures in models
    ]
    return table(caption, [*COLUMNS, Column("from 0 to 1")], rows)


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


def _of_model(verdict: Verdict) -> Iterator[Markup]:
    name, record = verdict.judged.name, verdict.record
    if "labels" in record:
        numbers = [Column(key, number=True) for key in ("precision", "recall", "f1", "support")]
        rows = [
            [row["label"], *(f"{row[key.name]:.4f}" for key in numbers[:-1]), f"{row['support']:,}"]
            for row in record["labels"]
        ]
        yield table(f"{name}: by label", [Column("Label"), *numbers], rows)
        yield _confusion(name, [row["label"] for row in record["labels"]], record["confusion"])
    if (curve := verdict.judged.outcome.curve) is not None:
        yield element("h2", f"{name}: {curve.title}")
        yield _drawn(curve)
    if verdict.worst:
        columns = [Column(key.replace("_", " ").capitalize()) for key in verdict.worst[0]]
        yield table(f"{name}: the worst cases", columns, [list(map(str, one.values())) for one in verdict.worst])


def _confusion(name: str, labels: Sequence[str], counts: Sequence[Sequence[int]]) -> Markup:
    """True labels down, found ones across, shaded by the share of the row."""
    rows = [
        [label, *(shaded(f"{count:,}", count / max(1, sum(row))) for count in row)]
        for label, row in zip(labels, counts, strict=True)
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
