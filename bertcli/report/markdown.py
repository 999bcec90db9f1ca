"""Print Markdown in a terminal (`bertcli guide`), and escape text for rich's markup."""

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
