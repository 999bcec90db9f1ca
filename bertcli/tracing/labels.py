"""The words of the operation table: what each step is called, by its place in the tree. Words only, no sizes.

A place is a module class, the field of it that was used last, and an op: a Linear or LayerNorm is known by the module
it is a field of. Groups and names are those of the analysis in the literature ("1 Multi-head attention").
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

from bertcli.parts import Module, Op

if TYPE_CHECKING:
    from bertcli.tracing.steps import Operand

Place = tuple[type[Module] | None, str, str]  # module class, field, op


class Words(NamedTuple):
    """What a step, its operands (data before parameters) and its result are called."""

    group: str
    operation: str
    inputs: tuple[str, ...]
    output: str


def words_for(places: Iterable[Place], op: Op[Any], operands: list[Operand]) -> Words:
    """The words of the first place that has any; else the op's own name, and the parameters' paths."""
    for place in places:
        if place in WORDS:
            return WORDS[place]
    shown = sorted((one for one in operands if not one.is_vector), key=lambda one: one.parameter is not None)
    return Words("", op.name, tuple(one.parameter.path if one.parameter else "" for one in shown), "")


WORDS: dict[Place, Words] = {}
