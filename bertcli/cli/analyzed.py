"""What `params` and `trace` have in common: the model they analyze, which need not have weights."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from bertcli.cli.options import MASKED_SAMPLE, ModelOptions, refuse, wrong
from bertcli.tasks.options import option

if TYPE_CHECKING:
    from bertcli.model import Model

PANEL = "Model without weights, and sizes"


def _variants(incomplete: str) -> list[str]:
    from bertcli.models.registry import variants

    return [name for name in variants() if name.startswith(incomplete)]


@dataclass(frozen=True)
class AnalyzedOptions:
    """A model given as a variant or configuration, and sizes."""

    variant: str | None = option(
        None, "NAME",
        "tiny, mini, small, medium, base, large, or a size of another family, such as roberta-base (a wrong name lists "
        "all); textbook is the reduced model of tutorials: no segments, no norm after the embeddings, no biases and no "
        "output projection in attention. No weights are needed.", panel=PANEL, autocompletion=_variants,
    )  # fmt: skip
    config: str | None = option(None, "FILE", "A config.json; no weights are needed.", panel=PANEL)
    heads: str | None = option(
        None, "LIST",
        "Any of pooler, mlm, nsp, classifier, token_classifier, qa, multiple_choice, rtd, sop that the family has, or "
        "none. (default: what the checkpoint has or config.json names; else the pooler)", panel=PANEL,
    )  # fmt: skip
    vocab_size: int | None = option(None, "N", "Override the vocabulary size.", panel=PANEL)
    num_labels: int | None = option(None, "N", "Number of classifier labels.", panel=PANEL)
    override: list[str] | None = option(
        None, "KEY=N", "Another size, by its key in config.json: num_hidden_layers=6. Repeat for more.", "--set",
        panel=PANEL,
    )  # fmt: skip
    seq_len: int | None = option(None, "N", "Tokens per sentence.", panel=PANEL)
    batch_size: int | None = option(None, "N", "Number of sentences.", panel=PANEL)

    @property
    def changes(self) -> dict[str, Any]:
        """The arguments of `bertcli.variant` that change a configuration. Wrong usage is a typer.BadParameter."""
        sizes = {}
        for one in self.override or ():
            key, _, size = one.partition("=")
            if not size.isdecimal():
                raise wrong("--set", f"{one!r} is not KEY=N, as in num_hidden_layers=6.")
            sizes[key] = int(size)
        return {"vocab_size": self.vocab_size, "num_labels": self.num_labels, "sizes": sizes}

    @property
    def without_weights(self) -> bool:
        """Whether a variant or a configuration was named."""
        return self.variant is not None or self.config is not None


def analyzed_model(options: ModelOptions, analyzed: AnalyzedOptions, seed: int | None = None) -> Model:
    """The checkpoint, variant or configuration asked for, else the bundled sample. Wrong usage is a typer.BadParameter.

    With a `seed` a variant or a configuration has random weights. A
    variant or a configuration takes precedence over a model named in the environment.
    """
    from bertcli.model import load, variant

    named = options.model not in (None, os.environ.get("BERTCLI_MODEL"))
    if named + (analyzed.variant is not None) + (analyzed.config is not None) > 1:
        raise wrong("--model", "only one of -m, --variant and --config can be given.")
    if analyzed.variant is not None:
        _check_variant(analyzed.variant)
    if analyzed.without_weights:
        return variant(
            analyzed.variant or "", config=analyzed.config, heads=analyzed.heads, weights=seed, **analyzed.changes
        )
    sizes = ("--vocab-size", "--num-labels", "--set")
    refuse(analyzed, sizes, "this needs --variant or --config; a checkpoint's sizes are fixed.")
    wanted = options.wanted(MASKED_SAMPLE, "no model given (-m, --variant or --config); using the bundled %s.")
    return load(**wanted, heads=analyzed.heads, text=False)


def _check_variant(name: str) -> None:
    from bertcli.errors import BertcliError
    from bertcli.models.registry import variant_config

    try:
        variant_config(name)
    except BertcliError as error:
        raise wrong("--variant", str(error)) from None
