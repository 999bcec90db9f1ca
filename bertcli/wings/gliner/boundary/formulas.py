"""The formulas of this kind's ops (ops.py), in the notation of analysis/trace/formulas.py, which finds them by name."""

from collections.abc import Callable, Mapping
from typing import Any

RULES: dict[str, str | Callable[[Mapping[str, Any]], str]] = {
    "gather_or": "x_i",
    "pair_prior": "( x_s · y_e / √D ) W + b",
    "length_terms": "[ log ( 1 + n ) , n / w , 1 / √n ] · W^T + b",
    "span_means": "( x_s + … + x_{e − 1} ) / ( e − s )",
    "modulate": "x_i ⊙ ( 1 + γ_j ) + β_j",
    "pair_logits": "x + y + a_s + b_e + ( z_s + … + z_{e − 1} ) / √( e − s )",
}
# Ops of which a number depends on rows of their tables far apart: a page that works it out needs these whole.
WHOLE_TABLES = frozenset({"pair_prior", "span_means", "pair_logits"})
