"""Figures: the plots of a view in one SVG file, for papers and slides, as wide as a column of two (8.5 cm).

    figure("Logit lens", [heat_map(map), marked_words(text, marks)], lead="What it shows.")

A unit is a point (1/72 inch). Texts stay texts, of 5.4 to 8 points, in whichever of the fonts FONTS the reader has. How
wide one is can only be estimated: with Helvetica's widths, which Arial and Liberation Sans share, and to which a reader
with another font is asked to fit it; a letter of another script counts as a broad one of these, an ideograph as an em.
Plots stand below one another. What is wider than the column is turned upright, and then goes on below.
"""

import re
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import NamedTuple
from unicodedata import bidirectional, category, combining, east_asian_width, normalize

from bertcli._version import __version__
from bertcli.report.page import Markup, clipped, element
from bertcli.report.shades import HeatMap, Mark, Shaded, fitting
from bertcli.report.terminal import visible
from bertcli.report.written import COMMAND

FONTS = "Helvetica, Arial, Liberation Sans, sans-serif"
# In points: the width of a figure, the sizes of texts, the space between plots, and that around the whole.
WIDTH, WORDS, LABELS, NUMBERS, GAP, MARGIN = 241.0, 8.0, 7.0, 6.0, 9.0, 3.0
LINE = 1.25  # of a text's size
HALF = (WIDTH - 2 * MARGIN - GAP) / 2  # the width of each of two parts beside one another
INK, QUIET = "#1b1b1f", "#5c5c66"
# Of the shades 1 and -1, as on a page; a shade of 0 is white.
FOR, AGAINST = (88, 160, 222), (236, 120, 98)
PAD, BESIDE = 1.5, 2.0  # between a ground of color and its text: in a heat map, and beside the words of a text
# Of a heat map: the widest name of a row, the longest one of a column that is upright, the longest text of a cell; a
# column of upright numbers, and one that needs not be wider where there is room.
WIDEST_NAME, LONGEST_NAME, LONGEST, UPRIGHT, ROOMY = 72.0, 110.0, 80.0, 9.5, 22.0
# Characters by their widths in Helvetica, in em.
WIDTHS = {
    0.23: "'ijl", 0.28: " !,./:;I[\\]ft|", 0.34: "()-`r{}", 0.4: '"*', 0.48: "^", 0.5: "cksvxyzJ",
    0.56: "#$0123456789?L_abdeghnopqu", 0.59: "+<=>~", 0.62: "FTZ", 0.67: "&ABEKPSVXY", 0.73: "CDHNRUw",
    0.78: "GOQ", 0.84: "Mm", 0.89: "%", 0.95: "W", 1.02: "@…—→",
}  # fmt: skip
WIDTH_OF = {character: width for width, characters in WIDTHS.items() for character in characters}
OTHER, IDEOGRAPH = 0.7, 1.0  # em
# A long name may be folded after these.
PARTS = re.compile(r"(?<=[.\-_/])(?=\w)")


def ground(shade: float) -> str:
    """The color of a ground of this shade, from -1 to 1, as a page in daylight has it."""
    strength = min(1.0, abs(shade))
    full = AGAINST if shade < 0 else FOR
    return "#" + "".join(f"{round(255 + strength * (color - 255)):02x}" for color in full)


BLUE = ground(1)  # of lines


# Left, top, width, height.
Box = tuple[float, float, float, float]


class FigurePart(NamedTuple):
    """A part of a figure: its shapes, from (0, 0) on, and its height in points."""

    height: float
    shapes: Sequence[Markup]


def figure(
    title: str, parts: Sequence[FigurePart], *, lead: str, model: str = "", text: str = "", style: str = ""
) -> str:
    """A whole figure: an SVG document of parts below one another. Programs show `title`, and read out what follows.

    lead: what it shows and does not show. `model` and `text` are what it is about. style: the rules of CSS for the
    shapes in it that have a class. Nothing in it is of the day: the same result is the same file.
    """
    shapes = []
    y = MARGIN
    for part in parts:
        shapes.append(element("g", *part.shapes, transform=f"translate({_number(MARGIN)} {_number(y)})"))
        y += part.height + GAP
    width, height = WIDTH, max(y - GAP, MARGIN) + MARGIN
    about = [lead, f"{model}: “{clipped(text)}”" if text else model, clipped(COMMAND.get()), f"bertcli {__version__}"]
    return element(
        "svg",
        element("title", title),
        element("desc", "\n".join(filter(None, about))),
        *([element("style", style.strip())] if style else []),
        shape("rect", width=width, height=height, fill="#fff"),
        *shapes,
        xmlns="http://www.w3.org/2000/svg",
        width=f"{_number(width)}pt",
        height=f"{_number(height)}pt",
        viewBox=f"0 0 {_number(width)} {_number(height)}",
        role="img",
        fill=INK,
        font_family=FONTS,
    )


def shape(name: str, *content: str, **attributes: str | float | None) -> Markup:
    """An element of SVG; numbers are written with two decimals at most."""
    texts = {key: _number(value) if isinstance(value, float | int) else value for key, value in attributes.items()}
    return element(name, *content, **texts)


def _number(value: float) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".")


# --------------------------------------------------------------------------------------------------------------- texts


def text_width(text: str, size: float) -> float:
    """About how wide a text of this size is, in points."""
    return size * sum(map(_em, normalize("NFD", visible(text))))


def _em(character: str) -> float:
    if character in WIDTH_OF:
        return WIDTH_OF[character]
    if category(character) in ("Mn", "Me", "Cf"):
        return 0.0  # it stands on, or joins, its neighbors
    return IDEOGRAPH if east_asian_width(character) in "WF" or ord(character) > 0xFFFF else OTHER


def shortened(text: str, size: float, room: float) -> str:
    """A text in so many points; what does not fit is replaced by …."""
    if text_width(text, size) <= room:
        return text
    while text and text_width(f"{text}…", size) > room:
        text = text[:-1]
    return f"{text}…"


def label(text: str, x: float, y: float, size: float = LABELS, anchor: str = "start", **more: str | None) -> Markup:
    """A text in the middle of the height y; it begins, ends or has its middle at x.

    If its width is known it is asked for, so that a reader with a wider font than Helvetica sets it narrower.
    """
    if len(text) > 1 and all(letter in WIDTH_OF or combining(letter) for letter in normalize("NFD", text)):
        more |= {"textLength": _number(text_width(text, size)), "lengthAdjust": "spacingAndGlyphs"}
    return shape("text", text, x=x, y=y + 0.35 * size, font_size=size, text_anchor=anchor, **more)


def upright(text: str, x: float, y: float, size: float = LABELS, anchor: str = "start") -> Markup:
    """A text that is read from below, in the middle of the width x; it begins or has its middle at y."""
    return label(text, x, y, size, anchor, transform=f"rotate(-90 {_number(x)} {_number(y)})")


def sentence(text: str, color: str = INK) -> FigurePart:
    """A text in as many lines as it takes."""
    # A text that is written from the right begins there.
    x, direction = (WIDTH - 2 * MARGIN, "rtl") if _is_from_right(text) else (0.0, None)
    lines = folded(text, LABELS, WIDTH - 2 * MARGIN)
    height = LINE * LABELS
    shapes = [label(line, x, height * (i + 0.5), fill=color, direction=direction) for i, line in enumerate(lines)]
    return FigurePart(height * len(lines), shapes)


def folded(text: str, size: float, room: float) -> list[str]:
    """The lines of a text: broken between its words or the parts of a name, and within those longer than a line."""
    lines = [""]
    for word in text.split():
        gap = " " if lines[-1] else ""
        for part in PARTS.split(word):
            if text_width(lines[-1] + gap + part, size) <= room:
                lines[-1] += gap + part
            else:
                if lines[-1]:
                    lines.append("")
                for character in part:
                    if text_width(lines[-1] + character, size) > room:
                        lines.append("")
                    lines[-1] += character
            gap = ""
    return lines


def _is_from_right(text: str) -> bool:
    """True if the first letter with a direction is one of a script that is written from the right."""
    return _direction(text) == "R"


def _direction(text: str) -> str | None:
    """R or L for a text's first letter with a direction; None without one."""
    for character in text:
        if (direction := bidirectional(character)) in ("L", "R", "AL"):
            return "L" if direction == "L" else "R"
    return None


# -------------------------------------------------------------------------------------------------------- marked texts


class _Piece(NamedTuple):
    """Some characters that stand together on a line, and the number below them; shade: None without a ground."""

    text: str
    shade: float | None = None
    note: str = ""

    @property
    def width(self) -> float:
        if self.shade is None:
            return text_width(self.text, WORDS)
        return max(text_width(self.text, WORDS), text_width(self.note, NUMBERS)) + 2 * BESIDE


def marked_words(text: str, marks: Sequence[Mark]) -> FigurePart:
    """A text whose marks have a ground of color, and below it their titles; lines break where there are spaces."""
    from_right = _is_from_right(text)
    room = WIDTH - 2 * MARGIN
    notes = any(mark.title for mark in marks)
    height = LINE * WORDS + (LINE * NUMBERS if notes else 0) + 2
    shapes: list[Markup] = []
    lines = [*_lines_of(_pieces(text, marks), room)]
    for i, line in enumerate(lines):
        x = room - sum(piece.width for piece in line) if from_right else 0.0
        for piece, direction in _in_sight(line, "R" if from_right else "L"):
            shapes += _placed(piece, x, i * height, direction)
            x += piece.width
    return FigurePart(height * len(lines), shapes)


def _placed(piece: _Piece, x: float, y: float, direction: str) -> Iterator[Markup]:
    middle, height = x + piece.width / 2, LINE * WORDS
    if piece.shade is not None:
        width = piece.width - PAD / 2
        yield shape("rect", x=x + PAD / 4, y=y, width=width, height=height, rx=1.5, fill=ground(piece.shade))
    if not piece.text.isspace():
        turned = "rtl" if direction == "R" else None
        yield label(piece.text, middle, y + height / 2, WORDS, "middle", direction=turned)
    if piece.note:
        yield label(piece.note, middle, y + height + LINE * NUMBERS / 2, NUMBERS, "middle", fill=QUIET)


def _pieces(text: str, marks: Sequence[Mark]) -> Iterator[_Piece]:
    """The pieces of a text in order: marks, words and spaces."""
    done = 0
    for mark in (*marks, Mark(len(text), len(text))):
        for part in re.findall(r"\n|[^\S\n]+|\S+", text[done : mark.start]):
            yield _Piece(part)
        if mark.start < mark.end:
            yield _Piece(text[mark.start : mark.end], mark.shade, mark.title)
        done = mark.end


def _lines_of(pieces: Iterator[_Piece], room: float) -> Iterator[list[_Piece]]:
    """Divide pieces into lines. A line ends at a space, or within what is wider than a line."""
    line: list[_Piece] = []
    used = 0.0
    for is_space, group in groupby(pieces, key=lambda piece: piece.text.isspace()):
        word = [*group]
        if not is_space and line and used + sum(piece.width for piece in word) > room:
            yield line
            line, used = [], 0.0
        for part in (part for piece in word for part in _cut(piece, room)):
            if part.text == "\n" or (line and not is_space and used + part.width > room):
                yield line
                line, used = [], 0.0
            if part.text != "\n":
                line.append(part)
                used += part.width
    yield line


def _cut(piece: _Piece, room: float) -> Iterator[_Piece]:
    """A piece, or, of one that is wider than a line, its parts."""
    if piece.width <= room:
        yield piece
        return
    for i, part in enumerate(folded(piece.text, WORDS, room - 2 * BESIDE)):
        yield piece._replace(text=part, note="" if i else piece.note)


def _in_sight(line: Sequence[_Piece], base: str) -> list[tuple[_Piece, str]]:
    """The pieces of a line from left to right, each with its direction: what Unicode's algorithm does with letters."""
    directions = [_direction(piece.text) for piece in line]
    resolved = []
    for i, direction in enumerate(directions):
        before = next((each for each in reversed(directions[:i]) if each), base)
        after = next((each for each in directions[i:] if each), base)
        resolved.append(direction or (before if before == after else base))
    order: list[tuple[_Piece, str]] = []
    for direction, group in groupby(zip(line, resolved, strict=True), key=lambda each: each[1]):
        run = [*group]
        order += run if direction == base else reversed(run)
    return order if base == "L" else order[::-1]


# ----------------------------------------------------------------------------------------------------------- heat maps


def heat_map(drawn: HeatMap) -> FigurePart:
    """A table whose `Shaded` cells have a ground of color. Columns that do not fit follow below.

    The columns of a picture have one width, and may be turned; those of a table with other cells have their own.
    """
    first = max(text_width(text, LABELS) for text in (drawn.columns[0].name, *(row[0] for row in drawn.rows))) + 2 * PAD
    first = min(WIDEST_NAME, first)
    is_picture = all(isinstance(cell, Shaded) or not cell for row in drawn.rows for cell in row[1:])
    grids = [_Grid(drawn, first, *form) for form in ((False, False), (False, True), (True, True))]
    if any(_is_from_right(cell) for row in drawn.rows for cell in row[1:]):
        # In one line with it, the label would stand before such a word, or within it.
        del grids[0]
    grids = [grid.with_widths(even=is_picture) for grid in grids]
    fits = (grid for grid in grids if sum(grid.widths) <= grid.room)
    turned = _Grid(drawn, first, True, False, cells_upright=True).with_widths(even=True)
    grid = next(fits, turned if is_picture else grids[0])
    return stacked([sentence(drawn.caption, QUIET), *map(grid.part, grid.divided(even=is_picture))])


class _Grid(NamedTuple):
    """A heat map in one of its forms.

    first: the width of its rows' names. labels_below: the label of a cell stands below it, not behind it. widths: of
    the other columns.
    """

    drawn: HeatMap
    first: float
    names_upright: bool
    labels_below: bool
    widths: Sequence[float] = ()
    cells_upright: bool = False

    @property
    def room(self) -> float:
        """The width that is left for the other columns."""
        return WIDTH - 2 * MARGIN - self.first

    def with_widths(self, even: bool) -> "_Grid":
        """The same with the widths that its texts need; even: all are as wide as the widest, or wider, up to ROOMY."""
        widths = [self._width(i) for i in range(1, len(self.drawn.columns))]
        if even and widths:
            # A little less than all the room, so that their sum is not rounded to more than that.
            widest = max(max(widths), min(ROOMY, self.room / len(widths) - 0.01))
            widths = [widest] * len(widths)
        return self._replace(widths=widths)

    def divided(self, even: bool) -> list[list[int]]:
        """The columns in groups that fit into the room; even: of about as many."""
        groups = fitting(self.widths, self.room)
        count = len(self.widths)
        if even and groups:
            most = -(-count // len(groups))
            groups = [[*range(count)][first : first + most] for first in range(0, count, most)]
        return [[1 + i for i in group] for group in groups]

    def _width(self, i: int) -> float:
        """The width that a column needs."""
        if self.cells_upright:
            return UPRIGHT
        lines = (line for row in self.drawn.rows for line in self._texts(row[i]))
        widest = max((text_width(line, NUMBERS) for line in lines), default=0.0)
        if not self.names_upright:
            words = (text_width(word, LABELS) for word in self.drawn.columns[i].name.split())
            widest = max(widest, min(LONGEST, max(words, default=0.0)))
        return max(UPRIGHT, widest + 2 * PAD)

    def _texts(self, cell: str) -> list[str]:
        """The lines of a cell; the rest of a very long word is in its title."""
        lines = [cell]
        if isinstance(cell, Shaded) and cell.label:
            lines = [cell, cell.label] if self.labels_below else [f"{cell} {cell.label}"]
        return [shortened(line, NUMBERS, LONGEST) for line in lines if line]

    def part(self, columns: Sequence[int]) -> FigurePart:
        """Draw these columns, beside the names of the rows."""
        lefts = [self.first + sum(self.widths[columns[0] - 1 : i - 1]) for i in columns]
        y, shapes = self._names(columns, lefts)
        for row in self.drawn.rows:
            lines = folded(row[0], LABELS, self.first - PAD)
            height = max(self._cell_height(), LINE * LABELS * len(lines) + PAD)
            shapes += lines_around(lines, 0, y + height / 2)
            for i, left in zip(columns, lefts, strict=True):
                shapes += self._cell(row[i], left, y, self.widths[i - 1], height)
            y += height
        return FigurePart(y, shapes)

    def _names(self, columns: Sequence[int], lefts: Sequence[float]) -> tuple[float, list[Markup]]:
        """The names of these columns, and how much height they take."""
        names = [self.drawn.columns[i].name for i in columns]
        middles = [left + self.widths[i - 1] / 2 for i, left in zip(columns, lefts, strict=True)]
        if self.names_upright:
            names = [shortened(name, LABELS, LONGEST_NAME) for name in names]
            height = max(text_width(name, LABELS) for name in names) + 2 * PAD
            shapes = [upright(name, x, height - PAD) for name, x in zip(names, middles, strict=True)]
        else:
            widths = [self.widths[i - 1] for i in columns]
            several = [folded(name, LABELS, width - PAD) for name, width in zip(names, widths, strict=True)]
            height = LINE * LABELS * max(map(len, several)) + PAD
            shapes = []
            for lines, x in zip(several, middles, strict=True):
                # Names stand on the first row.
                shapes += lines_around(lines, x, height - PAD - LINE * LABELS * len(lines) / 2, "middle")
        corner = shortened(self.drawn.columns[0].name, LABELS, self.first)
        return height, [label(corner, 0, height - PAD - LINE * LABELS / 2), *shapes]

    def _cell_height(self) -> float:
        texts = [self._texts(cell) for row in self.drawn.rows for cell in row[1:]]
        if not self.cells_upright:
            return max(LINE * LABELS, LINE * NUMBERS * max(map(len, texts), default=1)) + 2 * PAD
        return max((text_width(line, NUMBERS) for lines in texts for line in lines), default=0.0) + 2 * PAD

    def _cell(self, cell: str, x: float, y: float, width: float, height: float) -> Iterator[Markup]:
        lines = self._texts(cell)
        if not lines:
            return
        middle = y + height / 2
        if self.cells_upright:
            shapes = [upright(lines[0], x + width / 2, middle, NUMBERS, "middle")]
        else:
            shapes = [*lines_around(lines, x + width / 2, middle, "middle", NUMBERS)]
        if isinstance(cell, Shaded):
            shapes.insert(0, shape("rect", x=x, y=y, width=width - 0.5, height=height - 0.5, fill=ground(cell.shade)))
        about = [] if lines[0].startswith(cell) else [str(cell)]
        if isinstance(cell, Shaded) and cell.note:
            about.append(cell.note)
        if about:
            shapes.insert(0, element("title", ", ".join(about)))
        yield element("g", *shapes)


def lines_around(
    lines: Sequence[str], x: float, middle: float, anchor: str = "start", size: float = LABELS
) -> Iterator[Markup]:
    """Lines below one another, around a height."""
    for i, line in enumerate(lines):
        yield label(line, x, middle + LINE * size * (i - (len(lines) - 1) / 2), size, anchor)


def stacked(parts: Sequence[FigurePart], gap: float = PAD) -> FigurePart:
    """Blocks that belong together, below one another."""
    shapes: list[Markup] = []
    y = 0.0
    for part in parts:
        shapes.append(element("g", *part.shapes, transform=f"translate(0 {_number(y)})"))
        y += part.height + gap
    return FigurePart(y - gap, shapes)


def plot(caption: str, shapes: Sequence[Markup], box: Box, size: float, name: str) -> FigurePart:
    """Shapes in units of their own, below a caption.

    box: left, top, width and height of what they take. size: of a unit in points. name: the class that `style` knows.
    """
    left, top, width, height = box
    picture = shape(
        "svg", *shapes, class_=name, width=width * size, height=height * size, viewBox=f"{left} {top} {width} {height}"
    )
    return stacked([sentence(caption, QUIET), FigurePart(height * size, [picture])])


def beside(left: FigurePart, right: FigurePart) -> FigurePart:
    """Two parts of half the width each."""
    moved = element("g", *right.shapes, transform=f"translate({_number(HALF + GAP)} 0)")
    return FigurePart(max(left.height, right.height), [*left.shapes, moved])
