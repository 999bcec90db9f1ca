"""What the folders of kinds bring: files that are asked for by name, as folder_type or formulas.

The folders are those of bertcli/kinds/, which no list names, and those that wings declare (`kind_folders`). A folder
that has no such file brings nothing of it, and one that is deleted leaves nothing behind.
"""

from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType

from bertcli.extensions.wing import wings

KINDS = "bertcli.kinds"


def brought_kinds() -> tuple[str, ...]:
    """The modules of the kinds that wings bring, whose `read` is asked before those of the core."""
    return tuple(f"{package}.kind" for package in _brought())


def fitting(use: str) -> str | None:
    """Return a popular model for what no kind of the core does, as in "tag --labels"; None: no kind has.

    A folder says so in `FITTING` of its kind.py.
    """
    for module in kind_modules("kind"):
        fitting_models: dict[str, str] = getattr(module, "FITTING", {})
        if use in fitting_models:
            return fitting_models[use]
    return None


@cache
def kind_files(name: str) -> tuple[Path, ...]:
    """The files of this name in the folders of kinds."""
    return tuple(folder / name for folder in _folders().values() if (folder / name).is_file())


@cache
def kind_modules(name: str) -> tuple[ModuleType, ...]:
    """The modules of this name in the folders of kinds."""
    packages = [package for package, folder in _folders().items() if (folder / f"{name}.py").is_file()]
    return tuple(import_module(f"{package}.{name}") for package in packages)


def _brought() -> list[str]:
    """The packages of kinds that wings bring."""
    return [package for wing in wings() for package in wing.kind_folders]


@cache
def _folders() -> dict[str, Path]:
    """The folders of kinds by the names of their packages."""
    home = Path(__file__).parents[1] / "kinds"
    own = {f"{KINDS}.{folder.name}": folder for folder in sorted(home.iterdir()) if folder.is_dir()}
    brought = {package: Path(str(import_module(package).__file__)).parent for package in _brought()}
    return own | brought
