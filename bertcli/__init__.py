"""BERT in the terminal with nothing heavier than NumPy; start with `bertcli.load()`.

Names are imported on first use, so that `bertcli --help` need not wait for NumPy.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from bertcli.blas import choose_kernel, choose_threads

if TYPE_CHECKING:
    from bertcli import functional as functional
    from bertcli.account import params as params
    from bertcli.config import BertConfig as BertConfig
    from bertcli.errors import BertcliError as BertcliError
    from bertcli.model import Model as Model
    from bertcli.model import load as load
    from bertcli.tracing import trace as trace
    from bertcli.variants import variant as variant

# before anything here imports NumPy
choose_kernel()
choose_threads()

__version__ = "0.3.0"

_HOMES = {
    "BertConfig": "bertcli.config",
    "BertcliError": "bertcli.errors",
    "Model": "bertcli.model",
    "load": "bertcli.model",
    "params": "bertcli.account",
    "trace": "bertcli.tracing",
    "variant": "bertcli.variants",
}
__all__ = ["BertConfig", "BertcliError", "Model", "functional", "load", "params", "trace", "variant"]


def __getattr__(name: str) -> Any:
    if name == "functional":
        return import_module("bertcli.functional")
    if name not in _HOMES:
        raise AttributeError(f"module 'bertcli' has no attribute '{name}'")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
