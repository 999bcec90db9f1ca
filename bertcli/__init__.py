"""BERT in the terminal with nothing heavier than NumPy; start with `bertcli.load()`.

Names are imported on first use, so that `bertcli --help` need not wait for NumPy.
"""

import os
from contextlib import suppress
from importlib import import_module
from typing import TYPE_CHECKING, Any

from bertcli.engine.blas import choose_kernel
from bertcli.engine.threads import choose_threads
from bertcli.names import NAMES

if TYPE_CHECKING:
    from bertcli import functional
    from bertcli._version import __version__
    from bertcli.analysis.params import params
    from bertcli.analysis.trace import trace
    from bertcli.errors import BertcliError
    from bertcli.model import Model, load, variant
    from bertcli.models.bert import BertConfig

choose_kernel()  # before anything here imports NumPy
choose_threads()

# Written out, since type checkers do not read `NAMES`.
__all__ = [
    "BertConfig", "BertcliError", "Model", "__version__", "functional", "load", "params", "trace", "variant",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name in NAMES:
        home = import_module(NAMES[name])
        return home if name == "functional" else getattr(home, name)
    # `from bertcli import files` asks for a name, before it imports the room.
    is_room = any(os.path.exists(os.path.join(folder, room)) for folder in __path__ for room in (name, f"{name}.py"))
    if not name.startswith("_") and not is_room:
        # What wings and plugins bring is theirs to say.
        from bertcli.extensions import exported

        with suppress(KeyError):
            return exported(name)
    from bertcli.errors import no_attribute

    raise no_attribute("module 'bertcli'", name)


def __dir__() -> list[str]:
    from bertcli.extensions import exported_names

    return sorted([*__all__, *exported_names()])
