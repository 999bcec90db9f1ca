"""What `bertcli trace --attention` shows: a drawing in a file, a shaded table, or a document."""

from __future__ import annotations

from bertcli.attention import Attention, Choice, attention_of
from bertcli.output.document import Format, print_document
from bertcli.tracing import Trace


def show_attention(trace: Trace, pieces: list[str], choice: Choice, output: str | None, format: Format) -> None:
    """Attention weights of a traced pass over these pieces: drawn into the file `output`, else printed."""
    found = attention_of(trace, pieces)
    if output is not None:
        _draw(found, choice, output)
    elif format == "table":
        from bertcli.attention.shades import shaded_lines
        from bertcli.report import print_shades, terminal_width

        selected = found.select(choice)
        print(selected.title)
        print_shades(shaded_lines(selected, terminal_width()))
    else:
        from bertcli.attention.document import attention_document

        print_document(attention_document(found, choice, trace), format)


def _draw(attention: Attention, choice: Choice, file: str) -> None:
    from bertcli.output.files import Replacement

    if file.lower().endswith(".svg"):
        from bertcli.attention.svg import svg

        text = svg(attention.select(choice))
    else:
        from bertcli.attention.page import page

        text = page(attention, choice)
    with Replacement(file) as output:
        output.write(text.encode("utf-8"))
