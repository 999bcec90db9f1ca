"""The view patch: its options, whose docstring is the help. Its work is in compute/patch.py."""

from dataclasses import KW_ONLY
from typing import Literal

from bertcli.lean import lean_dataclass
from bertcli.tasks.options import option
from bertcli.views.options import TargetOptions
from bertcli.views.registry import ViewSpec, sample_for


@lean_dataclass
class PatchOptions(TargetOptions):
    """Activation patching: which layer and token carry the difference between two texts.

    bertcli patch "The [MASK] of Rome is old." "The [MASK] of Paris is old."
    bertcli patch "I loved every minute." "I hated every minute." --of heads
    bertcli patch "I loved it." "I hated it." --direction both --format json
    bertcli patch "I loved it." "I hated it." -o patch.html

    Text B is run again, but in one place with what text A has there; the
    effect is the share of the difference between the two results that this
    brings: 0 nothing of it, 1 all of it; below and above happen. A place is the
    state after a layer at one token (the embeddings first), what attention or
    feed-forward gives there before it is added, or an attention head. --direction
    noise runs A with what B has: what is needed, where denoise shows what is
    enough. An effect of 0 does not say that a place never matters: others may
    carry the same.

    The result is that of explain; what is not named is what the model predicts
    for A. Texts should have equally many tokens; else tokens pair up where their
    pieces do, and those without a partner are not patched. Where the tokens do
    not fit the width of the terminal, the table is turned: tokens down, states
    across. A .html file shows all four kinds of places.
    """

    b: str = ""
    _: KW_ONLY
    text_pair: str | None = option(None, "TEXT", "A second text to pair with both texts.", panel="Input")
    of: Literal["layers", "attention", "feed-forward", "heads"] = option(
        "layers", "KIND", "What is patched: layers (default: states), attention, feed-forward, or heads."
    )
    direction: Literal["denoise", "noise", "both"] = option(
        "denoise", "WAY", "denoise (default): B with what A has; noise: A with what B has; both."
    )


SPEC = ViewSpec(PatchOptions, reads="two texts", sample=sample_for, place=4)
