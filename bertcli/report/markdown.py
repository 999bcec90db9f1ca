"""Markdown in a terminal, and text that stands among rich's markup as it is."""

import sys

WIDEST = 100  # columns of prose on a wide terminal


def print_markdown(text: str) -> None:
    """Print Markdown: formatted where standard output is a terminal, else as it is."""
    if not sys.stdout.isatty():
        sys.stdout.write(text)
        return
    from rich.console import Console
    from rich.markdown import Markdown

    console = Console()
    console.print(Markdown(text), width=min(console.width, WIDEST))


def escaped(text: str) -> str:
    """A text that rich's markup leaves as it is, such as the brackets of `bertcli[serve]`."""
    from rich.markup import escape

    return escape(text)
