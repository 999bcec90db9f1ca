"""The figure of `bertcli evaluate`: intervals, differences, confusion matrices, curves. Its page is in page.py."""

from collections.abc import Iterator, Sequence

from bertcli.report.page import Markup
from bertcli.report.shades import HeatMap
from bertcli.wings.evaluate.bootstrap import Record
from bertcli.wings.evaluate.evaluation import Evaluation
from bertcli.wings.evaluate.outcome import Curve
from bertcli.wings.evaluate.report import drawing
from bertcli.wings.evaluate.report.drawing import (
    LABELS,
    LINE,
    NUMBERS,
    QUIET,
    FigurePart,
    heat_map,
    label,
    plot,
    sentence,
    shape,
    stacked,
)
from bertcli.wings.evaluate.report.page import (
    box_of,
    confusion_map,
    curve_shapes,
    ends_on_line,
    lead,
    many_differences,
    names_in,
)
from bertcli.wings.evaluate.report.tables import (
    DIFFERENCES,
    figures_of,
    interval,
    rows_of_differences,
    tabled,
    value,
    with_short_names,
)

STYLE = f"""
.curve line, .curve polyline {{ stroke: {drawing.INK}; stroke-width: .6; fill: none; }}
.curve text {{ font-size: 4.5px; }}
.curve .range {{ stroke: {drawing.BLUE}; stroke-width: 1.3; }}
.curve .beside {{ stroke-dasharray: 2.5 2; opacity: .7; }}
.curve .quiet {{ opacity: .35; }}
"""
# Points of a unit of a curve, whose texts are then as large as others.
UNIT = LABELS / 4.5
# In points: where the line from 0 to 1 begins and ends, where a value and its interval end, beside the figure's name.
RIGHT = drawing.WIDTH - 2 * drawing.MARGIN - 3
LEFT, VALUE, RANGE = RIGHT - 66, RIGHT - 136, RIGHT - 74


def evaluation_figure(evaluation: Evaluation, title: str) -> str:
    """Draw the figures with their intervals, of all texts and of each group; differences; each model's plots."""
    record = with_short_names(evaluation.record)
    models = record["models"]
    parts = [_intervals(models, group) for group in figures_of(models[0])]
    if record["differences"]:
        parts.append(heat_map(_differences(record)))
    for model, curve in zip(models, evaluation.curves, strict=True):
        if confusion := model.get("confusion"):
            parts.append(heat_map(confusion_map(model["model"], [row["label"] for row in model["labels"]], confusion)))
        if curve is not None:
            parts.append(curve_part(f"{model['model']}: {curve.title}", curve))
    return drawing.figure(title, parts, lead=lead(record), model=names_in(record), style=STYLE)


def curve_part(caption: str, curve: Curve) -> FigurePart:
    """A curve in a figure whose style is STYLE."""
    return plot(caption, curve_shapes(curve), box_of(curve), UNIT, "curve")


def _differences(record: Record) -> HeatMap:
    """The differences of two models without the test's name and what could have been detected; or those of several."""
    models = record["models"]
    if len(models) > 2:
        return HeatMap(*many_differences(record))
    columns, rows = tabled(DIFFERENCES[:4], [row[:4] for row in rows_of_differences(record["differences"])])
    return HeatMap(f"Differences: {models[1]['model']} less {models[0]['model']}", columns, rows)


def _intervals(models: Sequence[Record], group: str | None) -> FigurePart:
    """A row for each figure of each model: its value and interval, and both on a line from 0 to 1."""
    several = len(models) > 1
    of_models = [figures_of(model)[group] for model in models]
    has_intervals = any(figure["low"] is not None for figures in of_models for figure in figures.values())
    caption = "Figures with 95 % intervals" if has_intervals else "Figures"
    parts = [sentence(caption if group is None else f"{caption}, {group}", QUIET)]
    drawn = False
    for name in of_models[0]:
        if several:
            parts += [FigurePart(4, []), sentence(name)]
        for model, figures in zip(models, of_models, strict=True):
            if name in figures:
                named, indent = (model["model"], 6) if several else (name, 0)
                parts.append(_row(named, figures[name], indent))
                drawn = drawn or ends_on_line(figures[name]) is not None
    if drawn:
        ticks = ((0.0, "0"), (0.5, "0.5"), (1.0, "1"))
        texts = [label(text, _across(tick), NUMBERS / 2, NUMBERS, "middle") for tick, text in ticks]
        parts.append(FigurePart(LINE * NUMBERS, texts))
    return stacked(parts, 0)


def _row(name: str, figure: Record, indent: float) -> FigurePart:
    lines = drawing.folded(name, LABELS, VALUE - 28 - indent)
    height = LINE * LABELS * len(lines) + 2
    names = drawing.lines_around(lines, indent, height / 2)
    return FigurePart(height, [*names, *_interval(figure, height / 2)])


def _interval(figure: Record, middle: float) -> Iterator[Markup]:
    yield label(value(figure), VALUE, middle, anchor="end")
    yield label(interval(figure), RANGE, middle, NUMBERS, "end", fill=QUIET)
    ends = ends_on_line(figure)
    if ends is None:
        return
    yield shape("path", d=f"M{LEFT} {middle}H{RIGHT}", stroke=drawing.INK, stroke_width=0.5, opacity=0.35)
    for tick in (0.0, 0.5, 1.0):
        yield shape("path", d=f"M{_across(tick)} {middle - 2}v4", stroke=drawing.INK, stroke_width=0.5, opacity=0.35)
    low, high = ends
    yield shape("path", d=f"M{_across(low):.2f} {middle}H{_across(high):.2f}", stroke=drawing.BLUE, stroke_width=3)
    yield shape("circle", cx=_across(figure["value"]), cy=middle, r=1.7)


def _across(share: float) -> float:
    """Where a share from 0 to 1 is on the line."""
    return LEFT + share * (RIGHT - LEFT)
