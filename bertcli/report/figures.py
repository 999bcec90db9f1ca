"""Figures for papers: matplotlib's, 8.5 cm wide (a column of two), of panels below one another.

    Panel("Layer 3", 4.0, draw)  ->  figure_of([panel, ...])  ->  as_bytes(figure, ".pdf")

matplotlib is imported only when a figure is made. A figure has no sentences and no colors that are alike in grey; who
wants another look changes the Figure that a result's `figure()` returns: its axes, texts and color maps.
"""

import io
import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from logging import getLogger
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from bertcli._version import __version__
from bertcli.errors import BertcliError
from bertcli.report.charts import Curve
from bertcli.report.page import clipped
from bertcli.report.shades import HeatMap, Shaded
from bertcli.report.terminal import visible
from bertcli.report.written import COMMAND

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, FigureBase

    FigurePart: TypeAlias = FigureBase
else:
    FigurePart = Any

WIDTH = 8.5  # cm
# Letters are text in .svg and .pdf, so that they can be searched; ids in .svg do not depend on the day.
STYLE: Any = {
    "font.size": 7,
    "axes.titlesize": 7,
    "axes.labelsize": 7,
    "xtick.labelsize": 6,
    "ytick.labelsize": 6,
    "legend.fontsize": 6,
    "axes.linewidth": 0.5,
    "lines.linewidth": 1,
    "lines.markersize": 3,
    "xtick.major.width": 0.5,
    "ytick.major.width": 0.5,
    "xtick.major.size": 2,
    "ytick.major.size": 2,
    "svg.fonttype": "none",
    "svg.hashsalt": "bertcli",
    "pdf.fonttype": 42,
}
GREYS, BLUES = "Greys", "Blues"  # matplotlib's names of color maps whose lightness only falls
DARK = 0.6  # share of a color map from which numbers on it are white
LONGEST = 24  # letters of a name at an axis
DPI = 300  # of a .png file
MARKERS = "os^Dv<>P"  # of models in one panel
# Columns of a heat map whose cells have room for short and for longer texts; rows of it in cm.
MOST_NUMBERED, ROW = 14, 0.42
# Letters that have room beside one another above a matrix, and names that have it when they are upright.
ACROSS, MOST_UPRIGHT = 40, 44
logger = getLogger("bertcli")
Draw = Callable[[FigurePart], None]


class Panel(NamedTuple):
    """A part of a figure: its title, its height in cm, and what draws it."""

    title: str
    height: float
    draw: Draw


class WithFigure:
    """Base of results that have a figure."""

    def panels(self) -> Sequence[Panel]:
        """The parts of the figure."""
        raise NotImplementedError

    def figure(self) -> "Figure":
        """Draw the result with matplotlib. Errors: BertcliError where that is not installed."""
        return figure_of(self.panels())


def require_matplotlib() -> None:
    """Errors: BertcliError where matplotlib is not installed."""
    with suppress(ImportError):
        import matplotlib  # noqa: F401  # asked for alone

        return
    raise BertcliError("A figure needs matplotlib: pip install 'bertcli[figures]'.")


def figure_of(panels: Sequence[Panel]) -> "Figure":
    """Draw panels below one another."""
    require_matplotlib()
    if not panels:
        raise BertcliError("There is nothing to draw: no text was read.")
    from matplotlib import rc_context
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    heights = [panel.height for panel in panels]
    with rc_context(STYLE):
        layout = ConstrainedLayoutEngine()
        # Inches around axes, and shares of them between.
        layout.set(w_pad=0.02, h_pad=0.02, wspace=0.02, hspace=0.02)
        figure = Figure(figsize=(WIDTH / 2.54, sum(heights) / 2.54), layout=layout)
        parts = figure.subfigures(len(panels), 1, height_ratios=heights, squeeze=False)[:, 0]
        for panel, part in zip(panels, parts, strict=True):
            if panel.title:
                part.suptitle(named(panel.title, 70), fontsize=STYLE["axes.titlesize"])
            panel.draw(part)
    return figure


def as_bytes(figure: "Figure", ending: str) -> bytes:
    """A figure as the bytes of a .pdf, .svg or .png file; the same result is the same file."""
    from matplotlib import rc_context

    made_by = f"{visible(clipped(COMMAND.get()))}, bertcli {__version__}"
    metadata: Any = {
        ".pdf": {"Subject": made_by, "CreationDate": None},
        ".svg": {"Description": made_by, "Date": None},
        ".png": {"Description": made_by},
    }[ending]
    written = io.BytesIO()
    with rc_context(STYLE), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        figure.savefig(written, format=ending[1:], dpi=DPI, metadata=metadata)
    if any("missing from font" in str(one.message) for one in caught):
        logger.warning(
            "matplotlib's font lacks some of these characters: name one that has them (font.family in a matplotlibrc)."
        )
    return written.getvalue()


# --------------------------------------------------------------------------------------------------------------- parts


def named(text: str, most: int = LONGEST) -> str:
    """A text at an axis: on one line, shortened, and with signs that matplotlib would read as formulas escaped."""
    shown = visible(text)
    shown = shown if len(shown) <= most else f"{shown[: most - 1]}…"
    return shown.replace("$", r"\$")


def heat_map(heat: HeatMap, title: str = "", *, colors: str = BLUES, scale: str = "") -> Panel:
    """A heat map of `Shaded` cells, with their texts where there is room; `scale`: the name of its scale of colors.

    A shade below 0 is lighter than 0. Cells that are no `Shaded` are not drawn.
    """
    columns = [named(column.name) for column in heat.columns[1:]]
    rows = [named(row[0]) for row in heat.rows]
    shades = np.array([[cell.shade if isinstance(cell, Shaded) else np.nan for cell in row[1:]] for row in heat.rows])
    texts = [[str(cell) if isinstance(cell, Shaded) else "" for cell in row[1:]] for row in heat.rows]

    def draw(part: FigurePart) -> None:
        axes = part.subplots()
        image = matrix(axes, shades, rows, columns, colors)
        if len(columns) <= MOST_NUMBERED:
            _write_in(axes, shades, texts, image.norm, len(columns))
        if scale:
            part.colorbar(image, ax=axes, label=scale, fraction=0.05, pad=0.02)

    letters = max((len(name) for name in columns), default=0)
    return Panel(title, 1.2 + ROW * len(rows) + 0.08 * letters, draw)


def matrix(
    axes: "Axes",
    values: NDArray[Any],
    rows: Sequence[str],
    columns: Sequence[str],
    colors: str = BLUES,
    upright: bool | None = None,
) -> Any:
    """Draw a matrix [row, column] with names at both axes, the columns' above it; from 0, or below, to 1 at least.

    upright: turn the names of columns; None: where they have no room.
    """
    finite = values[np.isfinite(values)]
    low, high = min(0.0, float(finite.min(initial=0))), max(1.0, float(finite.max(initial=0)))
    image = axes.imshow(values, cmap=colors, aspect="auto", vmin=low, vmax=high, interpolation="nearest")
    upright = sum(1 + len(name) for name in columns) > ACROSS if upright is None else upright
    axes.xaxis.tick_top()
    axes.set_xticks(*_thinned(columns, MOST_UPRIGHT if upright else len(columns)), rotation=90 if upright else 0)
    axes.set_yticks(*_thinned(rows, MOST_UPRIGHT))
    axes.tick_params(length=0)
    return image


def _thinned(names: Sequence[str], most: int) -> tuple[list[int], list[str]]:
    """Positions and names of every n-th name, so that there are at most so many."""
    every = max(1, -(-len(names) // max(1, most)))
    positions = [*range(0, len(names), every)]
    return positions, [names[i] for i in positions]


def _write_in(axes: "Axes", shades: NDArray[Any], texts: Sequence[Sequence[str]], norm: Any, columns: int) -> None:
    """Write the text of each cell into it, as small as the longest one needs."""
    longest = max((len(text) for row in texts for text in row), default=1)
    size = min(6.0, 300 / max(1, columns * (longest + 1)))
    for (row, column), shade in np.ndenumerate(shades):
        if np.isfinite(shade):
            color = "white" if norm(shade) > DARK else "black"
            text = named(texts[row][column])
            axes.text(column, row, text, ha="center", va="center", fontsize=size, color=color)


def curve(drawn: Curve, title: str = "") -> Panel:
    """A curve with its intervals, the lines beside it, and axes that fit them."""

    def draw(part: FigurePart) -> None:
        axes = part.subplots()
        points = np.array([*drawn.points], np.float64).reshape(-1, 2)
        names = [*drawn.line_names, *[""] * (1 + len(drawn.beside))]
        if drawn.names:
            points[:, 0] = range(len(points))
        ends = np.array([*drawn.ranges], np.float64).reshape(-1, 2)
        if len(ends):
            below, above = np.maximum(0, np.stack([points[:, 1] - ends[:, 0], ends[:, 1] - points[:, 1]]))
            axes.errorbar(
                points[:, 0], points[:, 1], yerr=[below, above], fmt="o-", color="black", capsize=1.5, label=names[0]
            )
        else:
            axes.plot(*points.T, "o-" if len(points) <= 40 else "-", color="black", label=names[0])
        for line, name, style in zip(drawn.beside, names[1:], ("--", ":", "-.") * len(drawn.beside), strict=False):
            other = np.array([*line], np.float64).reshape(-1, 2)
            across = points[:, 0] if drawn.names else other[:, 0]
            axes.plot(across, other[:, 1], style, color="grey", label=name)
        if drawn.ideal:
            axes.plot([0, 1], [0, 1], ":", color="grey")
        if drawn.names:
            axes.set_xticks(range(len(drawn.names)), drawn.names)
        axes.set(xlabel=named(drawn.across, 60), ylabel=named(drawn.up, 60))
        if any(names):
            axes.legend(frameon=False)

    return Panel(title, 5.5, draw)


class Interval(NamedTuple):
    """A value and the ends of its interval; None where there is none."""

    value: float | None
    low: float | None
    high: float | None


def intervals(
    names: Sequence[str],
    series: Sequence[tuple[str, Sequence[Interval]]],
    across: str,
    title: str = "",
    *,
    zero: bool = False,
) -> Panel:
    """A row for each name: a point and a line for the interval of each of the series, which have markers of their own.

    zero: with a line at 0.
    """

    def draw(part: FigurePart) -> None:
        axes = part.subplots()
        if zero:
            axes.axvline(0, color="grey", linewidth=0.5)
        for number, (label, of_names) in enumerate(series):
            marker, apart = MARKERS[number % len(MARKERS)], 0.7 * ((number + 0.5) / len(series) - 0.5)
            known = [(row + apart, one) for row, one in enumerate(of_names) if one.value is not None]
            for y, one in known:
                if one.low is not None and one.high is not None:
                    axes.plot([one.low, one.high], [y, y], "-", color="grey", linewidth=1.5)
            values = [one.value for _, one in known if one.value is not None]
            axes.plot(values, [y for y, _ in known], marker, color="black", label=named(label))
        axes.set_yticks(range(len(names)), [named(name) for name in names])
        axes.set_ylim(len(names) - 0.5, -0.5)
        axes.set_xlabel(named(across, 60))
        if len(series) > 1:
            part.legend(frameon=False, loc="outside lower center", ncols=2)

    each = ROW * max(1.0, 0.6 * len(series))
    return Panel(title, 1.6 + each * len(names) + (0.4 * -(-len(series) // 2) if len(series) > 1 else 0), draw)


def bars(names: Sequence[str], values: Sequence[float], across: str) -> Panel:
    """A bar to the right or left of 0 for each name, the first on top."""

    def draw(part: FigurePart) -> None:
        axes = part.subplots()
        axes.axvline(0, color="black", linewidth=0.5)
        axes.barh(range(len(names)), values, color=["0.35" if value >= 0 else "0.7" for value in values])
        axes.set_yticks(range(len(names)), [named(name) for name in names])
        axes.set_ylim(len(names) - 0.5, -0.5)
        axes.set_xlabel(named(across, 60))

    return Panel("", 1.6 + ROW * max(1, len(names)), draw)
