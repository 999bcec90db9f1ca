"""`ViewSpec`: what the command of a view (explain, lens, heads, patch, probe, diff) is made of.

A view is declared once, in `__init__.py`; its `SPEC` is in specs/, its work in a file of the same name in compute/.
There `measure` makes results (`report.documents.View`) from a model and what the view reads, and `draw` a page of them;
command.py calls both by these names. A result with plots has `panels` (`has_figure`). Texts have one result for all, or
one each (`each`).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
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
    """

    options: type[Checked]
    reads: Literal["texts", "two texts", "two models", "labelled texts"] = "texts"
    sample: Callable[[Any, Sequence[str]], str] = _for_masks
    each: bool = False
    has_figure: bool = False
    has_arrays: bool = False

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
