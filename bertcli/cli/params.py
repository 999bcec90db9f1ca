"""The command params, and what trace shares with it: the model they analyze, which need not have weights."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Literal

from bertcli.cli.options import ModelOptions, given_options, refuse, wrong
from bertcli.cli.output import PageOutput, show
from bertcli.errors import BertcliError
from bertcli.names import MASKED_SAMPLE
from bertcli.report.written import say_written
from bertcli.tasks.options import option

if TYPE_CHECKING:
    from bertcli.analysis.params.table import Summary
    from bertcli.loaded_model import LoadedModel
    from bertcli.report.documents import Document


# Graphs, drawn by analysis/params/plot.py, which --help does not import.
GRAPHS = (".dot", ".mmd", ".svg", ".png")


def _variants(incomplete: str) -> list[str]:
    from bertcli.models.registry import variants

    return [name for name in variants() if name.startswith(incomplete)]


@dataclass(frozen=True, eq=False, repr=False)
class AnalyzedOptions:
    """A model given as a variant or configuration, and sizes. An unknown variant is a typer.BadParameter."""

    panel: ClassVar = "Model without weights, and sizes"
    variant: str | None = option(
        None, "NAME",
        "tiny, mini, small, medium, base, large, or a size of another family, such as roberta-base (a wrong name lists "
        "all); textbook is the reduced model of tutorials: no segments, no norm after the embeddings, no biases and no "
        "output projection in attention. No weights are needed.", autocompletion=_variants,
    )  # fmt: skip
    config: str | None = option(None, "FILE", "A config.json; no weights are needed.")
    heads: str | None = option(
        None, "LIST",
        "Prediction heads, of those that the family has: pooler, mlm, nsp, classifier, token_classifier, qa, "
        "multiple_choice, rtd, sop; or none. (default: those of the checkpoint or of config.json, else the pooler)",
    )  # fmt: skip
    vocab_size: int | None = option(None, "N", "Override the vocabulary size.")
    seq_len: int | None = option(None, "N", "Tokens per sentence.")
    batch_size: int | None = option(None, "N", "Number of sentences.")

    def __post_init__(self) -> None:
        from bertcli.models.registry import variant_config

        if self.variant is not None:
            try:
                variant_config(self.variant)
            except BertcliError as error:
                raise wrong("--variant", str(error)) from None

    @property
    def without_weights(self) -> bool:
        """True if a variant or a configuration is named."""
        return self.variant is not None or self.config is not None


def analyzed_model(options: ModelOptions, analyzed: AnalyzedOptions, seed: int | None = None) -> "LoadedModel":
    """The model of the options: a checkpoint, variant or configuration, by default the bundled sample.

    A variant or a configuration has no weights, or random ones of a `seed`, and takes precedence over BERTCLI_MODEL.
    Errors: typer.BadParameter for wrong usage.
    """
    from bertcli.loaded_model import LoadedModel

    named = options.model not in (None, os.environ.get("BERTCLI_MODEL"))
    if named + (analyzed.variant is not None) + (analyzed.config is not None) > 1:
        raise wrong("-m, --variant, --config", "only one of these can be given.")
    if analyzed.without_weights:
        return LoadedModel.variant(
            analyzed.variant or "", config=analyzed.config, heads=analyzed.heads, weights=seed,
            vocab_size=analyzed.vocab_size,
        )  # fmt: skip
    refuse(analyzed, ("--vocab-size",), "this needs --variant or --config; a checkpoint's sizes are fixed.")
    arguments = options.load_arguments(
        MASKED_SAMPLE, "no model given (-m, --variant or --config); using the bundled %s."
    )
    return LoadedModel.load(**arguments, heads=analyzed.heads, text=False)


@dataclass(frozen=True, eq=False, repr=False)
class ParamsOptions:
    """The heads that are counted, and the style of the table."""

    depth: int = option(3, "N", "Show nested modules down to depth N. (default: 3)")
    collapse: bool | None = option(
        None, "", "One row for all layers. (default: only with --versus)", "--collapse/--no-collapse"
    )
    formulas: bool = option(False, "", "Show how each number is computed.")
    style: Literal["tree", "keras"] = option(
        "tree", "STYLE",
        "tree (default): the modules of the model that runs; keras: the rows and names of the Keras summary.",
    )  # fmt: skip
    versus: str | None = option(None, "NAME|FILE|DIR|HUB_ID", "Another variant, config.json or model to compare with.")
    dtype: Literal["float32", "float16", "bfloat16"] = option(
        "float32",
        "TYPE",
        "Type of all numbers of the pass whose memory is shown: float32 (default), float16, bfloat16.",
    )

    def refuse_contradictions(self, analyzed: AnalyzedOptions, draws: bool) -> None:
        """Wrong usage is a typer.BadParameter."""
        if "--dtype" in given_options(self) and None in (analyzed.seq_len, analyzed.batch_size):
            raise wrong("--dtype", "this is the type of a pass's memory: add --batch-size and --seq-len.")
        if self.style == "keras":
            refuse(self, ("--depth",), "the Keras summary has no nested modules.")
        if draws and self.versus is not None:
            raise wrong("--output", "a graph has the modules of one model; leave out --versus.")
        if self.versus is not None and self.formulas:
            raise wrong("--formulas", "they can be shown for only one model; leave out --versus.")


class ParamsOutput(PageOutput):
    """The table in a file, or the graph: .dot, .mmd (Mermaid); .svg and .png are drawn by Graphviz."""

    endings: ClassVar[tuple[str, ...]] = (*PageOutput.endings, *GRAPHS)


def params(model: ModelOptions, analyzed: AnalyzedOptions, options: ParamsOptions, output: ParamsOutput) -> None:
    """Count parameters module by module, as Keras' summary does.

    bertcli params --variant base --vocab-size 30000 --heads mlm,nsp --style keras
    bertcli params --variant base --formulas
    bertcli params --variant large --collapse
    bertcli params --variant base --batch-size 8 --seq-len 128 --dtype float16
    bertcli params --variant base --versus large
    bertcli params --config a/config.json --versus b/config.json
    bertcli params --config config.json --format json
    bertcli params --variant tiny -o tiny.mmd

    Rows add up to the total, and tied tensors are counted once. A variant or a
    config needs no weights. --batch-size with --seq-len adds the memory of a pass.

    -o FILE.dot (Graphviz), .mmd (Mermaid), .svg or .png draws the graph of the
    modules; the last two need Graphviz' command dot. Other endings have the table.
    """
    draws = output.ending in GRAPHS
    options.refuse_contradictions(analyzed, draws)
    output.check()
    if draws:
        from bertcli.analysis.params.plot import check_plot

        check_plot(str(output.output))
    models = [analyzed_model(model, analyzed)]
    if options.versus is not None:
        models.append(_other_model(options.versus, model, analyzed))
    summaries = _counted(models, analyzed, options)
    if draws:
        from bertcli.analysis.params.plot import plot

        plot(summaries[0], str(output.output))
        say_written(str(output.output))
        return
    document = _table(summaries, options)
    show(document, output, lambda: _page(document, summaries[0].model))


def _counted(models: "list[LoadedModel]", analyzed: AnalyzedOptions, options: ParamsOptions) -> "list[Summary]":
    """The rows of each model."""
    from bertcli.analysis.params import params

    collapse = len(models) > 1 if options.collapse is None else options.collapse
    return [
        params(
            model, depth=options.depth, style=options.style, collapse=collapse, seq_len=analyzed.seq_len,
            batch_size=analyzed.batch_size, dtype=options.dtype,
        )
        for model in models
    ]  # fmt: skip


def _table(summaries: "list[Summary]", options: ParamsOptions) -> "Document":
    """The rows of a model, or those of two side by side."""
    if len(summaries) > 1:
        from bertcli.analysis.params.compare import comparison

        return comparison(*summaries)
    from bertcli.analysis.params.table import summary_document

    return summary_document(summaries[0], options.formulas)


def _page(document: "Document", name: str) -> str:
    """The page of the table, and what stands below it."""
    from bertcli.report.page import element, page, table

    below = [element("p", line) for line in document.below]
    lead = "Parameters, module by module: a row has those of the modules inside it; tied tensors are counted once."
    rows = table("Parameters by module", document.columns, document.rows, wide=True)
    return page("Parameters", rows, *below, lead=lead, model=name)


def _other_model(name: str, model: ModelOptions, analyzed: AnalyzedOptions) -> "LoadedModel":
    """The model to compare with: a variant or configuration with the requested sizes and heads, else a checkpoint."""
    from bertcli.loaded_model import LoadedModel
    from bertcli.models.registry import variants

    names = variants()
    config = None if name in names else _config_alone(Path(name))
    if name in names or config is not None:
        return LoadedModel.variant(
            "" if config else name, config=config, heads=analyzed.heads, vocab_size=analyzed.vocab_size
        )
    try:
        return LoadedModel.load(name, **model.fetching, heads=analyzed.heads, text=False)
    except BertcliError as error:
        raise BertcliError(f"{error} (Variants to compare with are {', '.join(names)}.)") from None


def _config_alone(path: Path) -> Path | None:
    """The configuration that a path names: itself a .json file, or that of a folder without weights; else None."""
    if path.suffix == ".json" and path.is_file():
        return path
    from bertcli.folder.files import Folder, weights_file

    config = path / "config.json"
    return config if config.is_file() and weights_file(Folder(path)) is None else None
