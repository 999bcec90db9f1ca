"""bertcli diff"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from bertcli.cli.command import command
from bertcli.cli.options import CacheDir, InputOptions, Offline, option
from bertcli.cli.views import PICTURES, PassOptions, begin, show_document, tracked
from bertcli.errors import BertcliError

if TYPE_CHECKING:
    from bertcli.model import Model

Format = Literal["table", "json", "csv", "markdown"]
ARRAYS = (".npz", ".safetensors")


@dataclass(frozen=True)
class BothModels:
    """The two models."""

    model: Annotated[
        str, typer.Argument(metavar="MODEL", help="A folder, or a name on the Hugging Face Hub.", show_default=False)
    ]
    other: Annotated[
        str,
        typer.Argument(metavar="OTHER", show_default=False,
                       help="Another model, or a .npz or .safetensors file of arrays (trace --save)."),
    ]  # fmt: skip
    revision: Annotated[
        str | None, option("Model", "--revision", metavar="NAME", help="Branch, tag or commit of MODEL on the Hub.")
    ] = None
    other_revision: Annotated[
        str | None, option("Model", "--other-revision", metavar="NAME", help="The same of OTHER.")
    ] = None
    cache_dir: CacheDir = None
    offline: Offline = False

    def open(self) -> tuple[Model, Model | str]:
        """The first model, and the second or the name of a file of arrays."""
        from bertcli.model import load

        how: dict[str, Any] = {"cache_dir": self.cache_dir, "offline": self.offline, "progress": True}
        model = load(self.model, revision=self.revision, **how)
        if Path(self.other).suffix.lower() in ARRAYS and not Path(self.other).is_dir():
            return model, self.other
        return model, load(self.other, revision=self.other_revision, **how)


@command("diff")
def diff(
    models: BothModels,
    texts: InputOptions,
    passes: PassOptions,
    tolerance: Annotated[
        float, typer.Option(min=0, metavar="T", help="How much of a step's largest number may differ.")
    ] = 1e-4,
    check: Annotated[
        bool, typer.Option("--check", help="End with status 1 if a step is beyond the tolerance, for CI.")
    ] = False,
    format: Annotated[Format, typer.Option(metavar="FORMAT", help="How the result is printed.")] = "table",
    output: Annotated[
        str | None,
        typer.Option("-o", "--output", metavar="FILE", help="Write a .html page, a .svg drawing or a .json file.",
                     show_default=False),
    ] = None,
) -> None:  # fmt: skip
    """Show what differs between two models on a text, step by step, and where it begins.

    bertcli diff bert-base-uncased my-fine-tune "The cat sat on the mat."
    bertcli diff my-model my-model-float16 "The cat sat on the mat." --tolerance 1e-2 --check
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
    given = list(begin(texts, passes, output, (*PICTURES, ".json")))
    if any(pair is not None for _, pair in given):
        raise typer.BadParameter("texts are compared one by one, without pairs.", param_hint="--text-pair")
    model, other = models.open()
    from bertcli.analysis import diff as views
    from bertcli.analysis.similarity import Similarity

    found = views.diff(
        model, other, [text for text, _ in given], tolerance=tolerance, max_length=passes.max_length,
        track=partial(tracked, task="diff", unit="texts"),
    )  # fmt: skip
    if check and isinstance(found, Similarity):
        raise BertcliError(f"{model.name} and {models.other} have different steps, which --check cannot compare.")
    show_document(found.document(), output, format, partial(views.diff_page, found), partial(views.diff_svg, found))
    if check and isinstance(found, views.Diff) and found.first is not None:
        raise BertcliError(f"{found.first} is the first step beyond the tolerance of {tolerance:g}.")
