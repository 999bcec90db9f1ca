"""The page of `bertcli evaluate`: figures with their intervals, confusion matrix, curves, worst cases.

figure.py draws its plots for a paper.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

from bertcli.report.page import HEAT, Markup, element, page, side_by_side, table
from bertcli.report.shades import HeatMap, Shaded
from bertcli.report.tables import Row
from bertcli.report.terminal import Column
from bertcli.wings.evaluate import provenance
from bertcli.wings.evaluate.bootstrap import Record
from bertcli.wings.evaluate.comparison import p_of
from bertcli.wings.evaluate.evaluation import Evaluation
from bertcli.wings.evaluate.figures import explanation
from bertcli.wings.evaluate.outcome import Curve
from bertcli.wings.evaluate.report.tables import (
    DIFFERENCES,
    INTERVAL,
    OF_LABELS,
    below,
    figure_with_interval,
    figures_of,
    interval,
    label_rows_have_intervals,
    rows_of_differences,
    rows_of_labels,
    tabled,
    value,
    what_is_missing,
    with_short_names,
)

MOST_DOTS = 40  # points of a curve that have a dot each; more of them are a line
MANY_LABELS = 6  # a confusion matrix of more has upright column names
# Of a curve's text, in the curve's own units: the width of a digit, the height of a line.
LETTER, LINE_HEIGHT = 2.9, 4.5
ROOM_FOR_NAMES = 18  # to the right of a curve, for the names of its lines
Box = tuple[float, float, float, float]
Point = tuple[float, float]
TICKS = (0, 0.25, 0.5, 0.75, 1)
STYLE = """
.strip { width: 11rem; height: 1.6rem; vertical-align: middle; }
.curve { width: min(90vw, 26rem); height: auto; display: block; margin: .5rem 0 1.2rem; }
@media (max-width: 900px) { .strip { width: 7rem; } }
@media (min-width: 1100px) and (max-width: 1300px) { .strip { width: 9rem; } }
.strip line, .curve line, .curve polyline { stroke: currentColor; fill: none; vector-effect: non-scaling-stroke; }
.strip .range { stroke-width: 4px; stroke: rgb(var(--for)); }
.curve .range { stroke-width: 2px; stroke: rgb(var(--for)); }
.beside { stroke-dasharray: 4 3; opacity: .7; }
.quiet { opacity: .35; }
.strip circle, .curve circle { fill: currentColor; }
.curve text { fill: currentColor; font-size: 4.5px; }
.strip text { fill: currentColor; font-size: 7px; opacity: .7; }
.curve { min-width: min(100%, 18rem); }
figcaption { margin-top: .5rem; }
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
    """Draw the page: figures, differences and groups on the left; what they mean, labels and pictures on the right."""
    record = with_short_names(evaluation.record)
    models = record["models"]
    left = [table("Figures", *tabled(COLUMNS, [*_rows_of_figures(models, None)]))]
    if record["differences"]:
        left.append(_differences(record))
    if groups := [name for name in figures_of(models[0]) if name is not None]:
        rows = [row for group in groups for row in _rows_of_figures(models, group)]
        left.append(table("By group", *tabled(COLUMNS, rows)))
    right = [_explained(models, record["task"])]
    if labels := [*rows_of_labels(models)]:
        # Groups are the longer table: where there are some, labels stand on the other side.
        (right if groups else left).append(table("By label", *_label_table(models, labels)))
    for model, curve in zip(models, evaluation.curves, strict=True):
        right += _pictures(model, curve)
    # With groups there are many reasons why something is missing: they stand below what is there.
    missing = [*what_is_missing(models)]
    content = [element("p", sentence) for sentence in below(evaluation) if sentence not in missing]
    content.append(side_by_side(left, right, even=True))
    content += [element("p", sentence) for sentence in missing]
    content += [_worst(model, record["data"]) for model in models if model["worst"]]
    # The command is in the page's head.
    source = [element("p", line) for line in provenance.sentences(record, with_command=False)]
    content.append(element("div", *source, class_="source"))
    return page(title, *content, lead=lead(record), model=names_in(record), style=STYLE)


def lead(record: Record) -> str:
    """Say in a few sentences what the figures show, and what they do not."""
    measured, neither = "Each figure is measured on these texts. ", "It does not show"
    if figure_with_interval(record) is not None:
        measured += "Its interval is the range in which the figure on all texts of this kind plausibly lies. "
        neither = "Neither shows"
    return (
        f"{measured}{neither} whether these texts resemble those that the model will see, nor whether their labels are "
        "right."
    )


def names_in(record: Record) -> str:
    """The names of the models, each once."""
    return ", ".join(dict.fromkeys(model["name"] for model in record["provenance"]["models"]))


def _rows_of_figures(models: Sequence[Record], group: str | None) -> Iterator[Row]:
    """A row for each figure of each model, of all texts (None) or of a group."""
    for name in figures_of(models[0])[group]:
        for model in models:
            figure = figures_of(model)[group].get(name)
            if figure is not None:
                cells = value(figure), interval(figure), f"{figure['n']:,}", strip(figure)
                yield group, name, model["model"], *cells


def _explained(models: Sequence[Record], task: str) -> Markup:
    """The meaning of each figure, in a line; figures with one meaning share it."""
    names_of: dict[str, list[str]] = {}
    for name in dict.fromkeys(name for model in models for name in model["metrics"]):
        names_of.setdefault(explanation(name, task), []).append(name)
    rows = [[_together(names), meaning] for meaning, names in names_of.items()]
    return table("What the figures are", [Column("Figure"), Column("Meaning")], rows)


def _together(names: Sequence[str]) -> str:
    """Names of figures with one meaning: "ndcg@K" for those at several ranks, else all of them."""
    kinds = {name.partition("@")[0] for name in names}
    at_ranks = all(name.partition("@")[2].isdecimal() for name in names)
    return f"{kinds.pop()}@K" if at_ranks and len(kinds) == 1 and len(names) > 1 else ", ".join(names)


def _differences(record: Record) -> Markup:
    """The differences of two models, or of several from the first."""
    models = record["models"]
    if len(models) > 2:
        return table(*many_differences(record))
    caption = f"Differences: {models[1]['model']} less {models[0]['model']}"
    return table(caption, *tabled(DIFFERENCES, [*rows_of_differences(record["differences"])]))


def many_differences(record: Record) -> tuple[str, list[Column], list[list[str]]]:
    """All differences from the first model, with Holm's p."""
    columns = [
        Column("Model"),
        *(Column(name, number=name != "Figure") for name in ("Figure", "Less the first", INTERVAL, "p (Holm)")),
    ]
    rows: list[Row] = []
    for one in record["differences"]:
        p = "" if one["p"] is None else p_of(one["p_holm"])
        rows.append((one["b"], one["metric"], value(one, "+.4f"), interval(one, "+.4f"), p))
    return f"Differences from {record['models'][0]['model']}", *tabled(columns, rows)


def _label_table(models: Sequence[Record], rows: Sequence[Row]) -> tuple[list[Column], list[list[str]]]:
    """The table of labels; where recall is a share of independent texts, its interval stands behind it.

    What texts were found as is left out where the confusion matrix shows it.
    """
    labels = [label for model in models for label in model.get("labels", [])]
    if any(model.get("confusion") for model in models):
        rows = [(*row[:-1], "") for row in rows]
    if not label_rows_have_intervals(labels):
        return tabled(OF_LABELS, rows)
    at = 1 + next(i for i, column in enumerate(OF_LABELS) if column.name == "Recall")
    columns = [*OF_LABELS[:at], Column(INTERVAL, number=True), *OF_LABELS[at:]]
    wider: list[Row] = []
    for row, label in zip(rows, labels, strict=True):
        recall = {"value": label["recall"], "low": label["recall_low"], "high": label["recall_high"]}
        wider.append((*row[:at], interval(recall), *row[at:]))
    return tabled(columns, wider)


def _pictures(model: Record, curve: Curve | None) -> Iterator[Markup]:
    """The confusion matrix and the curve of a model, where it has them."""
    name = model["model"]
    if confusion := model.get("confusion"):
        yield confused(name, [row["label"] for row in model["labels"]], confusion)
    if curve is not None:
        yield element("figure", element("figcaption", f"{name}: {curve.title}"), drawn(curve))


def _worst(model: Record, file: str) -> Markup:
    """The texts on which a model did worst; their places without the name of the one data file."""
    columns = [Column(key.replace("_", " ").capitalize(), optional=True) for key in model["worst"][0]]
    rows: list[Row] = []
    for case in model["worst"]:
        place, *others = case.values()
        rows.append((place.removeprefix(f"{file}, ").removeprefix(f"{file}/"), *others))
    return table(f"The worst cases of {model['model']}", *tabled(columns, rows), wide=True)


# ------------------------------------------------------------------------------------------------------------ pictures


def strip(figure: Record) -> Markup | str:
    """A figure on a line from 0 to 1 with its interval; nothing for figures that go beyond."""
    ends = ends_on_line(figure)
    if ends is None:
        return ""
    low, high = ends
    shapes = [element("line", x1="0", x2="100", y1="4", y2="4", class_="quiet")]
    for tick in (0, 50, 100):
        shapes.append(element("line", x1=f"{tick}", x2=f"{tick}", y1="2.5", y2="5.5", class_="quiet"))
    if figure["low"] is not None:
        shapes.append(element("line", x1=f"{100 * low:.2f}", x2=f"{100 * high:.2f}", y1="4", y2="4", class_="range"))
    shapes.append(element("circle", cx=f"{100 * figure['value']:.2f}", cy="4", r="2"))
    for tick, label, anchor in ((0, "0", "start"), (50, "0.5", "middle"), (100, "1", "end")):
        shapes.append(element("text", label, x=f"{tick}", y="13", text_anchor=anchor))
    text = f"{value(figure)} {interval(figure)}"
    return element("svg", *shapes, viewBox="-3 0 106 14", class_="strip", role="img", aria_label=text)


def ends_on_line(figure: Record) -> tuple[float, float] | None:
    """The ends of a figure's interval, or its value twice if it has none; None if one is not from 0 to 1."""
    point = figure["value"]
    if point is None:
        return None
    low, high = (point, point) if figure["low"] is None else (figure["low"], figure["high"])
    return (low, high) if 0 <= point <= 1 and 0 <= low <= high <= 1 else None


def confused(name: str, labels: Sequence[str], confusion: Sequence[Sequence[int]]) -> Markup:
    """A confusion matrix [true][predicted], shaded by the share of the row."""
    style = f"{HEAT} upright" if len(labels) > MANY_LABELS else HEAT
    return table(*confusion_map(name, labels, confusion), style)


def confusion_map(name: str, labels: Sequence[str], confusion: Sequence[Sequence[int]]) -> HeatMap:
    """The matrix of `confused`, for pages and figures."""
    rows = []
    for label, counts in zip(labels, confusion, strict=True):
        total = max(1, sum(counts))
        rows.append([label, *(Shaded(f"{count:,}", count / total) for count in counts)])
    columns = [Column("True"), *(Column(label) for label in labels)]
    return HeatMap(f"{name}: confusion matrix, true labels down, predicted ones across", columns, rows)


def drawn(curve: Curve) -> Markup:
    """Points in a square from 0 to 1, joined in their order, with their ranges, and other points beside them."""
    box = " ".join(map(str, box_of(curve)))
    return element("svg", *curve_shapes(curve), viewBox=box, class_="curve", role="img", aria_label=curve.title)


def box_of(curve: Curve) -> tuple[int, int, int, int]:
    """What a curve takes in its own units: left, top, width, height."""
    return -14, -12, 122 + (ROOM_FOR_NAMES if curve.line_names else 0), 130


def curve_shapes(curve: Curve) -> list[Markup]:
    """The shapes of a curve: frame, points, ranges, lines, texts."""
    points = [*map(_in_picture, curve.points)]
    other_lines = [[*map(_in_picture, line)] for line in curve.beside]
    shapes = [*_frame(named_below=bool(curve.names))]
    if curve.ideal:
        shapes.append(_line("quiet", 0, 100, 100, 0))
    shapes += _ranges(points, curve)
    shapes.append(_polyline(points))
    shapes += [_polyline(line, "beside") for line in other_lines]
    if len(points) <= MOST_DOTS:
        shapes += [element("circle", cx=f"{x:.2f}", cy=f"{y:.2f}", r="1") for x, y in points]
    shapes += _labels(points, other_lines, curve)
    counted = "; the numbers count texts" if curve.notes else ""
    shapes.append(element("text", f"{curve.across} →", x="0", y="114"))
    shapes.append(element("text", f"↑ {curve.up}{counted}", x="-8", y="-5"))
    return shapes


def _ranges(points: Sequence[Point], curve: Curve) -> Iterator[Markup]:
    """A line for the interval of each point that has one; its title has the numbers."""
    for i, ((x, y), (low, high)) in enumerate(zip(points, curve.ranges, strict=False)):
        if low == high:
            continue  # the figure has no interval
        note = f"{curve.notes[i]}: " if i < len(curve.notes) else ""
        title = element("title", f"{note}{1 - y / 100:.4f} [{low:.4f}, {high:.4f}]")
        yield _line("range", x, 100 - 100 * low, x, 100 - 100 * high, title)


def _labels(points: Sequence[Point], other_lines: Sequence[Sequence[Point]], curve: Curve) -> Iterator[Markup]:
    """Counts beside the points, names below them, and the names of lines where they end on the right."""
    counts = [note.partition(" ")[0] for note in curve.notes]
    for count, (x, y) in zip(counts, _beside_points(points, counts), strict=True):
        yield element("text", count, x=f"{x:.2f}", y=f"{y:.2f}")
    for (x, _), name in zip(points, curve.names, strict=False):
        yield element("text", name, x=f"{x:.2f}", y="106", text_anchor="middle")
    ends = [line[-1][1] for line in (points, *other_lines)]
    for name, y in zip(curve.line_names, _spaced(ends), strict=False):
        yield element("text", name, x="102", y=f"{y + 1.5:.2f}")


def _polyline(points: Sequence[Point], style: str | None = None) -> Markup:
    return element("polyline", points=" ".join(f"{x:.2f},{y:.2f}" for x, y in points), class_=style)


def _spaced(heights: Sequence[float]) -> list[float]:
    """Heights of texts, each near its own, a line's height from one another."""
    order = sorted(range(len(heights)), key=lambda i: heights[i])
    placed = list(heights)
    for above, i in pairwise(order):
        placed[i] = max(placed[i], placed[above] + LINE_HEIGHT)
    return placed


def _beside_points(points: Sequence[Point], labels: Sequence[str]) -> Iterator[Point]:
    """The positions of labels: each beside its point, clear of other labels and points as far as there is room."""
    taken = [(x - 1, y - 1, x + 1, y + 1) for x, y in points]
    for (x, y), label in zip(points, labels, strict=False):
        width = LETTER * len(label)
        right_of_point, left_of_point = x + 1.5, x - 1.5 - width
        # Above and below the point on either side first, then lines further away.
        begins = [(left, base) for left in (right_of_point, left_of_point) for base in (y - 1, y + 5)]
        for step in (-2, 2, -3, 3):
            begins += [(left, y + step * LINE_HEIGHT) for left in (right_of_point, left_of_point)]
        boxes = [(left, base - 4, left + width, base) for left, base in begins]
        clear = (box for box in boxes if not any(_overlap(box, other) for other in taken))
        box = next(clear, boxes[0])
        taken.append(box)
        left, _, _, base = box
        yield left, base


def _overlap(a: Box, b: Box) -> bool:
    """True if two boxes (left, top, right, bottom) overlap."""
    return a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]


def _in_picture(point: Point) -> Point:
    """A point in the units of the picture, whose y axis points down: both axes go from 0 to 100."""
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


def _line(style: str, x1: float, y1: float, x2: float, y2: float, *title: Markup) -> Markup:
    return element("line", *title, x1=f"{x1:.2f}", y1=f"{y1:.2f}", x2=f"{x2:.2f}", y2=f"{y2:.2f}", class_=style)
