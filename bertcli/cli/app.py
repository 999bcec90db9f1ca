"""The application: its commands and the help they share."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import Annotated

import typer

import bertcli
from bertcli.cli.command import register

PANELS = {  # of --help: the commands in each, which are modules of this package
    "Run": ("encode", "classify", "fill-mask", "score", "tag", "answer", "rank"),
    "Analyze": ("params", "trace", "neighbors", "explain", "lens", "heads", "diff"),
    "Look": ("tokenize", "doctor"),
    "Make": ("export", "merge"),
}


@cache
def application(command: str = "") -> typer.Typer:
    """The application with this command alone, so that it begins sooner; with all if there is none of that name."""
    app = typer.Typer(
        name="bertcli",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(bert)
    known = any(command in commands for commands in PANELS.values())
    for panel, commands in PANELS.items():
        for name in commands:
            if name == command or not known:
                function = name.replace("-", "_")
                register(app, getattr(import_module(f"bertcli.cli.{function}"), function), panel)
    return app


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"bertcli {bertcli.__version__}")
        raise typer.Exit


def bert(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, help="Print the version and exit.")
    ] = False,
) -> None:
    """BERT in the terminal: vectors, labels, entities, answers, masked words.

    bertcli fill-mask "She poured a cup of hot [MASK]."
    bertcli classify "I loved every minute of it."
    bertcli encode -i reviews.txt -o vectors.npy
    bertcli score "The cat sat on the mat."
    bertcli tag -m dslim/bert-base-NER "Angela Merkel visited Paris."

    Without -m a small bundled model is used. Any model of BERT's family can be
    given (RoBERTa, ModernBERT, DeBERTa and so on): a folder, or a name on the
    Hugging Face Hub (-m bert-base-uncased).
    COMMAND --help has more examples.
    """
