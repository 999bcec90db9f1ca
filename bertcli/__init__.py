"""BERT in the terminal with nothing heavier than NumPy; start with `bertcli.load()`.

Names are imported on first use, so that `bertcli --help` need not wait for NumPy.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from bertcli.engine.blas import choose_kernel
from bertcli.engine.threads import choose_threads

if TYPE_CHECKING:
    from bertcli import functional
    from bertcli._version import __version__
    from bertcli.analysis.params import params
    from bertcli.analysis.trace import trace
    from bertcli.errors import BertcliError
    from bertcli.model import Model, load, variant
    from bertcli.models.bert import BertConfig
    from bertcli.wings.interpret.compute.diff import diff
    from bertcli.wings.interpret.compute.explain import explain
    from bertcli.wings.interpret.compute.heads import heads
    from bertcli.wings.interpret.compute.lens import lens
    from bertcli.wings.interpret.compute.patch import patch
    from bertcli.wings.interpret.compute.probe import probe
    from bertcli.wings.search.files import search_files
    from bertcli.wings.search.stored import search

choose_kernel()  # before anything here imports NumPy
choose_threads()

__all__ = [
    "BertConfig", "BertcliError", "Model", "__version__", "diff", "explain", "functional", "heads", "lens",
    "load", "params", "patch", "probe", "search", "search_files", "trace", "variant",
]  # fmt: skip
_HOMES = {
    **dict.fromkeys(("params", "trace"), "bertcli.analysis.{}"),
    **dict.fromkeys(("diff", "explain", "heads", "lens", "patch", "probe"), "bertcli.wings.interpret.compute.{}"),
    **dict.fromkeys(("Model", "load", "variant"), "bertcli.model"),
    "BertConfig": "bertcli.models.bert", "BertcliError": "bertcli.errors", "__version__": "bertcli._version",
    "search": "bertcli.wings.search.stored", "search_files": "bertcli.wings.search.files",
}  # fmt: skip


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'bertcli' has no attribute '{name}'")
    home = import_module(_HOMES.get(name, "bertcli.{}").format(name))
    return home if name == "functional" else getattr(home, name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
