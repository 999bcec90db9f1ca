"""The one error class for what a user sees."""

from __future__ import annotations


class BertcliError(Exception):
    """One sentence that says what is wrong and what to do; the command line prints it as `Error: …` and exits with 1."""
