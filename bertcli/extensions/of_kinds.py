"""What the folders of kinds bring (bertcli/kinds/): files that are asked for by name, as folder_type or formulas.

No list names them: a folder that has no such file brings nothing of it, and one that is deleted leaves nothing behind.
"""

from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType

KINDS = Path(__file__).parents[1] / "kinds"


@cache
def kind_files(name: str) -> tuple[Path, ...]:
    """The files of this name in the folders of kinds."""
    return tuple(sorted(KINDS.glob(f"*/{name}")))


@cache
def kind_modules(name: str) -> tuple[ModuleType, ...]:
    """The modules of this name in the folders of kinds."""
    return tuple(import_module(f"bertcli.kinds.{file.parent.name}.{name}") for file in kind_files(f"{name}.py"))
