"""What `params` and `trace` have in common: the model they analyse, which need not have weights."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args

import typer

from bertcli.cli.options import ModelOptions, option

if TYPE_CHECKING:
    from bertcli.model import Model

PANEL = "Model without weights, and sizes"
Variant = Literal[  # the names of families.variants(), which is not loaded for --help
    "tiny", "mini", "small", "medium", "base", "large", "base-cased", "large-cased", "base-multilingual-cased",
    "base-chinese", "roberta-base", "roberta-large", "xlm-roberta-base", "xlm-roberta-large", "camembert-base",
    "distilbert-base", "distilbert-base-cased", "distilbert-base-multilingual-cased", "mpnet-base",
    "electra-small", "electra-base", "electra-large", "modernbert-base", "modernbert-large",
    "deberta-v3-xsmall", "deberta-v3-small", "deberta-v3-base", "deberta-v3-large", "deberta-v2-xlarge", "albert-base",
    "albert-large", "albert-xlarge", "albert-xxlarge", "textbook",
]  # fmt: skip


@dataclass(frozen=True)
class AnalyzedOptions:
    """A model given as a variant or configuration, and sizes."""

    variant: Annotated[
        Variant | None,
        option(PANEL, "--variant", metavar="NAME",
               help=f"{', '.join(get_args(Variant))} (the reduced model of tutorials: no segments, no norm after the "
               "embeddings, no biases and no output projection in attention); no weights are needed."),
    ] = None  # fmt: skip
    config: Annotated[
        str | None, option(PANEL, "--config", metavar="FILE", help="A config.json; no weights are needed.")
    ] = None
    heads: Annotated[
        str | None,
        option(PANEL, "--heads", metavar="LIST",
               help="Any of pooler,mlm,nsp,classifier,token_classifier,qa,multiple_choice,rtd,sop that the family "
               "has, or none. (default: what the checkpoint has; else the pooler, where there is one)"),
    ] = None  # fmt: skip
    vocab_size: Annotated[
        int | None, option(PANEL, "--vocab-size", metavar="N", help="Override the vocabulary size.")
    ] = None
    num_labels: Annotated[
        int | None, option(PANEL, "--num-labels", metavar="N", help="Number of classifier labels.")
    ] = None
    override: Annotated[
        list[str] | None,
        option(PANEL, "--set", metavar="KEY=N", help="Another size, by its key in config.json: hidden_size=1024. "
               "Repeat for more."),
    ] = None  # fmt: skip
    seq_len: Annotated[int | None, option(PANEL, "--seq-len", metavar="N", help="Tokens per sentence.")] = None
    batch_size: Annotated[int | None, option(PANEL, "--batch-size", metavar="N", help="Number of sentences.")] = None

    @property
    def changes(self) -> dict[str, Any]:
        """The arguments of `bertcli.variant` that change a configuration. Wrong usage is a typer.BadParameter."""
        sizes = {}
        for one in self.override or ():
            key, _, size = one.partition("=")
            if not size.isdecimal():
                raise typer.BadParameter(f"{one!r} is not KEY=N, as in hidden_size=1024.", param_hint="--set")
            sizes[key] = int(size)
        return {"vocab_size": self.vocab_size, "num_labels": self.num_labels, "sizes": sizes}

    @property
    def without_weights(self) -> bool:
        """Whether a variant or a configuration was named."""
        return self.variant is not None or self.config is not None


def analyzed_model(context: typer.Context, options: ModelOptions, analyzed: AnalyzedOptions, sample: str) -> Model:
    """The checkpoint, variant or configuration asked for, else the bundled sample. Wrong usage is a typer.BadParameter.

    A variant or a configuration takes precedence over a model named in the environment.
    """
    source = context.get_parameter_source("model")
    named = options.model is not None and source is not None and source.name == "COMMANDLINE"
    if named + (analyzed.variant is not None) + (analyzed.config is not None) > 1:
        raise typer.BadParameter("only one of -m, --variant and --config can be given.", param_hint="--model")
    if not analyzed.without_weights:
        return _checkpoint(options, analyzed, sample)
    from bertcli.model import variant

    return variant(
        analyzed.variant or "",
        config=analyzed.config,
        heads=analyzed.heads,
        **analyzed.changes,
    )


def _checkpoint(options: ModelOptions, analyzed: AnalyzedOptions, sample: str) -> Model:
    fixed = (("--vocab-size", analyzed.vocab_size), ("--num-labels", analyzed.num_labels), ("--set", analyzed.override))
    for name, value in fixed:
        if value is not None:
            raise typer.BadParameter(
                "this needs --variant or --config; a checkpoint's sizes are fixed.", param_hint=name
            )
    from bertcli.model import load

    note = "no model given (-m, --variant or --config); using the bundled %s."
    return load(**options.wanted(sample, note), heads=analyzed.heads, text=False)
