"""Find wings: the folders of `bertcli/wings/`, each with an `Extension` named WING in its `__init__.py`.

No list anywhere names one: deleting a wing's folder removes it.
"""

from functools import cache
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules

from bertcli.extensions.declared import Extension

WINGS = "bertcli.wings"


@cache
def wings() -> tuple[Extension, ...]:
    """The wings that are there, by their names."""
    folder = Path(__file__).parents[1] / "wings"
    declared = (import_module(f"{WINGS}.{module.name}").WING for module in iter_modules([str(folder)]))
    by_name: dict[str, Extension] = {wing.name: wing for wing in declared}
    return tuple(wing for wing in by_name.values() if set(wing.stands_on) <= by_name.keys())
