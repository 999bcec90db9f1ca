"""bertcli params"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from bertcli.cli.analyzed import AnalyzedOptions, analyzed_model
from bertcli.cli.command import command
from bertcli.cli.job import MASKED_SAMPLE, find_folder
from bertcli.cli.options import ModelOptions, option

if TYPE_CHECKING:
    from bertcli.analysis.params import Summary
    from bertcli.model import Model
    from bertcli.report import Document

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
        option(
            None,
            "--versus",
            metavar="NAME|FILE|DIR|HUB_ID",
            help="Another variant, config.json or model to compare with.",
        ),
    ] = None
    plot: Annotated[
        str | None,
        option(None, "--plot", metavar="FILE",
               help="Draw the graph: .dot, .mmd (Mermaid); .svg and .png need Graphviz."),
    ] = None  # fmt: skip
    format: Annotated[
        Format, option(None, "--format", metavar=None, show_default=True, help="How the result is printed.")
    ] = "table"

    def refuse_contradictions(self, analyzed: AnalyzedOptions) -> None:
        """Wrong usage is a typer.BadParameter."""
        if self.tensors and analyzed.without_weights:
            raise typer.BadParameter(
                "a variant or a config has no tensor files to list; give a checkpoint.", param_hint="--tensors"
            )
        others = {
            "--versus": self.versus,
            "--plot": self.plot,
            "--vocab-size": analyzed.vocab_size,
            "--num-labels": analyzed.num_labels,
            "--set": analyzed.override,
            "--seq-len": analyzed.seq_len,
            "--batch-size": analyzed.batch_size,
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
def params(context: typer.Context, model: ModelOptions, analyzed: AnalyzedOptions, wanted: ParamsOptions) -> None:
    """Count the parameters of a model, module by module.

    bertcli params --variant base --formulas
    bertcli params --variant large --collapse
    bertcli params --variant base --vocab-size 30000 --heads mlm,nsp --style keras
    bertcli params --variant base --versus large
    bertcli params --variant base --set hidden_size=1024 --set num_hidden_layers=6
    bertcli params --config a/config.json --versus b/config.json
    bertcli params -m my-model --tensors
    bertcli params --config config.json --format json
    bertcli params --variant tiny --plot tiny.svg

    Rows add up to the total, and tied tensors are counted once. A variant or a config needs no weights.
    """
    wanted.refuse_contradictions(analyzed)
    if wanted.plot is not None:
        from bertcli.analysis.params.plot import check_plot

        check_plot(wanted.plot)
    if wanted.tensors:
        document = _tensors(model, analyzed)
    else:
        counted = analyzed_model(context, model, analyzed, MASKED_SAMPLE)
        document = (
            _rows(counted, analyzed, wanted) if wanted.versus is None else _versus(counted, model, analyzed, wanted)
        )
    from bertcli.report import print_document

    print_document(document, wanted.format)


def _rows(model: Model, analyzed: AnalyzedOptions, wanted: ParamsOptions) -> Document:
    """The rows of a model; --plot also draws it."""
    from bertcli.analysis.params.summary import summary_document

    found = _summary(model, analyzed, wanted, wanted.collapse is True)
    if wanted.plot is not None:
        from bertcli.analysis.params.plot import plot

        plot(found, wanted.plot)
    return summary_document(found, wanted.formulas)


def _versus(model: Model, options: ModelOptions, analyzed: AnalyzedOptions, wanted: ParamsOptions) -> Document:
    """The rows of two models side by side."""
    from bertcli.analysis.params.compare import comparison

    assert wanted.versus is not None
    both = model, _other_model(wanted.versus, options, analyzed)
    return comparison(*(_summary(one, analyzed, wanted, wanted.collapse is not False) for one in both))


def _summary(model: Model, analyzed: AnalyzedOptions, wanted: ParamsOptions, collapse: bool) -> Summary:
    from bertcli.analysis.params import params

    sizes = {"seq_len": analyzed.seq_len, "batch_size": analyzed.batch_size}
    return params(model, depth=wanted.depth, style=wanted.style, collapse=collapse, **sizes)


def _tensors(model: ModelOptions, analyzed: AnalyzedOptions) -> Document:
    folder = find_folder(model, MASKED_SAMPLE)
    from bertcli.analysis.params.summary import tensors_document
    from bertcli.checkpoint.loading import open_checkpoint

    opened = open_checkpoint(folder, analyzed.heads, partial=True)
    return tensors_document(model.model or MASKED_SAMPLE, opened.uses)


def _other_model(name: str, model: ModelOptions, analyzed: AnalyzedOptions) -> Model:
    """The model to compare with: a variant or configuration with the requested sizes and heads, else a checkpoint."""
    from bertcli.checkpoint.families import variants

    if name in (known := variants()):
        from bertcli.model import variant

        return variant(name, heads=analyzed.heads, **analyzed.changes)
    if (config := _config_alone(Path(name))) is not None:
        from bertcli.model import variant

        return variant(config=config, heads=analyzed.heads, **analyzed.changes)
    from bertcli.errors import BertcliError
    from bertcli.model import load

    try:
        return load(name, **model.fetching, heads=analyzed.heads, text=False)
    except BertcliError as error:
        raise BertcliError(f"{error} (Variants to compare with are {', '.join(known)}.)") from None


def _config_alone(given: Path) -> Path | None:
    """The configuration that a path names: itself a .json file, or that of a folder without weights; else None."""
    if given.suffix == ".json" and given.is_file():
        return given
    config = given / "config.json"
    return config if config.is_file() and not any(given.glob("*.safetensors*")) else None
