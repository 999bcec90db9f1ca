"""Find the specs of the views (explain, lens, heads, patch, probe, diff), of which command.py makes commands.

A view is a file in specs/ with a `SPEC`, and a file of the same name in compute/; there is no list of them. A plugin
names both for a view of its own. The file in compute/ has `measure`, which makes results (`report.documents.View`) from
a model and what the view reads, and `draw`, which makes a page of them; both are called by these names. A result with
plots has `panels` (`has_figure`). Texts have one result for all, or one each (`each`).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import Any, Literal

from bertcli.tasks.options import Checked
from bertcli.tasks.registry import MASKED_SAMPLE, SENTENCE_SAMPLE, SENTIMENT_SAMPLE
from bertcli.wings.interpret.options import TargetOptions

# A text that contains this is for the bundled model with a masked-language-model head.
MASK = "[MASK]"


def _for_masks(options: Checked, texts: Sequence[str]) -> str:
    return MASKED_SAMPLE


@dataclass(frozen=True, eq=False, repr=False)
class ViewSpec:
    """The specification of a view, from which its command is made.

    options: a dataclass, whose docstring is the help. sample: gives the bundled model for options and texts, if the
    command names none. each: a result for each text, not one for all.
    has_figure: results have `panels`, and can be written as a figure.
    has_arrays: results have `arrays`, by name, and can be written as a file of them (.npz, .safetensors).
    panel, position: where --help lists the command, and its rank there.
    """

    options: type[Checked]
    reads: Literal["texts", "two texts", "two models", "labelled texts"] = "texts"
    sample: Callable[[Any, Sequence[str]], str] = _for_masks
    each: bool = False
    has_figure: bool = False
    has_arrays: bool = False
    panel: str = "Interpret"
    position: int = 0

    @property
    def name(self) -> str:
        """The name of its command, of its file, and of the file of its work."""
        return self.options.__module__.rpartition(".")[2]


def sample_for(options: TargetOptions, texts: Sequence[str]) -> str:
    """The bundled model that can compute the target: a sentence model, a masked language model, or a classifier."""
    if options.contrast is not None:
        return SENTENCE_SAMPLE
    masks = options.label is None and any(MASK in text for text in texts)
    return MASKED_SAMPLE if masks or options.word is not None else SENTIMENT_SAMPLE


def view_specs() -> list[ViewSpec]:
    """The specs of all views, in the order in which --help shows them."""
    found = (_spec_in(module) for module in _modules())
    return sorted(filter(None, found), key=lambda one: one.position)


def view_spec(name: str) -> ViewSpec | None:
    """The spec of a view by its command's name; None for any other name."""
    return _spec_in(name) if name in _modules() else None


def _modules() -> list[str]:
    return [module.name for module in iter_modules([str(Path(__file__).parent / "specs")])]


def _spec_in(module: str) -> ViewSpec | None:
    return getattr(import_module(f"{__package__}.specs.{module}"), "SPEC", None)


def compute(spec: ViewSpec) -> Any:
    """Import the module in compute/ of a view; only then, since it imports NumPy, which --help does without."""
    return import_module(f"{__package__}.compute.{spec.name}")
