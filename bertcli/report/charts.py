"""Charts that pages show inline, as SVG: curves, intervals on a line, and confusion matrices as tables.

report/figures.py draws figures for papers, with matplotlib.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from bertcli.report.intervals import written
from bertcli.report.page import HEAT, Markup, element, table
from bertcli.report.shades import HeatMap, Shaded
from bertcli.report.terminal import Column

MOST_DOTS = 40  # points of a curve that have a dot each; more of them are a line
MANY_LABELS = 6  # a confusion matrix of more has upright column names
# Of a curve's text, in the curve's own units: the width of a digit, the height of a line.
LETTER, LINE_HEIGHT = 2.9, 4.5
# Layers that have their number below a curve; more would overlap.
MOST_LAYERS = 13
ROOM_FOR_NAMES = 18  # to the right of a curve, for the names of its lines
Box = tuple[float, float, float, float]
Point = tuple[float, float]
TICKS = (0, 0.25, 0.5, 0.75, 1)
STYLE = """
.strip { width: 11rem; height: 1.6rem; vertical-align: middle; }
.curve { width: min(90vw, 26rem); max-width: 100%; height: auto; display: block; margin: .5rem 0 1.2rem; }
@media (max-width: 900px) { .strip { width: 7rem; } }
@media (min-width: 1100px) and (max-width: 1300px) { .strip { width: 9rem; } }
.strip line, .curve line, .curve polyline { stroke: currentColor; fill: none; vector-effect: non-scaling-stroke; }
.strip .range { stroke-width: 4px; stroke: rgb(var(--for)); }
.curve .range { stroke-width: 2px; stroke: rgb(var(--for)); }
.beside { stroke-dasharray: 4 3; opacity: .7; }
.quiet { opacity: .5; }
.strip circle, .curve circle { fill: currentColor; }
.curve text { fill: currentColor; font-size: 4.5px; }
.strip text { fill: currentColor; font-size: 7px; opacity: .7; }
.curve { min-width: min(100%, 18rem); }
"""


class Curve(NamedTuple):
    """A plot with both axes from 0 to 1: points, joined in this order.

    across, up: titles of the axes. ideal: draw the diagonal, on which a perfect model's points lie. names: a label
    below each point. ranges: the interval of each point's value. beside: further lines, dashed. notes: a note on each
    point. line_names: the names of all lines, where they end on the right.
    """

    title: str
    across: str
    up: str
    points: Iterable[tuple[float, float]]
    ideal: bool = False
    names: Sequence[str] = ()
    ranges: Sequence[tuple[float, float]] = ()
    beside: Sequence[Iterable[tuple[float, float]]] = ()
    notes: Sequence[str] = ()
    line_names: Sequence[str] = ()


def by_layer(
    title: str,
    up: str,
    values: Sequence[float],
    *,
    ranges: Sequence[tuple[float, float]] = (),
    beside: Sequence[Sequence[float]] = (),
    line_names: Sequence[str] = (),
) -> Curve:
    """A curve of a value for each state, from 0 (the embeddings) on."""
    last, every = max(1, len(values) - 1), -(-len(values) // MOST_LAYERS)
    across = [layer / last for layer in range(len(values))]
    return Curve(
        title=title,
        across="layer (0: embeddings)",
        up=up,
        points=list(zip(across, values, strict=True)),
        names=["" if layer % every else str(layer) for layer in range(len(values))],
        ranges=ranges,
        beside=[list(zip(across, heights, strict=True)) for heights in beside],
        line_names=line_names,
    )


def strip(value: float | None, low: float | None, high: float | None, text: str) -> Markup | str:
    """A figure on a line from 0 to 1 with its interval, if it has one; nothing for figures that go beyond.

    text: the figure, for readers that show no picture.
    """
    ends = ends_on_line(value, low, high)
    if value is None or ends is None:
        return ""
    shapes = [element("line", x1="0", x2="100", y1="4", y2="4", class_="quiet")]
    for tick in (0, 50, 100):
        shapes.append(element("line", x1=f"{tick}", x2=f"{tick}", y1="2.5", y2="5.5", class_="quiet"))
    if low is not None:
        first, last = ends
        shapes.append(element("line", x1=f"{100 * first:.2f}", x2=f"{100 * last:.2f}", y1="4", y2="4", class_="range"))
    shapes.append(element("circle", cx=f"{100 * value:.2f}", cy="4", r="2"))
    for tick, label, anchor in ((0, "0", "start"), (50, "0.5", "middle"), (100, "1", "end")):
        shapes.append(element("text", label, x=f"{tick}", y="13", text_anchor=anchor))
    return element("svg", *shapes, viewBox="-3 0 106 14", class_="strip", role="img", aria_label=text)


def ends_on_line(value: float | None, low: float | None, high: float | None) -> tuple[float, float] | None:
    """The ends of a figure's interval, or its value twice if it has none; None if one is not from 0 to 1."""
    if value is None:
        return None
    first, last = (value, value) if low is None or high is None else (low, high)
    return (first, last) if 0 <= value <= 1 and 0 <= first <= last <= 1 else None


def confused(name: str, labels: Sequence[str], confusion: Sequence[Sequence[int]]) -> Markup:
    """A confusion matrix [true][predicted], shaded by the share of the row."""
    style = f"{HEAT} upright" if len(labels) > MANY_LABELS else HEAT
    return table(*confusion_map(name, labels, confusion), style)


def confusion_map(name: str, labels: Sequence[str], confusion: Sequence[Sequence[int]]) -> HeatMap:
    """A confusion matrix [true][predicted] as a heat map, shaded by the share of the row."""
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


def charted(curve: Curve) -> Markup:
    """A curve below its title."""
    return element("figure", element("figcaption", curve.title), drawn(curve))


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
        shown = written({"value": 1 - y / 100, "low": low, "high": high})
        title = element("title", f"{note}{shown.together}")
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
