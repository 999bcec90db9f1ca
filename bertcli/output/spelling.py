"""Replaces characters that a terminal's encoding lacks by ones it has: tables contain symbols such as × and ·."""

from __future__ import annotations

import codecs
import sys
from io import TextIOWrapper

HANDLER = "bertcli.spelled"
SPELLED = {
    "×": "x", "·": "*", "→": ">", "ᵀ": "T", "ᵢ": "i", "Σ": "+", "²": "^2", "³": "^3", "…": "...", "–": "-", "−": "-",
    "─": "-", "│": "|",
}  # fmt: skip


def spell_out() -> None:
    """From now on standard output and error replace characters they cannot encode, else write them as `\\xe9`."""
    codecs.register_error(HANDLER, _spelled)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors=HANDLER)


def _spelled(error: UnicodeError) -> tuple[str, int]:
    assert isinstance(error, UnicodeEncodeError)
    letters = error.object[error.start : error.end]
    return "".join(SPELLED.get(letter) or _escaped(letter) for letter in letters), error.end


def _escaped(letter: str) -> str:
    return letter.encode("ascii", "backslashreplace").decode("ascii")
