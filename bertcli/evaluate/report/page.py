"""The page of `bertcli evaluate`: figures with their intervals, confusion matrix, curves, worst cases."""

from collections.abc import Iterable, Iterator, Sequence

from bertcli.evaluate import provenance
from bertcli.evaluate.bootstrap import Record
from bertcli.evaluate.evaluation import Evaluation
from bertcli.evaluate.figures import spec_of
from bertcli.evaluate.outcome import Curve
from bertcli.evaluate.report.tables import (
    DIFFERENCES,
    INTERVAL,
    OF_LABELS,
    below,
    figures_of,
    interval,
    label_rows_have_intervals,
    rows_of_differences,
    rows_of_labels,
    tabled,
    value,
)
from bertcli.report.page import Markup, element, page, shaded, table
from bertcli.report.tables import Row
from bertcli.report.terminal import Column

LEAD = (
    "Figures and their intervals do not show whether these texts are like those that the model will see, nor errors in "
    "their labels."
)
TICKS = (0, 0.25, 0.5, 0.75, 1)
STYLE = """
.strip { width: 11rem; height: 1.6rem; vertical-align: middle; }
.curve { width: min(90vw, 26rem); height: auto; display: block; margin: .5rem 0 1.2rem; }
.strip line, .curve line, .curve polyline { stroke: currentColor; fill: none; vector-effect: non-scaling-stroke; }
.strip .range { stroke-width: 4px; stroke: rgb(var(--for)); }
.curve .range { stroke-width: 2px; stroke: rgb(var(--for)); }
.beside { stroke-dasharray: 4 3; opacity: .7; }
.quiet { opacity: .35; }
.strip circle, .curve circle { fill: currentColor; }
.curve text { fill: currentColor; font-size: 4.5px; }
.strip text { fill: currentColor; font-size: 7px; opacity: .7; }
.pictures { display: flex; flex-wrap: wrap; gap: 0 2rem; align-items: flex-start; }
.pictures > * { min-width: 0; max-width: 100%; flex: 1 1 30rem; }
.pictures.small > * { flex: 0 1 auto; }
.curve { min-width: min(100%, 18rem); }
figure { margin: 0; }
figcaption { color: var(--quiet); font-size: .9rem; margin-top: .5rem; }
.source { color: var(--quiet); font-size: .9rem; margin-top: 2rem; }
.source p { margin: 0 0 .2rem; max-width: none; }
"""
COLUMNS = (
    Column("Group", optional=True),
    Column("Figure"),
    Column("Model", varying=True),
    *(Column(name, number=True) for name in ("Value", INTERVAL, "n")),
    Column("from 0 to 1", optional=True),
)


def evaluation_page(evaluation: Evaluation, title: str) -> str:
    """Draw the page."""
    record = evaluation.record
    models = record["models"]
    content = [element("p", sentence) for sentence in below(evaluation)]
    figures = table("Figures", *tabled(COLUMNS, [*_rows_of_figures(models, None)]))
    content.append(_side_by_side(figures, _explained(models)))
    if groups := [name for name in figures_of(models[0]) if name is not None]:
        rows = [row for group in groups for row in _rows_of_figures(models, group)]
        content.append(table("By group", *tabled(COLUMNS, rows)))
    if record["differences"]:
        if len(models) == 2:
            caption = f"Differences: {models[1]['model']} less {models[0]['model']}"
            content.append(table(caption, *tabled(DIFFERENCES, [*rows_of_differences(record["differences"])])))
        else:
            content.append(table(*_many_differences(record)))
    if labels := [*rows_of_labels(models)]:
        content.append(table("By label", *_with_recall_intervals(models, labels)))
    for model, curve in zip(models, evaluation.curves, strict=True):
        content += _of_model(model, curve)
    source = [
        element("p", line) for line in provenance.sentences(record, with_command=False)
    ]  # it is in the page's head
    content.append(element("div", *source, class_="source"))
    return page(title, *content, lead=LEAD, style=STYLE)


def _rows_of_figures(models: Sequence[Record], group: str | None) -> Iterator[Row]:
    """A row for each figure of each model, of all texts (None) or of a group."""
    for name in figures_of(models[0])[group]:
        for model in models:
            figure = figures_of(model)[group].get(name)
            if figure is not None:
                cells = value(figure), interval(figure), f"{figure['n']:,}", strip(figure)
                yield group, name, model["model"], *cells


def _explained(models: Sequence[Record]) -> Markup:
    """The meaning of each figure, in a line."""
    names = dict.fromkeys(name for model in models for name in model["metrics"])
    rows = [[name, spec_of(name).explanation] for name in names]
    return table("What the figures are", [Column("Figure"), Column("Meaning")], rows)


def _side_by_side(*parts: Markup, small: bool = False) -> Markup:
    """Parts beside each other where the page is wide enough, else one below the other."""
    return element("div", *(element("div", part) for part in parts), class_="pictures small" if small else "pictures")


def _many_differences(record: Record) -> tuple[str, list[Column], list[list[str]]]:
    """All differences from the first model, with Holm's p."""
    columns = [
        Column("Model"),
        *(
            Column(name, number=name != "Difference of")
            for name in ("Difference of", "Less the first", INTERVAL, "p (Holm)")
        ),
    ]
    rows: list[Row] = []
    for one in record["differences"]:
        p = "" if one["p"] is None else f"{one['p_holm']:.3f}"
        rows.append((one["b"], one["metric"], value(one, "+.4f"), interval(one, "+.4f"), p))
    return f"Differences from {record['models'][0]['model']}", *tabled(columns, rows)


def _with_recall_intervals(models: Sequence[Record], rows: Sequence[Row]) -> tuple[list[Column], list[list[str]]]:
    """The table of labels; where recall is a share of independent texts, its interval stands beside it."""
    labels = [label for model in models for label in model.get("labels", [])]
    if not label_rows_have_intervals(labels):
        return tabled(OF_LABELS, rows)
    at = 1 + next(i for i, column in enumerate(OF_LABELS) if column.name == "Recall")
    columns = [*OF_LABELS[:at], Column("95 % interval of recall", number=True), *OF_LABELS[at:]]
    wider: list[Row] = []
    for row, label in zip(rows, labels, strict=True):
        recall = {"value": label["recall"], "low": label["recall_low"], "high": label["recall_high"]}
        wider.append((*row[:at], interval(recall), *row[at:]))
    return tabled(columns, wider)


def _of_model(model: Record, curve: Curve | None) -> Iterator[Markup]:
    """The pictures of a model side by side, and its worst cases."""
    name = model["model"]
    pictures = []
    if confusion := model.get("confusion"):
        pictures.append(confused(name, [row["label"] for row in model["labels"]], confusion))
    if curve is not None:
        pictures.append(element("figure", element("figcaption", f"{name}: {curve.title}"), drawn(curve)))
    if pictures:
        yield _side_by_side(*pictures, small=True)
    if model["worst"]:
        columns = [Column(key.replace("_", " ").capitalize(), optional=True) for key in model["worst"][0]]
        yield table(f"{name}: the worst cases", *tabled(columns, [tuple(one.values()) for one in model["worst"]]))


# ------------------------------------------------------------------------------------------------------------ pictures


def strip(figure: Record) -> Markup | str:
    """A figure on a line from 0 to 1 with its interval; nothing for figures that go beyond."""
    point, low, high = figure["value"], figure["low"], figure["high"]
    if point is None or not 0 <= point <= 1 or (low is not None and not 0 <= low <= high <= 1):
        return ""
    parts = [element("line", x1="0", x2="100", y1="4", y2="4", class_="quiet")]
    for tick in (0, 50, 100):
        parts.append(element("line", x1=f"{tick}", x2=f"{tick}", y1="2.5", y2="5.5", class_="quiet"))
    if low is not None:
        parts.append(element("line", x1=f"{100 * low:.2f}", x2=f"{100 * high:.2f}", y1="4", y2="4", class_="range"))
    parts.append(element("circle", cx=f"{100 * point:.2f}", cy="4", r="2"))
    for tick, label, anchor in ((0, "0", "start"), (50, "0.5", "middle"), (100, "1", "end")):
        parts.append(element("text", label, x=f"{tick}", y="13", text_anchor=anchor))
    text = f"{value(figure)} {interval(figure)}"
    return element("svg", *parts, viewBox="-3 0 106 14", class_="strip", role="img", aria_label=text)


def confused(name: str, labels: Sequence[str], confusion: Sequence[Sequence[int]]) -> Markup:
    """A confusion matrix [true][predicted], shaded by the share of the row."""
    rows = []
    for label, counts in zip(labels, confusion, strict=True):
        total = max(1, sum(counts))
        rows.append([label, *(shaded(f"{count:,}", count / total) for count in counts)])
    columns = [Column("True"), *(Column(label, number=True) for label in labels)]
    return table(f"{name}: true labels down, predicted ones across", columns, rows)


def drawn(curve: Curve) -> Markup:
    """Points in a square from 0 to 1, joined in their order, with their ranges, and other points beside them."""
    points = [*map(_place, curve.points)]
    parts = [*_frame(named_below=bool(curve.names))]
    if curve.ideal:
        parts.append(_line("quiet", 0, 100, 100, 0))
    for (x, y), (low, high), note in _with_notes(points, curve):
        said = f"{note}: " if note else ""
        title = element("title", f"{said}{1 - y / 100:.4f} [{low:.4f}, {high:.4f}]")
        parts.append(_line("range", x, 100 - 100 * low, x, 100 - 100 * high, title))
    for kind, line in [(None, points), *(("beside", [*map(_place, beside)]) for beside in curve.beside)]:
        parts.append(element("polyline", points=" ".join(f"{x:.2f},{y:.2f}" for x, y in line), class_=kind))
    for i, (x, y) in enumerate(points):
        parts.append(element("circle", cx=f"{x:.2f}", cy=f"{y:.2f}", r="1"))
        if i < len(curve.notes):
            count = curve.notes[i].partition(" ")[0]
            above_or_below = 6 if i % 2 else -2.5  # so that neighbors' counts do not overlap
            parts.append(element("text", count, x=f"{x + 1.5:.2f}", y=f"{y + above_or_below:.2f}"))
    for (x, _), name in zip(points, curve.names, strict=False):
        parts.append(element("text", name, x=f"{x:.2f}", y="106", text_anchor="middle"))
    counts = "; the numbers count texts" if curve.notes else ""
    parts.append(element("text", f"{curve.across} →", x="0", y="114"))
    parts.append(element("text", f"↑ {curve.up}{counts}", x="-8", y="-5"))
    return element("svg", *parts, viewBox="-14 -12 122 130", class_="curve", role="img", aria_label=curve.title)


def _with_notes(
    points: Sequence[tuple[float, float]], curve: Curve
) -> Iterator[tuple[tuple[float, float], tuple[float, float], str]]:
    """The points that have a range, with it and with what is said of them."""
    for i, (point, limits) in enumerate(zip(points, curve.ranges, strict=False)):
        yield point, limits, curve.notes[i] if i < len(curve.notes) else ""


def _place(point: tuple[float, float]) -> tuple[float, float]:
    x, y = point
    return 100 * x, 100 - 100 * y


def _frame(named_below: bool) -> Iterable[Markup]:
    """Two axes from 0 to 1 with ticks; those of the lower one are left out where points have names of their own."""
    yield _line("quiet", 0, 0, 0, 100)
    yield _line("quiet", 0, 100, 100, 100)
    for tick in TICKS:
        at = 100 * tick
        yield _line("quiet", -1.5, 100 - at, 0, 100 - at)
        yield element("text", f"{tick:g}", x="-3", y=f"{101.5 - at:.1f}", text_anchor="end")
        if not named_below:
            yield _line("quiet", at, 100, at, 101.5)
            yield element("text", f"{tick:g}", x=f"{at:g}", y="106.5", text_anchor="middle")


def _line(kind: str, x1: float, y1: float, x2: float, y2: float, *title: Markup) -> Markup:
    return element("line", *title, x1=f"{x1:.2f}", y1=f"{y1:.2f}", x2=f"{x2:.2f}", y2=f"{y2:.2f}", class_=kind)
