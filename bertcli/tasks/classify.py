"""classify: the probabilities of labels."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from bertcli.errors import BertcliError, shown
from bertcli.files.texts import Pairs
from bertcli.tasks.options import Reading, option

Activation = Literal["softmax", "sigmoid", "none"]  # those that can be chosen
Head = Literal["classifier", "nsp"]


@dataclass(frozen=True, eq=False)
class ClassifyOptions(Reading):
    """Which labels are scored, and how; only one of candidates, choices, and head or activation.

    choices: continuations or answers of which one is right, for a multiple-choice model.
    """

    pairs: Pairs = None
    top_k: int | None = option(None, "K", "Show only the K best labels. (default: all)", least=1)
    head: Head | None = option(None, "HEAD", "classifier, or nsp: does the second text follow the first?")
    activation: Activation | None = option(
        None, "NAME", "Scores by softmax, sigmoid or none (default: what the model was made for)."
    )
    candidates: Iterable[str] | str | None = option(
        None, "A,B,C", "Score these labels of your own, with an NLI model (zero-shot).", read=str
    )
    template: str | None = option(
        None, "TEXT", "The sentence that takes a candidate at {}. (default: This example is {}.)"
    )
    multi_label: bool = option(False, "", "Several candidates may hold, each with a score of its own.")
    choices: Iterable[str] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if sum(value is not None for value in (self.head or self.activation, self.candidates, self.choices)) > 1:
            raise BertcliError("candidates, choices, and head or activation exclude each other: give only one.")
        if self.candidates is None and (self.template is not None or self.multi_label):
            raise BertcliError("template and multi_label are for candidates (--candidates), and there are none.")
        if self.template is not None and "{}" not in self.template:
            raise BertcliError(
                f"The template {shown(self.template)} has no {{}}, where the candidate belongs: write one (--template)."
            )
