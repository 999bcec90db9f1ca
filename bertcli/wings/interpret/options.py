"""The options that several views share: maximum length (`CutOptions`) and the target (`TargetOptions`)."""

from dataclasses import KW_ONLY, dataclass

from bertcli.errors import WrongOptions
from bertcli.tasks.options import Checked, for_python, option


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
    batch_tokens: int | None = for_python(None, "Tokens that are computed together. (default: 1,536)", least=1)

    def __post_init__(self) -> None:
        super().__post_init__()
        if sum(result is not None for result in (self.label, self.word, self.contrast)) > 1:
            raise WrongOptions(
                "Choose one result: a label, a word, or the cosine with a text (--label, --word, --contrast).",
                "label",
                "word",
                "contrast",
            )
