"""The formulas of this kind's ops (ops.py), in the notation of analysis/trace/formulas.py, which finds them by name."""

from collections.abc import Callable, Mapping
from typing import Any


def _sum(settings: Mapping[str, Any]) -> str:
    activation = settings.get("activation")
    return f"{activation} ( x_i + y_j )" if activation else "x_i + y_j"


RULES: dict[str, str | Callable[[Mapping[str, Any]], str]] = {
    "lstm": (
        "o ⊙ tanh ( c_t ) , c_t = f ⊙ c_{t − 1} + i ⊙ g , [ i , f , o ] = σ ( W · x_t + U · h_{t − 1} + b ) , "
        "g = tanh ( W · x_t + U · h_{t − 1} + b )"
    ),
    "add_pairs": _sum,
    "label_scores": "x · y",
}
# Ops of which a number depends on all rows of their tables: a page that works it out needs these whole.
WHOLE_TABLES = frozenset({"lstm"})
