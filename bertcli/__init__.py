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
    from bertcli.evaluate.probe import probe
    from bertcli.files.merge import merge
    from bertcli.mapped import Answer, Classify, Encode, EncodeSparse, FillMask, Score, Tag
    from bertcli.model import Model, load, variant
    from bertcli.models.bert import BertConfig
    from bertcli.tasks.compute.search import search
    from bertcli.views.diff import diff
    from bertcli.views.explain import explain
    from bertcli.views.heads import heads
    from bertcli.views.lens import lens
    from bertcli.views.patch import patch

# before anything here imports NumPy
choose_kernel()
choose_threads()

__all__ = [
    "Answer", "BertConfig", "BertcliError", "Classify", "Encode", "EncodeSparse", "FillMask", "Model", "Score", "Tag",
    "__version__", "diff", "explain", "functional", "heads", "lens", "load", "merge", "params", "patch", "probe",
    "search", "trace", "variant",
]  # fmt: skip
_HOMES = {  # of the names that are not in bertcli.mapped
    **dict.fromkeys(("params", "trace"), "bertcli.analysis.{}"),
    **dict.fromkeys(("diff", "explain", "heads", "lens", "patch"), "bertcli.views.{}"),
    **dict.fromkeys(("Model", "load", "variant"), "bertcli.model"),
    "BertConfig": "bertcli.models.bert", "BertcliError": "bertcli.errors", "__version__": "bertcli._version",
    "merge": "bertcli.files.merge", "search": "bertcli.tasks.compute.search",
    "probe": "bertcli.evaluate.probe",
}  # fmt: skip


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'bertcli' has no attribute '{name}'")
    if name == "functional":
        return import_module("bertcli.functional")
    return getattr(import_module(_HOMES.get(name, "bertcli.mapped").format(name)), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
