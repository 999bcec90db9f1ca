"""What `params` and `trace` have in common: the model they analyse, which need not have weights."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal, get_args

import typer

from bertcli.cli.options import ModelOptions, option

if TYPE_CHECKING:
    from bertcli.model import Model

PANEL = "Model without weights, and sizes"
Variant = Literal[  # the keys of config.VARIANTS, which is not loaded for --help
    "tiny", "mini", "small", "medium", "base", "large", "base-cased", "large-cased", "base-multilingual-cased",
    "base-chinese", "textbook",
]  # fmt: skip


@dataclass(frozen=True)
class AnalysedOptions:
    """A model given as a variant or configuration, and sizes."""

    variant: Annotated[
        Variant | None,
        option(PANEL, "--variant", metavar="NAME", help=f"{', '.join(get_args(Variant))}; no weights are needed."),
    ] = None
    config: Annotated[
        str | None, option(PANEL, "--config", metavar="FILE", help="A config.json; no weights are needed.")
    ] = None
    heads: Annotated[
        str | None,
        option(PANEL, "--heads", metavar="LIST",
               help="Any of pooler,mlm,nsp,classifier, or none. (default: what the checkpoint has; else pooler)"),
    ] = None  # fmt: skip
    vocab_size: Annotated[
        int | None, option(PANEL, "--vocab-size", metavar="N", help="Override the vocabulary size.")
    ] = None
    num_labels: Annotated[
        int | None, option(PANEL, "--num-labels", metavar="N", help="Number of classifier labels.")
    ] = None
    seq_len: Annotated[int | None, option(PANEL, "--seq-len", metavar="N", help="Tokens per sentence.")] = None
    batch_size: Annotated[int | None, option(PANEL, "--batch-size", metavar="N", help="Number of sentences.")] = None

    @property
    def without_weights(self) -> bool:
        """Whether a variant or a configuration was named."""
        return self.variant is not None or self.config is not None


def analysed_model(context: typer.Context, options: ModelOptions, analysed: AnalysedOptions, sample: str) -> Model:
    """The checkpoint, variant or configuration asked for, else the bundled sample. Wrong usage is a typer.BadParameter.

    A variant or a configuration takes precedence over a model named in the environment.
    """
    source = context.get_parameter_source("model")
    named = options.model is not None and source is not None and source.name == "COMMANDLINE"
    if named + (analysed.variant is not None) + (analysed.config is not None) > 1:
        raise typer.BadParameter("only one of -m, --variant and --config can be given.", param_hint="--model")
    if not analysed.without_weights:
        return _checkpoint(options, analysed, sample)
    from bertcli.variants import variant

    return variant(
        analysed.variant or "",
        config=analysed.config,
        heads="pooler" if analysed.heads is None else analysed.heads,
        vocab_size=analysed.vocab_size,
        num_labels=analysed.num_labels,
    )


def _checkpoint(options: ModelOptions, analysed: AnalysedOptions, sample: str) -> Model:
    for name, value in (("--vocab-size", analysed.vocab_size), ("--num-labels", analysed.num_labels)):
        if value is not None:
            raise typer.BadParameter(
                "this needs --variant or --config; a checkpoint's sizes are fixed.", param_hint=name
            )
    from bertcli.model import load

    note = "no model given (-m, --variant or --config); using the bundled %s."
    return load(**options.wanted(sample, note), heads=analysed.heads, text=False)
