"""The options that several views share: maximum length (`CutOptions`) and the target (`TargetOptions`)."""

from dataclasses import KW_ONLY, dataclass

from bertcli.errors import BertcliError, check_count
from bertcli.tasks.options import Checked, option


@dataclass(frozen=True, eq=False, repr=False)
class CutOptions(Checked):
    """The option of every view: how many tokens a text may have."""

    _: KW_ONLY
    max_length: int | None = option(None, "N", "Cut texts to N tokens. (default: the model's own limit)", panel="Input")


@dataclass(frozen=True, eq=False, repr=False)
class TargetOptions(CutOptions):
    """The target: a label, a word at a mask, or the cosine with a text. None: the predicted label, or the best word.

    Errors: BertcliError for more than one of them. compute/target.py computes the result.
    """

    _: KW_ONLY
    label: str | None = option(None, "LABEL", "A label's log-odds. (default: the predicted label)")
    word: str | None = option(None, "WORD", "A word's log-probability at the mask. (default: the best word)")
    contrast: str | None = option(None, "TEXT", "The cosine of the text's vector with this text's.")
    batch_tokens: int | None = None  # tokens computed together, 1,536 if None; for Python alone

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.batch_tokens is not None:
            check_count("batch_tokens", self.batch_tokens, 1)
        if sum(result is not None for result in (self.label, self.word, self.contrast)) > 1:
            raise BertcliError(
                "Choose one result: a label, a word, or the cosine with a text (--label, --word, --contrast)."
            )
