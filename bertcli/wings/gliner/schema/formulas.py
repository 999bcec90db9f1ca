"""The formulas of this kind's ops (ops.py), in the notation of analysis/trace/formulas.py, which finds them by name."""

from collections.abc import Callable, Mapping
from typing import Any


def _beside(settings: Mapping[str, Any]) -> str:
    inner, activation = "[ x , y ] · W^T + b", settings.get("activation")
    return f"{activation} ( {inner} )" if activation else inner


RULES: dict[str, str | Callable[[Mapping[str, Any]], str]] = {
    "gru": "( 1 − z ) ⊙ n + z ⊙ h , [ r , z ] = σ ( x + y ) , n = tanh ( x_n + r ⊙ y_n )",
    "linear_beside": _beside,
}
# Ops of whose tables each column of a result reads a row: a page that works out any number needs them whole.
WHOLE_TABLES = frozenset({"linear_beside"})
