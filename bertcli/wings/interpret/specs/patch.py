"""The view patch: its options, whose docstring is the help. Its work is in compute/patch.py."""

from dataclasses import KW_ONLY, dataclass
from typing import Literal

from bertcli.errors import WrongOptions
from bertcli.tasks.options import for_python, option
from bertcli.wings.interpret.options import TargetOptions
from bertcli.wings.interpret.view_spec import ViewSpec, sample_for


@dataclass(frozen=True, eq=False, repr=False)
class PatchOptions(TargetOptions):
    """Activation patching: which layer and token carry the difference between two texts.

    bertcli patch "The [MASK] of Rome is old." "The [MASK] of Paris is old."
    bertcli patch "I loved every minute." "I hated every minute." --of heads
    bertcli patch "I loved it." "I hated it." --direction both --format json
    bertcli patch "A hot [MASK]." "A cold [MASK]." --word tea --foil water
    bertcli patch "I loved it." "I hated it." -o patch.html

    B, the corrupted text, runs again with one activation taken from A, the clean
    text. The effect is the share of the difference between the two results that
    this restores: 0 is nothing, 1 is all of it; values outside occur.

      --of layers            the state after a layer (0: the embeddings) at a token
      --of attention         the output of attention, before the residual sum
      --of feed-forward      the output of the feed-forward layer, before the sum
      --of heads             the output of one attention head

    denoise (the default) shows which activations suffice; --direction noise patches
    B's into A and shows which are necessary. An effect of 0 does not say that an
    activation never matters: others may carry the same.

    The result is the same as in explain, by default the prediction for A; with --word
    and --foil it is the difference of the two words' logits. The two
    texts should have equally many tokens. Otherwise tokens are aligned by their
    pieces, and those without a partner are not patched. A table too wide for the
    terminal is transposed. A .html file shows all four kinds of activations; a
    .pdf file is a figure of the one of --of, and a .npz file has its effects.
    """

    b: str = ""
    _: KW_ONLY
    max_length: int | None = for_python(None, "Cut texts to N tokens. (default: the model's own limit)")
    text_pair: str | None = option(None, "TEXT", "A second text to pair with both texts.", panel="Input")
    of: Literal["layers", "attention", "feed-forward", "heads"] = option(
        "layers", "KIND", "What is patched: layers (default), attention, feed-forward or heads."
    )
    foil: str | None = option(
        None, "WORD", "With --word: the result is the logit difference, x_word - x_foil, at the mask."
    )
    direction: Literal["denoise", "noise", "both"] = option(
        "denoise", "WAY", "denoise (default): B with what A has; noise: A with what B has; both."
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.foil is not None and self.word is None:
            raise WrongOptions(
                "A foil (--foil) needs the word that it is compared with: add word (--word).", "word", "foil"
            )


SPEC = ViewSpec(PatchOptions, reads="two texts", sample=sample_for, has_figure=True, has_arrays=True)
