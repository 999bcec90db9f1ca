"""Tables and progress in a terminal: the only importer of rich."""

from __future__ import annotations

import os
import re
import shutil
import sys
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from typing import TypeVar

from rich.cells import cell_len, chop_cells

from bertcli.output.table import Column

T = TypeVar("T")
BESIDE = 3  # cells a column takes besides its text: a space on either side, and the gap to the next column
NARROWEST = 12  # a column of text is not folded below this
PARTS = re.compile(r"[.\-_/,·](?=.)|[a-z](?=[A-Z])")  # a long name may be folded after these
BLOCKS, LETTERS = " ░▒▓█", " .:+#"  # from light to dark
DARKEST = (8, 48, 107)  # red, green, blue
MOMENT = 1.0  # seconds of work before a progress bar appears
# Characters that would move the cursor, ring the bell or change the writing direction, or end a line within a row.
CONTROLS = re.compile("[\x00-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069]")


def print_table(columns: Sequence[Column], rows: Sequence[Sequence[str]]) -> None:
    """Print a table to standard output."""
    bold, plain = ("\x1b[1m", "\x1b[0m") if _takes_escapes() else ("", "")
    heading, body = table_lines(columns, rows)
    for line in heading:
        print(f"{bold}{line}{plain}")
    for line in body:
        print(line)


def table_lines(columns: Sequence[Column], rows: Sequence[Sequence[str]]) -> tuple[list[str], list[str]]:
    """The lines of a table, heading and body. No text is lost: a narrow terminal folds text, but never numbers."""
    cells = [[visible(value) for value in row] for row in rows]
    natural = [max(map(cell_len, [column.name, *(row[i] for row in cells)])) for i, column in enumerate(columns)]
    room = terminal_width()
    narrow = room is not None and sum(natural) + BESIDE * len(columns) > room
    widths = _folded_widths(columns, cells, (room or 0) - (BESIDE - 1) * len(columns)) if narrow else natural
    gap = " " * (BESIDE - 1 if narrow else BESIDE)
    rule = "─" * (sum(widths) + len(gap) * (len(columns) - 1) + 2)
    body = [line for row in cells for line in _lines(row, columns, widths, gap)]
    return list(_lines([column.name for column in columns], columns, widths, gap, foot=True)), [rule, *body]


def _lines(
    row: Sequence[str], columns: Sequence[Column], widths: Sequence[int], gap: str, foot: bool = False
) -> Iterator[str]:
    """The lines of a row whose cells are folded; a cell with fewer lines is aligned to the top, or to the `foot`."""
    cells = [folded(value, width).split("\n") for value, width in zip(row, widths, strict=True)]
    height = max(map(len, cells), default=0)
    for i in range(height):
        parts = []
        for column, cell, width in zip(columns, cells, widths, strict=True):
            at = i - (height - len(cell) if foot else 0)
            text = cell[at] if 0 <= at < len(cell) else ""
            spaces = " " * (width - cell_len(text))
            parts.append(spaces + text if column.number else text + spaces)
        yield f" {gap.join(parts)}".rstrip()


def _takes_escapes() -> bool:
    """Whether standard output is a terminal that supports bold text, or is to be treated as one."""
    if os.environ.get("NO_COLOR"):
        return False
    able = sys.stdout.isatty() and os.environ.get("TERM", "").lower() not in ("dumb", "unknown") and os.name != "nt"
    return able or bool(os.environ.get("FORCE_COLOR"))


def _folded_widths(columns: Sequence[Column], cells: Sequence[Sequence[str]], room: int) -> list[int]:
    """Widths that fit into `room` if possible: numbers unbroken under folded headings, texts share what is left."""
    widths = [
        max(map(cell_len, [*(column.name.split() if column.number else [column.name]), *(row[i] for row in cells)]))
        for i, column in enumerate(columns)
    ]
    texts = sorted((i for i, column in enumerate(columns) if not column.number), key=lambda i: widths[i])
    left = room - sum(width for width, column in zip(widths, columns, strict=True) if column.number)
    for count, i in zip(range(len(texts), 0, -1), texts, strict=True):
        widths[i] = min(widths[i], max(NARROWEST, left // count))  # space a short one does not need goes to longer ones
        left -= widths[i]
    return widths


def folded(text: str, width: int) -> str:
    """Text in lines of at most `width` cells, broken at spaces, else between the parts of a name."""
    lines = []
    while cell_len(text) > width:
        head = chop_cells(text, width)[0]
        end = head.rfind(" ") if text[len(head)] != " " else len(head)
        if end <= 0:
            end = max((match.end() for match in PARTS.finditer(head)), default=len(head))
        lines.append(text[:end])
        text = text[end:].removeprefix(" ")
    return "\n".join([*lines, text])


def visible(text: str) -> str:
    """Text with control characters escaped, so that it can neither break a table nor control the terminal."""
    return CONTROLS.sub(lambda match: match[0].encode("unicode_escape").decode(), text)


def progress(
    items: Iterable[T], task: str, reached: Callable[[T], tuple[int, float | None]]
) -> Generator[T, None, None]:
    """The same items; after a moment a bar on standard error shows texts done, rate, share done and time left.

    `reached(item)` gives how many texts are done with that item, and their share (0 to 1) of all, or None.
    """
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    console = Console(stderr=True)
    if console.is_dumb_terminal:
        yield from items
        return
    bar = Progress(
        TextColumn(task), BarColumn(), TextColumn("{task.fields[state]}"), TimeElapsedColumn(),
        console=console, transient=True,
    )  # fmt: skip
    counter = bar.add_task(task, total=None, state="")
    pace = Pace()
    try:
        for item in items:
            texts, share = reached(item)
            state = pace.state(time.monotonic(), texts, share)
            bar.update(counter, total=None if share is None else 1.0, completed=share or 0.0, state=state)
            if not bar.live.is_started and pace.elapsed > MOMENT:
                bar.start()
            yield item
    finally:
        if bar.live.is_started:
            bar.stop()


class Pace:
    """The speed of a run, measured from its first block on: what came before may have been done by an earlier run."""

    def __init__(self) -> None:
        self._begun = time.monotonic()
        self._first: tuple[float, int, float | None] | None = None
        self.elapsed = 0.0

    def state(self, now: float, texts: int, share: float | None) -> str:
        """Texts done, texts per second, share of all and time left, as far as they are known."""
        self.elapsed = now - self._begun
        if self._first is None:
            self._first = now, texts, share
        begun, before, share_before = self._first
        seconds, parts = now - begun, [f"{texts:,} texts"]
        if seconds > 0:
            parts.append(f"{(texts - before) / seconds:,.0f}/s")
        if share is not None and share_before is not None:
            parts.append(f"{share:.0%}")
            if share > share_before:
                parts.append(f"{duration(seconds * (1 - share) / (share - share_before))} left")
        return "  ".join(parts)


def duration(seconds: float) -> str:
    """Hours, minutes and seconds: 0:42, 1:05:00."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def terminal_width() -> int | None:
    """The width to fit into: COLUMNS, else the terminal's; None in a pipe, where a table is as wide as its cells."""
    asked = os.environ.get("COLUMNS", "")
    if asked.isdecimal() and int(asked):
        return int(asked)
    try:
        return shutil.get_terminal_size().columns if sys.stdout.isatty() else None
    except (AttributeError, ValueError):  # standard output is missing or closed
        return None


def print_shades(lines: Iterable[Sequence[tuple[str, float | None]]]) -> None:
    """Print lines of cells, each a text and its darkness, 0 to 1: in colour if allowed, else with block characters."""
    from rich.console import Console
    from rich.text import Text

    console = Console(highlight=False, markup=False, emoji=False, soft_wrap=True)
    coloured = console.color_system in ("truecolor", "256") and not console.no_color
    blocks = BLOCKS if _can_write(BLOCKS) else LETTERS
    for line in lines:
        text = Text()
        for words, shade in line:
            if shade is None:
                text.append(visible(words))
            elif coloured:
                text.append(words, _on(shade))
            else:
                text.append(_with_block(words, blocks[min(int(shade * len(blocks)), len(blocks) - 1)]))
        console.print(text)


def _on(shade: float) -> str:
    """A text colour on a background between white and dark blue."""
    ground = ",".join(str(round(255 + shade * (dark - 255))) for dark in DARKEST)
    return f"{'white' if shade > 0.5 else 'black'} on rgb({ground})"


def _with_block(words: str, block: str) -> str:
    """A right-aligned number preceded by a block character whose darkness shows its size."""
    number = words.strip()
    return f"{block}{number:>3}".rjust(len(words))


def _can_write(text: str) -> bool:
    try:
        text.encode(sys.stdout.encoding or "ascii")
    except UnicodeEncodeError:
        return False
    return True
