"""bertcli params"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from bertcli.cli.analysed import AnalysedOptions, analysed_model
from bertcli.cli.command import command
from bertcli.cli.options import ModelOptions, option
from bertcli.cli.running import MASKED_SAMPLE, find_folder

if TYPE_CHECKING:
    from bertcli.account import Account
    from bertcli.model import Model
    from bertcli.output.document import Document

Style = Literal["tree", "keras"]
Format = Literal["table", "json", "csv", "markdown"]
DEPTH = 3


@dataclass(frozen=True)
class ParamsOptions:
    """What is counted, and how it is shown."""

    depth: Annotated[
        int, option(None, "--depth", metavar="N", show_default=True, help="Show nested modules down to depth N.")
    ] = DEPTH
    collapse: Annotated[
        bool | None,
        option(None, "--collapse/--no-collapse", help="One row for all layers. (default: only with --versus)"),
    ] = None
    formulas: Annotated[bool, option(None, "--formulas", help="Show how each number is computed.")] = False
    style: Annotated[
        Style,
        option(None, "--style", metavar=None, show_default=True,
               help="tree: the modules of the model that runs; keras: the rows and names of the Keras summary."),
    ] = "tree"  # fmt: skip
    tensors: Annotated[
        bool, option(None, "--tensors", help="List a checkpoint's tensors and what is done with each.")
    ] = False
    versus: Annotated[
        str | None,
        option(None, "--versus", metavar="NAME|DIR|HUB_ID", help="Another variant or model to compare with."),
    ] = None
    plot: Annotated[
        str | None,
        option(None, "--plot", metavar="FILE",
               help="Draw the graph: .dot, .mmd (Mermaid); .svg and .png need Graphviz."),
    ] = None  # fmt: skip
    format: Annotated[
        Format, option(None, "--format", metavar=None, show_default=True, help="How the result is printed.")
    ] = "table"

    def refuse_contradictions(self, analysed: AnalysedOptions) -> None:
        """Wrong usage is a typer.BadParameter."""
        if self.tensors and analysed.without_weights:
            raise typer.BadParameter(
                "a variant or a config has no tensor files to list; give a checkpoint.", param_hint="--tensors"
            )
        others = {
            "--versus": self.versus,
            "--plot": self.plot,
            "--vocab-size": analysed.vocab_size,
            "--num-labels": analysed.num_labels,
            "--seq-len": analysed.seq_len,
            "--batch-size": analysed.batch_size,
            "--depth": None if self.depth == DEPTH else self.depth,
            "--collapse": self.collapse,
            "--formulas": self.formulas or None,
            "--style": None if self.style == "tree" else self.style,
        }
        for name, value in others.items():
            if self.tensors and value is not None:
                raise typer.BadParameter("--tensors lists the tensors of one checkpoint as they are.", param_hint=name)
        if self.versus is not None and self.plot is not None:
            raise typer.BadParameter("only one model can be drawn; leave out --versus.", param_hint="--plot")
        if self.versus is not None and self.formulas:
            raise typer.BadParameter(
                "they can be shown for only one model; leave out --versus.", param_hint="--formulas"
            )


@command("params")
def params(context: typer.Context, model: ModelOptions, analysed: AnalysedOptions, wanted: ParamsOptions) -> None:
    """Count the parameters of a model, module by module.

    bertcli params --variant base --formulas
    bertcli params --variant large --collapse
    bertcli params --variant base --vocab-size 30000 --heads mlm,nsp --style keras
    bertcli params --variant base --versus large
    bertcli params -m my-model --tensors
    bertcli params --config config.json --format json
    bertcli params --variant tiny --plot tiny.svg

    Rows add up to the total, and tied tensors are counted once. A variant or a config needs no weights.
    """
    wanted.refuse_contradictions(analysed)
    if wanted.plot is not None:
        from bertcli.account.plot import check_plot

        check_plot(wanted.plot)
    if wanted.tensors:
        document = _tensors(model, analysed)
    else:
        counted = analysed_model(context, model, analysed, MASKED_SAMPLE)
        document = (
            _rows(counted, analysed, wanted) if wanted.versus is None else _versus(counted, model, analysed, wanted)
        )
    from bertcli.output.document import print_document

    print_document(document, wanted.format)


def _rows(model: Model, analysed: AnalysedOptions, wanted: ParamsOptions) -> Document:
    """The rows of a model; --plot also draws it."""
    from bertcli.account.tables import account_document

    found = _account(model, analysed, wanted, wanted.collapse is True)
    if wanted.plot is not None:
        from bertcli.account.plot import plot

        plot(found, wanted.plot)
    return account_document(found, wanted.formulas)


def _versus(model: Model, options: ModelOptions, analysed: AnalysedOptions, wanted: ParamsOptions) -> Document:
    """The rows of two models side by side."""
    from bertcli.account.compare import compare
    from bertcli.account.tables import comparison_document

    assert wanted.versus is not None
    both = model, _other_model(wanted.versus, options, analysed)
    return comparison_document(
        compare(*(_account(one, analysed, wanted, wanted.collapse is not False) for one in both))
    )


def _account(model: Model, analysed: AnalysedOptions, wanted: ParamsOptions, collapse: bool) -> Account:
    from bertcli.account import params

    sizes = {"seq_len": analysed.seq_len, "batch_size": analysed.batch_size}
    return params(model, depth=wanted.depth, style=wanted.style, collapse=collapse, **sizes)


def _tensors(model: ModelOptions, analysed: AnalysedOptions) -> Document:
    folder = find_folder(model, MASKED_SAMPLE)
    from bertcli.account.tables import tensors_document
    from bertcli.checkpoint import open_checkpoint

    opened = open_checkpoint(folder, analysed.heads, partial=True)
    return tensors_document(model.model or MASKED_SAMPLE, opened.uses)


def _other_model(name: str, model: ModelOptions, analysed: AnalysedOptions) -> Model:
    """The model to compare with: a named variant with the requested sizes and heads, else a checkpoint."""
    from bertcli.config import VARIANTS

    if name in VARIANTS:
        from bertcli.variants import variant

        heads = "pooler" if analysed.heads is None else analysed.heads
        return variant(name, heads=heads, vocab_size=analysed.vocab_size, num_labels=analysed.num_labels)
    from bertcli.errors import BertcliError
    from bertcli.model import load

    try:
        return load(name, **model.fetching, heads=analysed.heads, text=False)
    except BertcliError as error:
        raise BertcliError(f"{error} (Variants to compare with are {', '.join(VARIANTS)}.)") from None
