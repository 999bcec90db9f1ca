"""The tree itself as rows: its modules down to a depth, connected as the dry run shows."""

from __future__ import annotations

from bertcli.account.flow import flow, nearest
from bertcli.account.ledger import RowPlan
from bertcli.account.shapes import Input
from bertcli.model import Model
from bertcli.parts import Module
from bertcli.tree import walk


def module_plans(model: Model, depth: int, given: Input) -> list[RowPlan]:
    """A plan for every module at most `depth` levels below the whole model; the whole itself only for depth 0."""
    types = {path: type(item).__name__ for path, item in walk(model.network) if isinstance(item, Module)}
    levels: dict[str, int] = {}
    for path in types:
        levels[path] = levels[nearest(path.rpartition(".")[0], levels)] + 1 if path else 0
    shown = [path for path, level in levels.items() if min(1, depth) <= level <= depth]
    found = flow(model.network, shown)
    return [
        RowPlan(path, types[path], given.text(found.shapes[path]), found.inputs[path], holds=path) for path in shown
    ]
