"""All ops: those of families, and those of kinds."""

from typing import Any

from bertcli.extensions.of_kinds import kind_modules
from bertcli.network import ops, position_ops
from bertcli.tracing.dispatch import Op


def ops_of(*modules: Any) -> dict[str, Op[Any]]:
    """The ops of some modules, by name."""
    return {name: op for module in modules for name, op in vars(module).items() if isinstance(op, Op)}


OF_KINDS = ops_of(*kind_modules("ops"))
OPS = {**ops_of(ops, position_ops), **OF_KINDS}
