"""Small plots for pages, as SVG with ticks on both axes."""

from collections.abc import Sequence

from bertcli.report.page import Markup, element, html

WIDTH, HEIGHT = 420, 220  # in the picture's own units
LEFT, RIGHT, TOP, BOTTOM = 44, 12, 10, 40  # around the plane
MOST_TICKS = 13  # across
LINE = '<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" class="{kind}"></line>'
LABEL = '<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{text}</text>'
DOT = '<circle cx="{x:.1f}" cy="{y:.1f}" r="3.5"><title>{title}</title></circle>'
CURVE = '<polyline points="{points}"></polyline>'


def line_chart(caption: str, values: Sequence[float], across: str, up: str) -> Markup:
    """A line chart of values from 0 to 1 at x = 0, 1, 2, …, with a dot and a number for each."""
    plane_width, plane_height = WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM

    def x(place: float) -> float:
        return LEFT + plane_width * place / max(1, len(values) - 1)

    def y(value: float) -> float:
        return TOP + plane_height * (1 - value)

    parts: list[Markup] = []
    for share in (0.0, 0.25, 0.5, 0.75, 1.0):
        parts.append(html(LINE, x1=LEFT, y1=y(share), x2=WIDTH - RIGHT, y2=y(share), kind="grid"))
        parts.append(html(LABEL, x=LEFT - 6, y=y(share) + 4, anchor="end", text=f"{share:g}"))
    step = -(-len(values) // MOST_TICKS)
    for place in range(0, len(values), step):
        parts.append(html(LINE, x1=x(place), y1=y(0), x2=x(place), y2=y(0) + 4, kind="tick"))
        parts.append(html(LABEL, x=x(place), y=y(0) + 17, anchor="middle", text=str(place)))
    parts.append(html(LABEL, x=LEFT + plane_width / 2, y=HEIGHT - 6, anchor="middle", text=f"{across} →"))
    points = " ".join(f"{x(place):.1f},{y(value):.1f}" for place, value in enumerate(values))
    parts.append(html(CURVE, points=points))
    for place, value in enumerate(values):
        parts.append(html(DOT, x=x(place), y=y(value), title=f"{across} {place}: {up} {value:.4f}"))
    picture = element("svg", *parts, class_="plot", viewBox=f"0 0 {WIDTH} {HEIGHT}", role="img", aria_label=caption)
    return element("figure", element("figcaption", caption), picture)
