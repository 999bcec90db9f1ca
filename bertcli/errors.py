"""The one class of errors that a user sees."""

from __future__ import annotations


class BertcliError(Exception):
    """One sentence on what is wrong and what to do; the command line prints `Error: …` and exits with status 1."""


def damaged() -> BertcliError:
    """The error for a result that is NaN or infinite, which sound weights never give."""
    return BertcliError("The result holds NaN or infinite numbers: the weights are damaged, so fetch the model again.")
