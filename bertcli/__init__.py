"""BERT in the terminal with nothing heavier than NumPy; start with `bertcli.load()`.

Names are imported on first use, so that `bertcli --help` need not wait for NumPy.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from bertcli.engine.blas import choose_kernel
from bertcli.engine.threads import choose_threads

if TYPE_CHECKING:
    from bertcli import functional as functional
    from bertcli._version import __version__ as __version__
    from bertcli.analysis.diff import diff as diff
    from bertcli.analysis.explain import explain as explain
    from bertcli.analysis.heads import heads as heads
    from bertcli.analysis.lens import lens as lens
    from bertcli.analysis.params import params as params
    from bertcli.analysis.patch import patch as patch
    from bertcli.analysis.trace import trace as trace
    from bertcli.errors import BertcliError as BertcliError
    from bertcli.files.merge import merge as merge
    from bertcli.mapped import Answer as Answer
    from bertcli.mapped import Classify as Classify
    from bertcli.mapped import Encode as Encode
    from bertcli.mapped import EncodeSparse as EncodeSparse
    from bertcli.mapped import FillMask as FillMask
    from bertcli.mapped import Score as Score
    from bertcli.mapped import Tag as Tag
    from bertcli.model import Model as Model
    from bertcli.model import load as load
    from bertcli.model import variant as variant
    from bertcli.models.bert import BertConfig as BertConfig
    from bertcli.tasks.compute.search import search as search

# before anything here imports NumPy
choose_kernel()
choose_threads()

_TASKS = ("Answer", "Classify", "Encode", "EncodeSparse", "FillMask", "Score", "Tag")
_HOMES = {
    **dict.fromkeys(_TASKS, "bertcli.mapped"),
    "__version__": "bertcli._version",
    "BertConfig": "bertcli.models.bert",
    "BertcliError": "bertcli.errors",
    "Model": "bertcli.model",
    "diff": "bertcli.analysis.diff",
    "explain": "bertcli.analysis.explain",
    "heads": "bertcli.analysis.heads",
    "lens": "bertcli.analysis.lens",
    "load": "bertcli.model",
    "merge": "bertcli.files.merge",
    "params": "bertcli.analysis.params",
    "patch": "bertcli.analysis.patch",
    "search": "bertcli.tasks.compute.search",
    "trace": "bertcli.analysis.trace",
    "variant": "bertcli.model",
}
__all__ = [
    *("BertConfig", "BertcliError", "Model"),
    *_TASKS,
    *("diff", "explain", "functional", "heads", "lens", "load", "merge", "params", "search", "trace", "variant"),
]


def __getattr__(name: str) -> Any:
    if name == "functional":
        return import_module("bertcli.functional")
    if name not in _HOMES:
        raise AttributeError(f"module 'bertcli' has no attribute '{name}'")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
