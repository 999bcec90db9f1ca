"""The view diff: its options, whose docstring is the help. Its work is in compute/diff.py."""

from bertcli.lean import lean_dataclass
from bertcli.tasks.options import option
from bertcli.views.options import Cut
from bertcli.views.registry import ViewSpec


@lean_dataclass
class DiffOptions(Cut):
    """Compare two models tensor by tensor and step by step; find where they first differ.

    bertcli diff bert-base-uncased --versus my-fine-tune "The cat sat on the mat."
    bertcli diff my-model --versus my-float16 "The cat sat." --tolerance 1e-2 --check
    bertcli diff my-model --versus my-copy --check
    bertcli diff my-model --versus arrays.npz

    For each step: the largest difference, the same as a share of the step's
    largest number (which --tolerance is compared with), and the mean cosine of
    rows. The first step beyond the tolerance is where the models part; later
    ones follow from it and need no fault of their own. Below are the weights
    that differ most, and the steps that only one has, such as those of a head.

    Without a text the weights alone are compared: which differ, which only one
    has, and a digest of each model's. OTHER may be a file of arrays named as
    trace --save names them, which holds the ids of its text, or
    hidden_states.0, hidden_states.1, … as transformers counts them.
    """

    tolerance: float = option(1e-4, "T", "How much of a step's largest number may differ. (default: 0.0001)", least=0)
    check: bool = option(
        False, "", "End with status 1 if something is beyond the tolerance, or exists on one side only, for CI."
    )
    common: bool = option(False, "", "With --check: only what both have matters.")


SPEC = ViewSpec(DiffOptions, reads="two models", place=6)
