"""bertcli params"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

import typer

from bertcli.cli.analysed import AnalysedOptions, analysed_model
from bertcli.cli.command import command
from bertcli.cli.options import ModelOptions
from bertcli.cli.running import MASKED_SAMPLE, find_folder

if TYPE_CHECKING:
    from bertcli.account import Account
    from bertcli.model import Model
    from bertcli.output.document import Document

Style = Literal["tree", "keras"]


@command("params")
def params(
    context: typer.Context,
    model: ModelOptions,
    analysed: AnalysedOptions,
    depth: Annotated[int, typer.Option(metavar="N", help="Show modules inside modules down to N.")] = 3,
    collapse: Annotated[
        bool | None,
        typer.Option(
            "--collapse/--no-collapse", help="One row for all layers. (default: with --versus)", show_default=False
        ),
    ] = None,
    formulas: Annotated[bool, typer.Option("--formulas", help="Show how each number comes about.")] = False,
    style: Annotated[
        Style, typer.Option(help="Rows of the model that runs, or of the Keras summary with its layers' names.")
    ] = "tree",
    tensors: Annotated[
        bool, typer.Option("--tensors", help="List a checkpoint's tensors, and what is done with each.")
    ] = False,
    versus: Annotated[
        str | None, typer.Option(metavar="NAME|DIR|HUB_ID", help="Another variant or model to compare with.")
    ] = None,
    plot: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Draw the graph: .dot, .mmd (Mermaid); .svg and .png with Graphviz."),
    ] = None,
    format: Annotated[
        Literal["table", "json", "csv", "markdown"], typer.Option(help="How the result is printed.")
    ] = "table",
) -> None:
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
    _refuse_contradictions(analysed, tensors=tensors, versus=versus, plot=plot)
    if plot is not None:
        from bertcli.account.plot import check_plot

        check_plot(plot)

    def account(one: Model, collapse: bool) -> Account:
        from bertcli.account import params

        sizes = {"seq_len": analysed.seq_len, "batch_size": analysed.batch_size}
        return params(one, depth=depth, style=style, collapse=collapse, **sizes)

    document: Document
    if tensors:
        document = _tensors(model, analysed)
    elif versus is not None:
        from bertcli.account.compare import compare
        from bertcli.account.tables import comparison_document

        both = analysed_model(context, model, analysed, MASKED_SAMPLE), _other_model(versus, model, analysed)
        document = comparison_document(compare(*(account(one, collapse is not False) for one in both)))
    else:
        from bertcli.account.tables import account_document

        found = account(analysed_model(context, model, analysed, MASKED_SAMPLE), collapse is True)
        document = account_document(found, style, formulas)
        if plot is not None:
            from bertcli.account.plot import plot as draw

            draw(found, plot)
    from bertcli.output.document import print_document

    print_document(document, format)


def _refuse_contradictions(analysed: AnalysedOptions, *, tensors: bool, versus: str | None, plot: str | None) -> None:
    if tensors and analysed.without_weights:
        raise typer.BadParameter(
            "a variant or a config has no file to list; give a checkpoint.", param_hint="--tensors"
        )
    others = {
        "--versus": versus,
        "--plot": plot,
        "--vocab-size": analysed.vocab_size,
        "--num-labels": analysed.num_labels,
    }
    for name, value in others.items():
        if tensors and value is not None:
            raise typer.BadParameter("--tensors lists the tensors of one checkpoint as they are.", param_hint=name)
    if versus is not None and plot is not None:
        raise typer.BadParameter("one model is drawn; leave out --versus.", param_hint="--plot")


def _tensors(model: ModelOptions, analysed: AnalysedOptions) -> Document:
    folder = find_folder(model, MASKED_SAMPLE)
    from bertcli.account.tables import tensors_document
    from bertcli.checkpoint import open_checkpoint

    opened = open_checkpoint(folder, analysed.heads, partial=True)
    return tensors_document(model.model or MASKED_SAMPLE, opened.uses)


def _other_model(name: str, model: ModelOptions, analysed: AnalysedOptions) -> Model:
    """The model to compare with: a variant by its name, with the sizes and heads asked for, else a checkpoint."""
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
