"""Web pages: each one HTML file that needs no network, readable in light and dark, on a phone and by a screen reader.

    page("Why positive", side_by_side(marked(text, marks), table("Words", columns, rows)), lead="What it shows.")

Every page has the same frame: a title with model and text, the date, the version and the command that made it; then the
content; then `lead`, what it shows and what it does not. On a wide screen tables stand beside each other where they
fit, and `side_by_side` sets two things so.

Text becomes markup only in `element` and `html`, which escape it. A page may run the one script it is given and nothing
else: its Content-Security-Policy names that script by its hash.
"""

import json
import re
from base64 import b64encode
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from hashlib import sha256
from html import escape
from importlib.resources import files
from string import Formatter
from typing import Any
from unicodedata import east_asian_width

from bertcli._version import __version__
from bertcli.report.documents import Document
from bertcli.report.shades import Mark, Shaded
from bertcli.report.terminal import Column, visible
from bertcli.report.written import COMMAND

COLORS = "Blue is above zero or for, red is below or against: the stronger the color, the more."


TABLE = (
    '<div class="{around}" role="region" aria-label="{caption}" tabindex="0"><table{attributes}><caption>'
    "<span>{caption}</span></caption><thead><tr>{names}</tr></thead><tbody>{rows}</tbody></table></div>"
)
TAG = re.compile("<[^>]*>")
LABEL = re.compile("<small>.*?</small>")  # of a shaded cell
MANY_COLUMNS = 5  # on a phone a row of so many cells, or of a wide table, takes several lines
HEAT = "heat"  # the class of a table whose shaded cells are a heat map
# A heat map that is too wide for a page is compact there, or, where that is not enough, has upright cells. Of pages of
# at most so many pixels: the room for the map's columns, beside the names of its rows and, on wide pages, a plot.
PHONE = 600
ROOM = ((PHONE, 270), (900, 640), (1300, 690), (1600, 950))
PER_DIGIT, PER_IDEOGRAPH, PER_LETTER, PER_COLUMN = 7.6, 13.0, 6.2, 14.0  # pixels in a heat map
PER_EM, BOLD = 13.0, 1.3
COMPACT = 0.82  # of that width
SHORT_NAME = 16  # letters of a row's name that no page divides: page.css gives names that it may divide a wide column
DENSE = 18  # columns of a heat map that on a phone are smaller still
PAGE = (
    '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
    '<meta name="viewport" content="width=device-width, initial-scale=1">'
    '<meta http-equiv="Content-Security-Policy" content="{policy}"><title>{title}</title><style>{style}</style></head>'
    "<body><header><h1>{title}</h1>{about}</header><main{arranged}>{content}</main>{meaning}{scripts}</body>"
    "</html>\n"
)
ABOUT = '<p class="about">{subject}</p><p class="made">{date} · bertcli {version}{command}</p>'
COMMAND_LINE = " · <code>{command}</code>"
LONGEST_TEXT, LONGEST_COMMAND = 160, 400  # characters of them in the frame


class Markup(str):
    """A string that is HTML already, so that `element` and `html` do not escape it."""


def element(name: str, *content: str, **attributes: str | bool | None) -> Markup:
    """Make `<name attributes>content</name>`; all text is escaped, except content that is Markup.

    `class_` stands for class, `aria_label` for aria-label. True is an attribute without a value, None and False leave
    it out.
    """
    inner = "".join(
        text if isinstance(text, Markup) else escape(visible(text, lines=True), quote=False) for text in content
    )
    return Markup(f"<{name}{''.join(_attributes(attributes))}>{inner}</{name}>")


def _attributes(attributes: dict[str, str | bool | None]) -> Iterator[str]:
    for keyword, value in attributes.items():
        if value is not None and value is not False:
            name = keyword.rstrip("_").replace("_", "-")
            yield f" {name}" if value is True else f' {name}="{escape(visible(value, lines=True))}"'


def html(template: str, **values: Any) -> Markup:
    """Fill a template's {fields}, as str.format does; values are escaped, except Markup and lists of it."""
    written = literal = ""
    for before, name, form, _ in Formatter().parse(template):
        literal += before
        written += before
        value = values[name] if name else Markup()
        if isinstance(value, Markup | list):
            written += "".join(value)
        else:
            in_attribute = literal.rfind("<") > literal.rfind(">")
            written += escape(visible(format(value, form or ""), lines=True), quote=in_attribute)
    return Markup(written)


def marked(text: str, marks: Sequence[Mark], hues: Mapping[str, int] | None = None) -> Markup:
    """A text in its own writing direction, with marks. Errors: ValueError for marks out of order or overlapping.

    `hues`: the hue of a label's marks, in degrees.
    """
    parts: list[str] = []
    done = 0
    for mark in marks:
        if not done <= mark.start <= mark.end <= len(text):
            raise ValueError(f"the mark {mark.start}–{mark.end} overlaps another one, or ends after the text")
        hue = (hues or {}).get(mark.label)
        parts += [text[done : mark.start], shaded(text[mark.start : mark.end], *mark[2:], hue=hue)]
        done = mark.end
    return element("p", *parts, text[done:], class_="text", dir="auto")


def shaded(words: str, shade: float, label: str = "", title: str = "", hue: int | None = None) -> Markup:
    """Words on a colored ground: its color is the hue or the sign of `shade`, its strength |shade| (1 is full)."""
    inner = [element("small", label)] if label else []
    # The names of colors in page.css.
    side = "against" if shade < 0 else "for"
    if hue is not None:
        side = "of-hue"
    style = f"--shade: {min(1.0, abs(shade)):.3f}" + (f"; --hue: {hue}" if hue is not None else "")
    return element("mark", words, *inner, class_=side, style=style, title=title or None)


def table(
    caption: str, columns: Sequence[Column], rows: Sequence[Sequence[str]], css_class: str = "", wide: bool = False
) -> Markup:
    """A table that can be scrolled by keyboard, too. The first cell of a row is its heading; a cell may be Markup.

    css_class: HEAT is a heat map, "heat upright" one with upright column names. wide: as wide as the page.
    """
    rows = [[_shown(cell) for cell in row] for row in rows]
    names = [element("th", column.name, scope="col", class_="number" if column.number else None) for column in columns]
    stacks = not css_class and (wide or len(columns) >= MANY_COLUMNS)
    lines = [element("tr", *_cells(row, columns, named=stacks)) for row in rows]
    around = "scrolled wide" if wide else "scrolled"
    classes = css_class or ("stacks" if stacks else "")
    style = ""
    if HEAT in css_class.split():
        widths = [max((_width(TAG.sub("", row[i])) for row in rows), default=0.0) for i in range(1, len(columns))]
        on_phones = [[LABEL.sub("", cell) for cell in row] for row in rows]
        narrow = [max((_width(TAG.sub("", row[i])) for row in on_phones), default=0.0) for i in range(1, len(columns))]
        classes = " ".join([css_class, *_narrowed(columns, widths, narrow)])
        style = f"--longest: {max(widths, default=0.0) / PER_EM:.1f}em"
    attributes = [*_attributes({"class_": classes or None, "style": style or None})]
    return html(TABLE, around=around, caption=caption, attributes=Markup("".join(attributes)), names=names, rows=lines)


def _shown(cell: str) -> str:
    """A cell; a Shaded one as markup."""
    return shaded(cell, cell.shade, cell.label, cell.note) if isinstance(cell, Shaded) else cell


def _width(text: str) -> float:
    """About how wide a heat map's text is, in pixels."""
    width = 0.0
    for character in text:
        if character.isdecimal() or character in "+-":
            width += PER_DIGIT
        elif east_asian_width(character) in "WF":
            width += PER_IDEOGRAPH
        else:
            width += PER_LETTER
    return width


def _narrowed(columns: Sequence[Column], widths: Sequence[float], on_phones: Sequence[float]) -> Iterator[str]:
    """The classes of a heat map that say on which pages it is compact, or has upright cells, to fit into them.

    widths: of each column's widest cell, in pixels; on_phones: there a cell has no label.
    """
    for page_width, room in ROOM:
        width = 0.0
        for column, widest in zip(columns[1:], on_phones if page_width == PHONE else widths, strict=True):
            # A column's name wraps between its words.
            width += PER_COLUMN + max([widest, *(BOLD * _width(word) for word in column.name.split())])
        if COMPACT * width > room:
            yield f"upright-{page_width}"
        elif width > room:
            yield f"compact-{page_width}"
    if len(columns) > DENSE:
        yield "dense"


def document_table(caption: str, document: Document) -> Markup:
    """The table of a document."""
    return table(caption, document.columns, document.rows)


def _cells(row: Sequence[str], columns: Sequence[Column], named: bool) -> Iterator[Markup]:
    """The cells of a row; if `named`, with their columns' names, which a phone shows before them."""
    for i, (text, column) in enumerate(zip(row, columns, strict=True)):
        css_class = "number" if column.number else None
        if i:
            yield element("td", text, class_=css_class, data_name=column.name if named else None)
        else:
            name = column.name if named and column.number else None  # a number means little without its column's name
            yield element("th", *_breakable(text), scope="row", class_=css_class, data_name=name)


def _breakable(text: str) -> list[str]:
    """Split a path where a narrow page may break it: behind dots and lines, not within words."""
    if isinstance(text, Markup) or len(text) <= SHORT_NAME:
        return [text]
    parts = re.split(r"(?<=[._])(?=\w)", text)
    return [item for part in parts for item in (Markup("<wbr>"), part)][1:]


def page(
    title: str,
    *content: Markup,
    lead: str,
    model: str = "",
    text: str = "",
    command: str | None = None,
    style: str = "",
    script: str = "",
    data: Any = None,
    asks: bool = False,
) -> str:
    """A whole page: its frame, and the content. lead: what the page shows and what it does not show.

    `model` and `text` are what it is about, `command` the command line that made it (None: the one that runs). `data`
    is what JSON can hold; `script` finds it as the text of the element with the id "data". asks: whether the page may
    ask the server that it came from; the frame of such a page has only the lead, above the content.
    """
    scripts = []
    if data is not None:
        scripts.append(Markup(f'<script type="application/json" id="data">{_in_script(data)}</script>'))
    allowed = "'none'"
    if script:
        if "</" in script or "<!--" in script:
            raise ValueError("a script must not hold what ends or hides a script element")
        scripts.append(Markup(f"<script>{script}</script>"))
        allowed = f"'sha256-{b64encode(sha256(script.encode()).digest()).decode()}'"
    connected = "; connect-src 'self'" if asks else ""
    policy = f"default-src 'none'; style-src 'unsafe-inline'; script-src {allowed}{connected}"
    shared = files("bertcli.report").joinpath("page.css").read_text(encoding="utf-8")
    meaning = [element("p", lead)] if lead else []
    about = meaning if asks else [_about(model, text, COMMAND.get() if command is None else command)]
    return html(
        PAGE, policy=Markup(policy), title=title, style=Markup(shared + style), about=about,
        content=list(content), arranged=Markup("" if asks else ' class="flow"'),
        meaning=[element("footer", *meaning)] if meaning and not asks else [], scripts=scripts,
    )  # fmt: skip


def _about(model: str, text: str, command: str) -> Markup:
    """The frame's lines: model, text, date, version, command."""
    subject = ": ".join(filter(None, (model, f"“{clipped(text, LONGEST_TEXT)}”" if text else "")))
    shown = [html(COMMAND_LINE, command=clipped(command))] if command else []
    return html(ABOUT, subject=subject, date=f"{date.today():%Y-%m-%d}", version=__version__, command=shown)


def clipped(text: str, most: int = LONGEST_COMMAND) -> str:
    """A text in one line of at most `most` characters; the rest is replaced by …."""
    line = " ".join(text.split())
    return line if len(line) <= most else f"{line[: most - 1]}…"


def side_by_side(*content: Markup | list[Markup], even: bool = False) -> Markup:
    """Set content side by side on a wide screen, one below the other on a narrow one; a list is one block.

    even: the first block is as wide as its content, and the second takes the rest.
    """
    blocks = [element("div", *(part if isinstance(part, list) else [part])) for part in content]
    return element("div", *blocks, class_="side even" if even else "side")


def maps(*content: Markup) -> Markup:
    """Set heat maps in rows, each in its own width, as many side by side as fit."""
    return element("div", *content, class_="flow maps")


def _in_script(data: Any) -> str:
    """JSON for a script element. "<" is escaped: "</script>" would end the element, "<!--" begin a comment."""
    return json.dumps(data, ensure_ascii=True, allow_nan=False).replace("<", "\\u003c")
