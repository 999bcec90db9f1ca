"""bertcli diff"""

import sys
from pathlib import Path

from bertcli.cli.job import set_threads
from bertcli.cli.options import InputOptions, ModelOptions, ThreadOptions, argument, wrong
from bertcli.cli.views import DocumentOptions, begin, show_document
from bertcli.errors import BertcliError
from bertcli.files.formats import PAGE, SEVERAL, check_output, ending_of
from bertcli.lean import lean_dataclass
from bertcli.tasks.options import option
from bertcli.views.options import Cut


@lean_dataclass
class BothModels(ModelOptions):
    """The two models."""

    model: str = argument(..., "MODEL", "A folder, or a name on the Hugging Face Hub.")
    versus: str | None = option(
        None, "OTHER", "The other model, or a .npz or .safetensors file of arrays (trace --save).", panel="Model"
    )
    revision: str | None = option(None, "NAME", "Branch, tag or commit of MODEL on the Hub.")
    adapter: str | None = option(None, "DIR|HUB_ID", "An adapter (LoRA of peft) that changes OTHER.")


@lean_dataclass
class DiffOptions(Cut):
    """How much may differ."""

    tolerance: float = option(1e-4, "T", "How much of a step's largest number may differ. (default: 0.0001)", least=0)
    check: bool = option(
        False, "", "End with status 1 if something is beyond the tolerance, or exists on one side only, for CI."
    )
    common: bool = option(False, "", "With --check: only what both have matters.")


def diff(
    models: BothModels, texts: InputOptions, threads: ThreadOptions, wanted: DiffOptions, shown: DocumentOptions
) -> None:
    """Show what differs between two models on a text, step by step, and where it begins.

    bertcli diff bert-base-uncased --versus my-fine-tune "The cat sat on the mat."
    bertcli diff my-model --versus my-float16 "The cat sat." --tolerance 1e-2 --check
    bertcli diff my-model --versus my-copy --check
    bertcli diff my-model --versus arrays.npz

    For each step: the largest difference, the same as a share of the step's
    largest number (which --tolerance is compared with), and the mean cosine of
    rows. The first step beyond the tolerance is where the models part; later
    ones follow from it and need no fault of their own. Below are the weights
    that differ most, and the steps that only one has, such as those of a head.

    Without a text the weights alone are compared: which differ, which only one
    has, and a digest of each model's. OTHER may be a file of arrays named as
    trace --save names them, which holds the ids of its text, or
    hidden_states.0, hidden_states.1, … as transformers counts them.
    """
    if models.versus is None:
        raise wrong("--versus", "give the other model, too: diff MODEL --versus OTHER.")
    piped = sys.stdin is not None and not sys.stdin.isatty()
    if texts.texts or texts.input or piped:
        rows = list(begin(texts, threads, shown.output, (PAGE, ".json")))
    else:
        rows = []
        set_threads(threads)
        check_output(shown.output, (PAGE, ".json"))
    if any(pair is not None for _, pair, *_ in rows):
        raise wrong("--text-pair", "texts are compared one by one, without pairs.")
    if wanted.common and not wanted.check:
        raise wrong("--common", "this is for --check.")
    from bertcli.loaded_model import LoadedModel
    from bertcli.report.progress import counted
    from bertcli.views.compute.diff import OtherText, diff, diff_page

    model = LoadedModel.load(models.model, revision=models.revision, **models.fetching)
    are_arrays = ending_of(models.versus) in SEVERAL and not Path(models.versus).is_dir()
    other: str | LoadedModel = models.versus
    if not are_arrays:
        other = LoadedModel.load(models.versus, adapter=models.adapter, **models.fetching)
    for either in (model, other):
        if not isinstance(either, str):
            either.note_layers_after("compared")
    values = counted([text.text for text in rows], "diff", "texts", len(rows)) if rows or texts.input else None
    try:
        view = diff(model, other, values, tolerance=wanted.tolerance, max_length=wanted.max_length)
    except OtherText as error:
        raise wrong("TEXT", str(error)) from None
    show_document(view, shown, diff_page)
    if wanted.check and view.differs:
        raise BertcliError(view.differs)
    if wanted.check and not wanted.common and any(view.only):
        raise BertcliError(f"{'; '.join(view.only.lines(view.names))} (--common: only what both have matters).")
