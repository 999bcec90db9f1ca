"""Web pages: each one HTML file that needs no network, readable in light and dark, on a phone and by a screen reader.

    page("Why positive", marked(text, marks), table("Words", columns, rows), lead="What the numbers mean.")

Text becomes markup only in `element` and `html`, which escape it. A page may run the one script it is given and nothing
else: its Content-Security-Policy names that script by its hash.
"""

import json
import re
from base64 import b64encode
from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from html import escape
from importlib.resources import files
from string import Formatter
from typing import Any

from bertcli.report.documents import Document
from bertcli.report.shades import Mark, Shaded
from bertcli.report.terminal import Column, visible

COLORS = "Blue is above zero or for, red is below or against: the stronger the color, the more."


TABLE = (
    '<div class="scrolled" role="region" aria-label="{caption}" tabindex="0"><table><caption><span>{caption}</span>'
    "</caption><thead><tr>{names}</tr></thead><tbody>{rows}</tbody></table></div>"
)
PAGE = (
    '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
    '<meta name="viewport" content="width=device-width, initial-scale=1">'
    '<meta http-equiv="Content-Security-Policy" content="{policy}"><title>{title}</title><style>{style}</style></head>'
    "<body><header><h1>{title}</h1>{model}<p>{lead}</p></header><main>{content}</main>{scripts}</body></html>\n"
)


class Markup(str):
    """Text that is HTML already."""


def element(name: str, *content: str, **attributes: str | bool | None) -> Markup:
    """`<name attributes>content</name>`; all text is escaped, but for content that is Markup.

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
    """HTML with values in its {places}, which may say a format: all is escaped, but for Markup and lists of it."""
    made = literal = ""
    for before, name, form, _ in Formatter().parse(template):
        literal += before
        made += before
        value = values[name] if name else Markup()
        if isinstance(value, Markup | list):
            made += "".join(value)
        else:
            in_attribute = literal.rfind("<") > literal.rfind(">")
            made += escape(visible(format(value, form or ""), lines=True), quote=in_attribute)
    return Markup(made)


def marked(text: str, marks: Sequence[Mark], hues: Mapping[str, int] | None = None) -> Markup:
    """A text in its own writing direction with marks in it, which are in order and do not overlap (else ValueError).

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
    """Words on a ground whose color says the sign of `shade`, or has a hue, and whose strength its size (1: full)."""
    inner = [element("small", label)] if label else []
    side = "of-hue" if hue is not None else "against" if shade < 0 else "for"
    style = f"--shade: {min(1.0, abs(shade)):.3f}" + (f"; --hue: {hue}" if hue is not None else "")
    return element("mark", words, *inner, class_=side, style=style, title=title or None)


def table(caption: str, columns: Sequence[Column], rows: Sequence[Sequence[str]]) -> Markup:
    """A table that can be scrolled by keyboard, too. The first cell of a row is its heading; a cell may be Markup."""
    names = [element("th", column.name, scope="col", class_="number" if column.number else None) for column in columns]
    lines = [element("tr", *_cells(row, columns)) for row in rows]
    return html(TABLE, caption=caption, names=names, rows=lines)


def document_table(caption: str, document: Document) -> Markup:
    """The table of a document."""
    return table(caption, document.columns, document.rows)


def _cells(row: Sequence[str], columns: Sequence[Column]) -> Iterator[Markup]:
    for i, (text, column) in enumerate(zip(row, columns, strict=True)):
        kind = "number" if column.number else None
        text = shaded(text, text.shade) if isinstance(text, Shaded) else text
        yield element("td", text, class_=kind) if i else element("th", *_breakable(text), scope="row", class_=kind)


def _breakable(text: str) -> list[str]:
    """A path in parts, so that a narrow page breaks it behind its dots and lines, and not within words."""
    if isinstance(text, Markup):
        return [text]
    parts = re.split(r"(?<=[._])(?=\w)", text)
    return [item for part in parts for item in (Markup("<wbr>"), part)][1:]


def page(
    title: str,
    *content: Markup,
    lead: str,
    model: str = "",
    style: str = "",
    script: str = "",
    data: Any = None,
    asks: bool = False,
) -> str:
    """A whole page: a heading, the model's name, `lead` (what the numbers mean, and what they do not), the content.

    `data` is what JSON can hold; `script` finds it as the text of the element with the id "data". asks: whether it may
    ask the server that it came from.
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
    named = [element("p", f"Model: {model}")] if model else []
    return html(
        PAGE, policy=Markup(policy), title=title, style=Markup(shared + style), model=named, lead=lead,
        content=list(content), scripts=scripts,
    )  # fmt: skip


def _in_script(data: Any) -> str:
    """JSON as the text of a script element, which only "<" could end: "</script>", "<!--"."""
    return json.dumps(data, ensure_ascii=True, allow_nan=False).replace("<", "\\u003c")
