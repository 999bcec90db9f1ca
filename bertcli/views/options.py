"""What the views of a model at work can be asked for: said once, as `bertcli.tasks.options` says it for the tasks."""

from dataclasses import KW_ONLY
from typing import Literal

from bertcli.errors import BertcliError
from bertcli.files.texts import Pairs
from bertcli.lean import lean_dataclass
from bertcli.tasks.options import Checked, option


@lean_dataclass
class Cut(Checked):
    """Where texts are cut."""

    _: KW_ONLY
    max_length: int | None = option(None, "N", "Cut texts to N tokens. (default: the model's own limit)", panel="Input")


@lean_dataclass
class Asked(Cut):
    """Which result is asked about; at most one of these. None of them: the predicted label, or the word at the mask.

    Errors: BertcliError for several of them.
    """

    _: KW_ONLY
    label: str | None = option(None, "LABEL", "A label's log-odds. (default: the predicted label)")
    word: str | None = option(None, "WORD", "A word's log-probability at the mask. (default: the best word)")
    versus: str | None = option(None, "TEXT", "The cosine of the text's vector with this text's.")
    batch_tokens: int | None = option(None, "N", "Tokens computed together. (default: 1536)", panel="Work", least=1)

    def __post_init__(self) -> None:
        super().__post_init__()
        if sum(result is not None for result in (self.label, self.word, self.versus)) > 1:
            raise BertcliError(
                "Ask about one result: a label, a word, or the cosine with a text (--label, --word, --versus)."
            )


@lean_dataclass
class ExplainOptions(Asked):
    """How words are left out."""

    pairs: Pairs = None
    _: KW_ONLY
    method: Literal["mask", "delete"] = option(
        "mask", "METHOD", "mask (default): put [MASK] in a word's place; delete: leave the word out."
    )


@lean_dataclass
class LensOptions(Cut):
    """What is looked at, and how much of it is shown."""

    pairs: Pairs = None
    _: KW_ONLY
    top_k: int = option(3, "K", "Predictions shown for each layer. (default: 3)", least=1)
    all_tokens: bool = option(False, "", "Look at every token of the text, not only at its masks.", "--all")


@lean_dataclass
class HeadsOptions(Asked):
    """What is measured.

    Errors: BertcliError for a result without `ablate`, a token without `rollout`, and `layer` with one of these.
    """

    pairs: Pairs = None
    _: KW_ONLY
    ablate: bool = option(False, "", "Also set each head's output to zero, and show what that changes, most first.")
    top_k: int | None = option(None, "K", "Show only the first K heads.", least=1)
    layer: str | None = option(
        None, "LAYER[.HEAD]",
        "Show the attention weights of one head of one text, or of a layer the mean of its heads: 3.2 is layer 3, head "
        "2.",
    )  # fmt: skip
    rollout: bool = option(False, "", "Also follow one text's attention through all layers: attention rollout.")
    token: int | None = option(
        None, "N", "With --rollout: the token that is shown, from 0. (default: a mask, else the first)", least=0
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.token is not None and not self.rollout:
            raise BertcliError("A token (--token) is only asked about with rollout (--rollout).")
        if not self.ablate and (self.label, self.word, self.versus) != (None, None, None):
            raise BertcliError(
                "A label, a word or another text (--label, --word, --versus) is only asked about with ablate "
                "(--ablate)."
            )
        if self.layer is not None and (self.ablate or self.rollout or self.top_k is not None):
            raise BertcliError(
                "One head's weights (--layer) are shown alone: leave out --ablate, --rollout and --top-k."
            )


@lean_dataclass
class PatchOptions(Asked):
    """What is put from one text's pass into the other's, which is `b`."""

    b: str = ""
    _: KW_ONLY
    text_pair: str | None = option(None, "TEXT", "A second text to pair with both texts.", panel="Input")
    of: Literal["layers", "attention", "feed-forward", "heads"] = option(
        "layers", "KIND", "What is patched: layers (default: states), attention, feed-forward, or heads."
    )
    direction: Literal["denoise", "noise", "both"] = option(
        "denoise", "WAY", "denoise (default): B with what A has; noise: A with what B has; both."
    )
