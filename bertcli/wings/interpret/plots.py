"""Small plots for pages and figures, as SVG with ticks on both axes."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from bertcli.report.page import Markup, element, html
from bertcli.wings.evaluate.report.drawing import BLUE, INK, MARGIN, FigurePart, plot
from bertcli.wings.evaluate.report.drawing import WIDTH as COLUMN

# In the picture's own units.
WIDTH, HEIGHT = 420, 220
# Room around the plane, for labels.
LEFT, RIGHT, TOP, BOTTOM = 44, 12, 10, 40
# Across; more numbers would overlap.
MOST_TICKS = 13
LINE = '<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" class="{css_class}"></line>'
LABEL = '<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{text}</text>'
DOT = '<circle cx="{x:.1f}" cy="{y:.1f}" r="3.5"><title>{title}</title></circle>'
CURVE = '<polyline points="{points}"></polyline>'
# The rules for a figure; for a page, they are in page.css.
FIGURE_STYLE = f"""
.plot text {{ font-size: 11px; }}
.plot line {{ stroke: {INK}; }}
.plot polyline {{ stroke: {BLUE}; stroke-width: 2px; fill: none; }}
.plot circle {{ fill: {BLUE}; }}
.plot .grid {{ opacity: .15; }}
"""


class _Plane(NamedTuple):
    """The part of the picture inside the axes, for values from 0 to 1 at x = 0, 1, 2, …"""

    point_count: int
    width: int = WIDTH - LEFT - RIGHT
    height: int = HEIGHT - TOP - BOTTOM

    def x(self, position: float) -> float:
        return LEFT + self.width * position / max(1, self.point_count - 1)

    def y(self, value: float) -> float:
        return TOP + self.height * (1 - value)


class LineChart(NamedTuple):
    """A line chart of values from 0 to 1 at x = 0, 1, 2, …, with a dot and a number for each."""

    caption: str
    values: Sequence[float]
    across: str
    up: str

    def drawn(self) -> Markup:
        """The chart on a page."""
        box = f"0 0 {WIDTH} {HEIGHT}"
        picture = element("svg", *self._shapes(), class_="plot", viewBox=box, role="img", aria_label=self.caption)
        return element("figure", element("figcaption", self.caption), picture)

    def part(self) -> FigurePart:
        """The chart in a figure, as wide as it."""
        return plot(self.caption, self._shapes(), (0, 0, WIDTH, HEIGHT), (COLUMN - 2 * MARGIN) / WIDTH, "plot")

    def _shapes(self) -> list[Markup]:
        plane = _Plane(len(self.values))
        shapes = [*_height_lines(plane), *_ticks_across(plane)]
        shapes.append(html(LABEL, x=LEFT + plane.width / 2, y=HEIGHT - 6, anchor="middle", text=f"{self.across} →"))
        points = [(plane.x(position), plane.y(value)) for position, value in enumerate(self.values)]
        shapes.append(html(CURVE, points=" ".join(f"{x:.1f},{y:.1f}" for x, y in points)))
        for position, (value, (x, y)) in enumerate(zip(self.values, points, strict=True)):
            shapes.append(html(DOT, x=x, y=y, title=f"{self.across} {position}: {self.up} {value:.4f}"))
        return shapes


def _height_lines(plane: _Plane) -> Iterator[Markup]:
    """Lines across the plane at five heights, each with its value on the left."""
    for share in (0.0, 0.25, 0.5, 0.75, 1.0):
        height = plane.y(share)
        yield html(LINE, x1=LEFT, y1=height, x2=WIDTH - RIGHT, y2=height, css_class="grid")
        yield html(LABEL, x=LEFT - 6, y=height + 4, anchor="end", text=f"{share:g}")


def _ticks_across(plane: _Plane) -> Iterator[Markup]:
    """Ticks and numbers below the plane, at most MOST_TICKS of them."""
    bottom = plane.y(0)
    every = -(-plane.point_count // MOST_TICKS)
    for position in range(0, plane.point_count, every):
        x = plane.x(position)
        yield html(LINE, x1=x, y1=bottom, x2=x, y2=bottom + 4, css_class="tick")
        yield html(LABEL, x=x, y=bottom + 17, anchor="middle", text=str(position))
