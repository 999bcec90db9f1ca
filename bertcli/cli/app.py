"""The application: its commands and the help they share."""

from __future__ import annotations

from typing import Annotated

import typer

import bertcli
from bertcli.cli.answer import answer
from bertcli.cli.classify import classify
from bertcli.cli.diff import diff
from bertcli.cli.doctor import doctor, print_findings
from bertcli.cli.encode import encode
from bertcli.cli.explain import explain
from bertcli.cli.export import export
from bertcli.cli.fill_mask import fill_mask
from bertcli.cli.heads import heads
from bertcli.cli.lens import lens
from bertcli.cli.neighbors import neighbors
from bertcli.cli.params import params
from bertcli.cli.rank import rank
from bertcli.cli.score import score
from bertcli.cli.tag import tag
from bertcli.cli.tokenize import tokenize
from bertcli.cli.trace import trace

app = typer.Typer(
    name="bertcli",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for one in (encode, classify, fill_mask, score, tag, answer, rank):
    one.register(app, panel="Run")
for one in (params, trace, neighbors, explain, lens, heads, diff):
    one.register(app, panel="Analyse")
for one in (tokenize, doctor):
    one.register(app, panel="Look")
export.register(app, panel="Make")


def _print_version(context: typer.Context, wanted: bool) -> None:
    if wanted:
        typer.echo(f"bertcli {bertcli.__version__}")
        if context.params["verbose"]:
            print_findings(without="bertcli")
        raise typer.Exit


@app.callback()
def bert(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, help="Print the version and exit.")
    ] = False,
    verbose: Annotated[  # eager, so that it is known before the version is printed, whichever comes first
        bool, typer.Option("--verbose", is_eager=True, help="With --version: also show what doctor shows.")
    ] = False,
) -> None:
    """BERT in the terminal: vectors, labels, entities, answers, masked words.

    bertcli fill-mask "She poured a cup of hot [MASK]."
    bertcli classify "I loved every minute of it."
    bertcli encode -i reviews.txt -o vectors.npy
    bertcli score "The cat sat on the mat."
    bertcli tag -m dslim/bert-base-NER "Angela Merkel visited Paris."

    Without -m a small bundled model is used. Any BERT checkpoint can be given:
    a folder, or a name on the Hugging Face Hub (-m bert-base-uncased).
    COMMAND --help has more examples.
    """
    if verbose:
        raise typer.BadParameter("--verbose is for --version, not for a command.")
