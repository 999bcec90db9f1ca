"""The specs of views: options with their help, what each reads, and the file of its work.

A view is a file in this folder with a `SPEC`, and a file of the same name in compute/; there is no list of them. The
work has `measure`, which makes views (`report.documents.View`) from a model and what the view reads, and `draw`, which
makes a page of them.
"""

from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import Any, Literal

from bertcli.lean import lean_dataclass
from bertcli.tasks.registry import MASKED_SAMPLE, SENTENCE_SAMPLE, SENTIMENT_SAMPLE
from bertcli.views.options import Asked, Cut

MASK = "[MASK]"  # in an argument: the bundled model for masks is meant


def _for_masks(options: Cut, texts: Sequence[str]) -> str:
    return MASKED_SAMPLE


@lean_dataclass
class ViewSpec:
    """A view.

    options: a dataclass, whose docstring is the help. sample: the bundled model for given options and texts.
    """

    options: type[Cut]
    reads: Literal["texts", "two texts", "two models"] = "texts"
    sample: Callable[[Any, Sequence[str]], str] = _for_masks
    each: bool = False  # a view for each text, not one of all
    takes_classifier: bool = False  # that `probe --save` wrote
    panel: str = "Interpret"  # of --help
    place: int = 0  # in the panel

    @property
    def name(self) -> str:
        """The name of its command, of its file, and of the file of its work."""
        return self.options.__module__.rpartition(".")[2]


def sample_for(options: Asked, texts: Sequence[str]) -> str:
    """The bundled model that has the result that is asked about."""
    if options.versus is not None:
        return SENTENCE_SAMPLE
    masks = options.label is None and any(MASK in text for text in texts)
    return MASKED_SAMPLE if masks or options.word is not None else SENTIMENT_SAMPLE


def view_specs() -> list[ViewSpec]:
    """The specs of all views, in the order in which --help shows them."""
    found = (_spec_in(module) for module in _modules())
    return sorted(filter(None, found), key=lambda one: one.place)


def view_spec(name: str) -> ViewSpec | None:
    """The spec of a command; None if it is none of a view."""
    return _spec_in(name) if name in _modules() else None


def _modules() -> list[str]:
    return [module.name for module in iter_modules([str(Path(__file__).parent)])]


def _spec_in(module: str) -> ViewSpec | None:
    return getattr(import_module(f"{__package__}.{module}"), "SPEC", None)


def compute(spec: ViewSpec) -> Any:
    """The module that does a view's work; it imports NumPy."""
    return import_module(f"{__package__}.compute.{spec.name}")
