"""Print tables folded to the terminal's width, and texts whose control characters are escaped.

Tables are laid out here and not by rich.table, which takes 2.3 s for 5,000 rows where this takes 0.05, and 37 ms to
import. rich is imported where it is needed.
"""

import json
import os
import re
import shutil
import stat
import sys
from collections.abc import Iterator, Sequence
from io import TextIOWrapper
from itertools import zip_longest
from typing import Any, Literal, NamedTuple

from bertcli.errors import NotFinite

# How a result is printed, by every command that prints one.
PrintFormat = Literal["table", "json", "jsonl", "csv", "markdown"]
# Cells a column takes besides its text: a space on either side, and the gap to the next column.
BESIDE = 3
# Cells below which a column of text is not folded.
NARROWEST = 8
# Most columns of text before a table of numbers for it to be divided into blocks of columns.
MOST_LABELS = 2
# Fewest cells of a terminal: one that reports fewer is taken to have these.
NARROW = 16
# A long name may be folded after these.
PARTS = re.compile(r"[.\-_/,·](?=.)|[a-z](?=[A-Z])")
# Characters that would move the cursor, ring the bell, change the writing direction or end a line within a row, and
# those that no file of text may hold: half surrogate pairs, and what is no character at all.
CONTROLS = "\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff"
CONTROL, CONTROL_BUT_LINES = f"[{CONTROLS}]", f"(?![\t\n])[{CONTROLS}]"


# What tables and charts are drawn with, where standard output is not UTF-8.
DRAWN = str.maketrans("─░▒▓█▏▎▍▌▋▊▉", "-.+%########")


class Column(NamedTuple):
    """A column of a table, by its heading. number: right-aligned and never folded; int or float, if a file has a type.

    varying, optional: the column is left out if all its cells are equal, or all are empty; tables.py does so.
    """

    name: str
    number: bool | type[int | float] = False
    varying: bool = False
    optional: bool = False


def print_table(columns: Sequence[Column], rows: Sequence[Sequence[str]]) -> None:
    """Print a table to standard output."""
    bold, plain = ("\x1b[1m", "\x1b[0m") if takes_escapes() else ("", "")
    heading, body = table_lines(columns, rows)
    for line in heading:
        print(f"{bold}{line}{plain}")
    for line in body:
        print(line)


def table_lines(columns: Sequence[Column], rows: Sequence[Sequence[str]]) -> tuple[list[str], list[str]]:
    """The lines of a table: heading, body. No text is lost: a narrow terminal folds text, but never numbers.

    If that is still too wide, a matrix is divided into blocks of columns; and if that does not fit either, the cells of
    a row stand below one another, each beside its column's name. Then the heading is empty.
    """
    width = terminal_width()
    columns = [column._replace(name=encodable(visible(column.name))) for column in columns]
    cells = [[encodable(visible(value)) for value in row] for row in rows]
    heading, body = _side_by_side(columns, cells, width)
    if width is None or _fits([*heading, *body], width):
        return heading, body
    labels = 1 + max((i for i, column in enumerate(columns) if not column.number), default=0)
    if labels <= MOST_LABELS < len(columns) - labels:
        blocks = list(_in_blocks(columns, cells, width, labels))
        if _fits(blocks, width):
            return [], blocks
    return [], list(_below_one_another(columns, cells, width))


def unfolded_width(columns: Sequence[Column], rows: Sequence[Sequence[str]]) -> int:
    """The cells that a line of a table takes where no text is folded."""
    cells = [[encodable(visible(value)) for value in row] for row in rows]
    widths = _natural_widths([column._replace(name=encodable(visible(column.name))) for column in columns], cells)
    return sum(widths) + BESIDE * (len(widths) - 1) + 2


def _fits(lines: Sequence[str], width: int) -> bool:
    return max(map(cell_count, lines), default=0) <= width


def _in_blocks(columns: Sequence[Column], cells: Sequence[Sequence[str]], width: int, labels: int) -> Iterator[str]:
    """Lines of a matrix that is too wide: blocks of as many columns as fit, each beside the columns of labels."""
    widths = []
    for i, column in enumerate(columns):
        widest = max(map(cell_count, [*column.name.split(), *(row[i] for row in cells)]))
        widths.append(widest if column.number else min(widest, max(NARROWEST, width // 3)))
    gap = BESIDE - 1
    begin = labels
    while begin < len(columns):
        end, used = begin, sum(widths[:labels]) + gap * labels
        while end < len(columns) and (end == begin or used + gap + widths[end] <= width):
            used += gap + widths[end]
            end += 1
        chosen = [*range(labels), *range(begin, end)]
        if begin > labels:
            yield ""
        heading, body = _side_by_side([columns[i] for i in chosen], [[row[i] for i in chosen] for row in cells], width)
        yield from heading
        yield from body
        begin = end


def _side_by_side(
    columns: Sequence[Column], cells: Sequence[Sequence[str]], width: int | None
) -> tuple[list[str], list[str]]:
    """The lines of a table: of its heading, and of the rule and its rows."""
    widths = _natural_widths(columns, cells)
    gap = " " * BESIDE
    if width is not None and sum(widths) + BESIDE * len(columns) > width:
        # Smaller gaps come before folded words.
        gap = " " * (BESIDE - 1)
        room = width - len(gap) * len(columns)
        if sum(widths) > room:
            widths = _folded_widths(columns, cells, room)
    heading = list(_lines([column.name for column in columns], columns, widths, gap, foot=True))
    body = [encodable("─") * (sum(widths) + len(gap) * (len(columns) - 1) + 2)]
    for row in cells:
        body += _lines(row, columns, widths, gap)
    return heading, body


def _natural_widths(columns: Sequence[Column], cells: Sequence[Sequence[str]]) -> list[int]:
    """Widths in which nothing is folded."""
    return [max(map(cell_count, [column.name, *(row[i] for row in cells)])) for i, column in enumerate(columns)]


def _below_one_another(columns: Sequence[Column], cells: Sequence[Sequence[str]], width: int) -> Iterator[str]:
    """Lines of a table that is too wide even when folded: for every cell that is not empty its name and its text."""
    widest = min(max(cell_count(column.name) for column in columns), width // 2)
    for i, row in enumerate(cells):
        if i:
            yield ""
        for column, value in zip(columns, row, strict=True):
            if value:
                names = folded(column.name, widest).split("\n")
                texts = folded(value, width - widest - BESIDE).split("\n")
                for name, text in zip_longest(names, texts, fillvalue=""):
                    yield f" {padded(name, widest)}{' ' * (BESIDE - 1)}{text}".rstrip()


def _lines(
    row: Sequence[str], columns: Sequence[Column], widths: Sequence[int], gap: str, foot: bool = False
) -> Iterator[str]:
    """The lines of a row whose cells are folded; a cell with fewer lines is aligned to the top, or to the `foot`."""
    cells = [folded(value, width).split("\n") for value, width in zip(row, widths, strict=True)]
    if foot:
        height = max(map(len, cells), default=0)
        cells = [[""] * (height - len(cell)) + cell for cell in cells]
    for texts in zip_longest(*cells, fillvalue=""):
        numbers = (bool(column.number) for column in columns)
        yield f" {gap.join(map(padded, texts, widths, numbers))}".rstrip()


def padded(text: str, width: int, number: bool = False) -> str:
    """Pad a text to `width` cells of a terminal; a number is aligned to the right."""
    spaces = " " * (width - cell_count(text))
    return spaces + text if number else text + spaces


def takes_escapes() -> bool:
    """True if standard output is a terminal with bold text, or FORCE_COLOR is set."""
    if os.environ.get("NO_COLOR"):
        return False
    able = sys.stdout.isatty() and os.environ.get("TERM", "").lower() not in ("dumb", "unknown")
    if sys.platform == "win32":
        # The older console of Windows prints escapes as text.
        able = able and any(name in os.environ for name in ("WT_SESSION", "TERM", "ANSICON"))
    return able or bool(os.environ.get("FORCE_COLOR"))


def _folded_widths(columns: Sequence[Column], cells: Sequence[Sequence[str]], width: int) -> list[int]:
    """Widths that fit into `width` if possible: headings folded, numbers unbroken, texts share what is left."""
    widths = [
        max(map(cell_count, [*column.name.split(), *(row[i] for row in cells)]), default=0)
        for i, column in enumerate(columns)
    ]
    texts = sorted((i for i, column in enumerate(columns) if not column.number), key=lambda i: widths[i])
    room = width - sum(needed for needed, column in zip(widths, columns, strict=True) if column.number)
    # From the narrowest text on: space that it does not need goes to wider ones.
    for sharing, i in zip(range(len(texts), 0, -1), texts, strict=True):
        widths[i] = min(widths[i], max(NARROWEST, room // sharing))
        room -= widths[i]
    return widths


def folded(text: str, width: int | None) -> str:
    """Fold a text to lines of at most `width` cells (None: no limit), at spaces, else between the parts of a name."""
    if width is None or cell_count(text) <= width:
        return text
    from rich.cells import chop_cells

    lines = []
    while cell_count(text) > width:
        head = chop_cells(text, width)[0]
        end = head.rfind(" ") if text[len(head)] != " " else len(head)
        if end <= 0:
            end = max((match.end() for match in PARTS.finditer(head)), default=len(head))
        lines.append(text[:end])
        text = text[end:].removeprefix(" ")
    return "\n".join([*lines, text])


def cell_count(text: str) -> int:
    """The number of a terminal's cells that a text takes: two for a letter such as 漢."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)


# ------------------------------------------------------------------------------------------- what a terminal can show


def terminal_width() -> int | None:
    """The width of tables: COLUMNS, else the terminal's; None for a file, where a table is as wide as its cells.

    Output that is piped into another program (`| less`) has the width of the terminal on standard error.
    """
    columns = os.environ.get("COLUMNS", "")
    if columns.isdecimal() and int(columns):
        return max(NARROW, int(columns))
    try:
        if sys.stdout.isatty():
            return max(NARROW, shutil.get_terminal_size().columns)
        if stat.S_ISFIFO(os.fstat(sys.stdout.fileno()).st_mode) and sys.stderr.isatty():
            return max(NARROW, os.get_terminal_size(sys.stderr.fileno()).columns)
    except (AttributeError, OSError, ValueError):
        # A stream is missing, closed, or in memory: there is no width to fit into.
        pass
    return None


def visible(text: str, lines: bool = False) -> str:
    """Escape control characters, so that a text controls no terminal, table or page. lines: keep tabs and line ends."""
    # Most texts are; compiling the pattern takes as long as importing a module.
    if text.isprintable():
        return text
    pattern = CONTROL_BUT_LINES if lines else CONTROL
    return re.sub(pattern, lambda match: match[0].encode("unicode_escape").decode(), text)


def encodable(text: str) -> str:
    """Escape what standard output cannot encode (≤ as \\u2264), so that a table keeps its columns: an ASCII locale's.

    What tables and charts are drawn with becomes ASCII.
    """
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    if text.isascii() or encoding.lower().startswith("utf"):
        return text
    return text.translate(DRAWN).encode(encoding, "backslashreplace").decode(encoding)


def take_any_text() -> None:
    """Let standard output and error escape characters that they cannot encode, instead of raising."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def as_json(value: Any, indent: int | None = None) -> bytes:
    """A value as JSON in UTF-8; control characters are escaped as `\\u009b`, since a terminal would obey them.

    Errors: BertcliError for NaN and infinite numbers, which JSON does not have.
    """
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False, indent=indent)
    except ValueError:
        raise NotFinite from None
    return re.sub(CONTROL_BUT_LINES, lambda match: f"\\u{ord(match[0]):04x}", text).encode()
