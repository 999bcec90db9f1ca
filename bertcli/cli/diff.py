"""bertcli diff"""

from dataclasses import dataclass
from pathlib import Path

from bertcli.analysis.options import Cut
from bertcli.cli.options import InputOptions, ModelOptions, ThreadOptions, argument, wrong
from bertcli.cli.views import DocumentOptions, begin, show_document
from bertcli.errors import BertcliError
from bertcli.files.formats import PAGE, SEVERAL, ending_of
from bertcli.tasks.options import option


@dataclass(frozen=True)
class BothModels(ModelOptions):
    """The two models."""

    model: str = argument(..., "MODEL", "A folder, or a name on the Hugging Face Hub.")
    other: str = argument(..., "OTHER", "Another model, or a .npz or .safetensors file of arrays (trace --save).")
    revision: str | None = option(None, "NAME", "Branch, tag or commit of MODEL on the Hub.", panel="Model")


@dataclass(frozen=True)
class DiffOptions(Cut):
    """How much may differ."""

    tolerance: float = option(1e-4, "T", "How much of a step's largest number may differ. (default: 0.0001)", least=0)
    check: bool = option(False, "", "End with status 1 if a step is beyond the tolerance, for CI.")


def diff(
    models: BothModels, texts: InputOptions, threads: ThreadOptions, wanted: DiffOptions, shown: DocumentOptions
) -> None:
    """Show what differs between two models on a text, step by step, and where it begins.

    bertcli diff bert-base-uncased my-fine-tune "The cat sat on the mat."
    bertcli diff my-model my-model-float16 "The cat sat." --tolerance 1e-2 --check
    bertcli diff my-model arrays.npz "The cat sat on the mat."
    bertcli diff bert-base-uncased bert-large-uncased -i texts.txt -o layers.html

    For each step: the largest difference, the same as a share of the step's
    largest number (which --tolerance is compared with), and the mean cosine of
    rows. The first step beyond the tolerance is where the models part; later
    ones follow from it and need no fault of their own. Below are the weights
    that differ most.

    OTHER may be a file of arrays named as trace --save names them, or
    hidden_states.0, hidden_states.1, … as transformers counts them. Models of
    different architectures are compared layer by layer (linear CKA over all
    tokens; give many).
    """
    rows = list(begin(texts, threads, shown.output, (PAGE, ".json")))
    if any(pair is not None for _, pair, *_ in rows):
        raise wrong("--text-pair", "texts are compared one by one, without pairs.")
    from bertcli.analysis.diff import Diff, diff, diff_page
    from bertcli.model import load
    from bertcli.report.progress import counted

    model = load(models.model, revision=models.revision, **models.fetching)
    are_arrays = ending_of(models.other) in SEVERAL and not Path(models.other).is_dir()
    other = models.other if are_arrays else load(models.other, **models.fetching)
    for either in (model, other):
        if not isinstance(either, str):
            either.note_layers_after("compared")
    values = counted([text.text for text in rows], "diff", "texts", len(rows))
    view = diff(model, other, values, tolerance=wanted.tolerance, max_length=wanted.max_length)
    if wanted.check and not isinstance(view, Diff):
        raise BertcliError(f"{model.name} and {models.other} have different steps, which --check cannot compare.")
    show_document(view, shown, diff_page)
    if wanted.check and isinstance(view, Diff) and view.first is not None:
        raise BertcliError(f"{view.first} is the first step beyond the tolerance of {wanted.tolerance:g}.")
