"""The one error class for what a user sees."""

from __future__ import annotations


class BertcliError(Exception):
    """One sentence that says what is wrong and what to do; the command line prints it as `Error: …`, status 1."""


def damaged() -> BertcliError:
    """What to raise for a result that is NaN or infinite, which sound weights never give."""
    return BertcliError("The result holds NaN or infinite numbers: the weights are damaged, so fetch the model again.")
