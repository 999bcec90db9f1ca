"""The view diff: its options, whose docstring is the help. Its work is in compute/diff.py."""

from dataclasses import dataclass
from typing import Literal

from bertcli.tasks.options import option
from bertcli.wings.interpret.options import CutOptions
from bertcli.wings.interpret.view_spec import ViewSpec


@dataclass(frozen=True, eq=False, repr=False)
class DiffOptions(CutOptions):
    """Compare two models tensor by tensor and step by step; find where they first differ.

    bertcli diff bert-base-uncased my-fine-tune "The cat sat on the mat."
    bertcli diff my-model my-float16 "A cat." --tolerance 1e-2 --check all
    bertcli diff my-model my-copy --check all
    bertcli diff my-model arrays.npz
    bertcli diff my-model --versus my-copy "A cat."

    With a text both models run on it, and the table has a row for each step:

      Max abs   the largest absolute difference
      Max rel   that, divided by the step's largest number
      Cosine    the mean cosine of the two models' rows
      Beyond    "first" for the first step whose Max rel is above --tolerance,
                "yes" for later ones, which may only follow from it

    Below the table are the weights that differ most, and the steps that only one
    model has, such as those of a prediction head.

    Without a text only the weights are compared: which differ, which exist in one
    model only, and a digest of each model. A pipe is read only with -i -.

    OTHER may be a file of arrays: what trace -o wrote, which holds the ids of its
    text, or hidden states of transformers as hidden_states.0, hidden_states.1, …
    """

    tolerance: float = option(
        1e-4, "T", "Largest allowed difference, relative to the step's largest number. (default: 0.0001)", least=0
    )
    check: Literal["all", "common"] | None = option(
        None, "WHAT",
        "End with status 1 if something is beyond the tolerance, for CI: all, or what only one model has, too; "
        "common: only what both have matters.",
    )  # fmt: skip


SPEC = ViewSpec(DiffOptions, reads="two models")
