"""Small plots for pages, as SVG with ticks on both axes."""

from collections.abc import Sequence

from bertcli.report.page import Markup, element, html

# In the picture's own units.
WIDTH, HEIGHT = 420, 220
# Room around the plane, for labels.
LEFT, RIGHT, TOP, BOTTOM = 44, 12, 10, 40
# Across; more numbers would overlap.
MOST_TICKS = 13
LINE = '<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" class="{kind}"></line>'
LABEL = '<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{text}</text>'
DOT = '<circle cx="{x:.1f}" cy="{y:.1f}" r="3.5"><title>{title}</title></circle>'
CURVE = '<polyline points="{points}"></polyline>'


def line_chart(caption: str, values: Sequence[float], across: str, up: str) -> Markup:
    """A line chart of values from 0 to 1 at x = 0, 1, 2, …, with a dot and a number for each."""
    plane_width, plane_height = WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM

    def x(position: float) -> float:
        return LEFT + plane_width * position / max(1, len(values) - 1)

    def y(value: float) -> float:
        return TOP + plane_height * (1 - value)

    shapes: list[Markup] = []
    for share in (0.0, 0.25, 0.5, 0.75, 1.0):
        height = y(share)
        shapes.append(html(LINE, x1=LEFT, y1=height, x2=WIDTH - RIGHT, y2=height, kind="grid"))
        shapes.append(html(LABEL, x=LEFT - 6, y=height + 4, anchor="end", text=f"{share:g}"))
    bottom = y(0)
    every = -(-len(values) // MOST_TICKS)
    for position in range(0, len(values), every):
        shapes.append(html(LINE, x1=x(position), y1=bottom, x2=x(position), y2=bottom + 4, kind="tick"))
        shapes.append(html(LABEL, x=x(position), y=bottom + 17, anchor="middle", text=str(position)))
    shapes.append(html(LABEL, x=LEFT + plane_width / 2, y=HEIGHT - 6, anchor="middle", text=f"{across} →"))
    points = [f"{x(position):.1f},{y(value):.1f}" for position, value in enumerate(values)]
    shapes.append(html(CURVE, points=" ".join(points)))
    for position, value in enumerate(values):
        title = f"{across} {position}: {up} {value:.4f}"
        shapes.append(html(DOT, x=x(position), y=y(value), title=title))
    picture = element("svg", *shapes, class_="plot", viewBox=f"0 0 {WIDTH} {HEIGHT}", role="img", aria_label=caption)
    return element("figure", element("figcaption", caption), picture)
