"""Respell characters that standard output cannot encode, as with an ASCII locale or Windows' cp1252.

A character that the encoding lacks is written with others that mean the same (≤ as <=), so a table keeps its columns
and a formula can be read. One without such a spelling, such as a Chinese letter, is escaped (`\\u6f22`).
"""

import codecs
import sys

SIGNS = {
    "─": "-", "—": "--", "–": "-", "−": "-", "…": "...", "·": "*", "∗": "*", "⊙": "*", "×": "x", "÷": "/", "±": "+/-",
    "→": "->", "↑": "^", "≤": "<=", "≥": ">=", "≠": "!=", "≈": "~", "∈": " in ", "∞": "inf", "√": "sqrt ", "Σ": "sum",
    "∑": "sum", "⌈": "ceil(", "⌉": ")", "ᵀ": "^T", "ŷ": "y", "▁": "_", "β": "beta", "γ": "gamma", "ε": "eps",
    "θ": "theta", "π": "pi", "σ": "sigma", "μ": "mu", "µ": "u", "Φ": "Phi", "«": "<<", "»": ">>",
    "░": ".", "▒": "+", "▓": "%", "█": "#",
    "“": '"', "”": '"', "„": '"', "‘": "'", "’": "'", "€": "EUR", "°": " deg",
    **dict.fromkeys("▏▎▍▌▋▊▉", "#"),
}  # fmt: skip
RAISED = dict(zip("⁰¹²³⁴⁵⁶⁷⁸⁹⁻", "0123456789-", strict=True))
LOWERED = dict(zip("₀₁₂₃₄₅₆₇₈₉ᵢ", "0123456789i", strict=True))
HANDLER = "bertcli.encodable"  # the name of `_spelled` among the error handlers of codecs


def encodable(text: str) -> str:
    """Respell a text so that standard output can encode it."""
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    if text.isascii() or encoding.lower().startswith("utf"):
        return text
    return text.encode(encoding, HANDLER).decode(encoding)


def _spelled(error: UnicodeError) -> tuple[str, int]:
    """The error handler that `codecs` calls: the replacement, and the position at which encoding goes on."""
    assert isinstance(error, UnicodeEncodeError)
    spelled, before = "", error.object[error.start - 1 : error.start]
    for sign in error.object[error.start : error.end]:
        spelled += _spelling(sign, before)
        before = sign
    return spelled, error.end


def _spelling(sign: str, before: str) -> str:
    """One sign in ASCII, after the one before it: of several raised digits the first alone gets a ^."""
    if sign in RAISED:
        return RAISED[sign] if before in RAISED else f"^{RAISED[sign]}"
    if sign in LOWERED:
        return LOWERED[sign] if before in LOWERED else f"_{LOWERED[sign]}"
    return SIGNS.get(sign) or sign.encode("unicode_escape").decode()


codecs.register_error(HANDLER, _spelled)
