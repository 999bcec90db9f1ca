"""Print table cells and texts on a ground of color in a terminal; without color, with blocks or numbers instead."""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from bertcli.report.terminal import Column, encodable, terminal_width, visible

# From light to dark.
BLOCKS = " ░▒▓█"
# Red, green and blue of the shades 1 and -1.
DARKEST, DARKEST_RED = (8, 48, 107), (103, 12, 8)


class Shaded(str):
    """A cell with its shade, from -1 (red) to 1 (blue); numbers beyond are drawn as -1 or 1.

    label: written behind it, smaller. note: more about it; on a page it appears under the pointer.
    """

    shade: float
    label: str
    note: str

    def __new__(cls, text: str, shade: float, label: str = "", note: str = "") -> "Shaded":
        cell = super().__new__(cls, text)
        cell.shade, cell.label, cell.note = shade, label, note
        return cell


class HeatMap(NamedTuple):
    """A table whose `Shaded` cells are a picture. The first cell of a row is its name."""

    caption: str
    columns: Sequence[Column]
    rows: Sequence[Sequence[str]]


def print_shades(lines: Iterable[Sequence[str]]) -> None:
    """Print lines of cells; a Shaded one has a ground of color, or, without color, a block as dark in front."""
    from rich.text import Text

    console, colored = _shading_console()
    for line in lines:
        text = Text()
        for cell in line:
            if not isinstance(cell, Shaded):
                text.append(visible(cell))
            elif colored:
                text.append(cell, _on(cell.shade))
            else:
                block = BLOCKS[min(int(abs(cell.shade) * len(BLOCKS)), len(BLOCKS) - 1)]
                text.append(encodable(f"{block}{cell.strip():>3}".rjust(len(cell))))
        console.print(text)


def fitting(widths: Sequence[float], room: float | None) -> list[list[int]]:
    """Divide columns of these widths into groups that fit into `room`: their indices, at least one a group."""
    groups: list[list[int]] = []
    left = 0.0
    for column, width in enumerate(widths):
        if not groups or (room is not None and width > left):
            groups.append([])
            left = room or 0
        groups[-1].append(column)
        left -= width
    return groups


class Mark(NamedTuple):
    """A mark on characters `start` to `end` of a text. shade: 0 to 1 speaks for a result, 0 to -1 against it.

    label: written behind the characters. title: more about the mark; on a page it appears under the pointer.
    """

    start: int
    end: int
    shade: float = 1.0
    label: str = ""
    title: str = ""


def print_marked(text: str, marks: Iterable[Mark]) -> None:
    """Print a text with marks in it, which are in order and do not overlap.

    Words are shaded, with the title of a mark that has a label behind them, if color is allowed; else every mark's
    title follows in parentheses.
    """
    from rich.text import Text

    console, colored = _shading_console()
    printed, end = Text(), 0
    for mark in marks:
        printed.append(visible(text[end : mark.start], lines=True))
        words, title = visible(text[mark.start : mark.end], lines=True), visible(mark.title)
        if colored:
            printed.append(words, _on(mark.shade))
            printed.append(f" {title}" if mark.label else "", f"bold {_on(mark.shade)}")
        else:
            printed.append(f"{words}({title})")
        end = mark.end
    printed.append(visible(text[end:], lines=True))
    width = terminal_width()
    console.print(printed, soft_wrap=width is None, width=width)


def shows_shades() -> bool:
    """True if standard output shows shades of color: 256 colors or more, and NO_COLOR is not set."""
    return _shading_console()[1]


def _shading_console() -> tuple[Any, bool]:
    """A console that prints text unchanged, and True if it can show shades."""
    from rich.console import Console

    console = Console(highlight=False, markup=False, emoji=False, soft_wrap=True)
    return console, console.color_system in ("truecolor", "256") and not console.no_color


def _on(shade: float) -> str:
    """The rich style of a shade: a ground between white and dark blue (below 0 dark red), text in white or black."""
    strength, darkest = min(1.0, abs(shade)), DARKEST if shade >= 0 else DARKEST_RED
    ground = ",".join(str(round(255 + strength * (dark - 255))) for dark in darkest)
    return f"{'white' if strength > 0.5 else 'black'} on rgb({ground})"
