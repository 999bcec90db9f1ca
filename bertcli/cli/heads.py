"""bertcli heads"""

from __future__ import annotations

from functools import partial
from typing import Annotated, Literal

import typer

from bertcli.cli.command import command
from bertcli.cli.job import MASKED_SAMPLE, SENTIMENT_SAMPLE, open_model
from bertcli.cli.options import InputOptions, ModelOptions
from bertcli.cli.views import PICTURES, AskedOptions, PassOptions, begin, show_document, tracked

Sort = Literal["layer", "entropy", "distance", "special", "self", "next", "previous", "change"]
Format = Literal["table", "json", "csv", "markdown"]


@command("heads")
def heads(
    texts: InputOptions,
    model: ModelOptions,
    passes: PassOptions,
    asked: AskedOptions,
    ablate: Annotated[
        bool, typer.Option("--ablate", help="Also set each head's output to zero, and show what that changes.")
    ] = False,
    sort: Annotated[
        Sort | None,
        typer.Option(metavar="NUMBER", show_default=False,
                     help="Largest first: entropy, distance, special, self, next, previous or change; or by layer. "
                     "(default: change with --ablate, else layer)"),
    ] = None,
    top: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Show only the first N heads.", show_default=False)
    ] = None,
    format: Annotated[Format, typer.Option(metavar="FORMAT", help="How the result is printed.")] = "table",
    output: Annotated[
        str | None,
        typer.Option("-o", "--output", metavar="FILE", help="Write a .html page, a .svg drawing or a .json file.",
                     show_default=False),
    ] = None,
) -> None:  # fmt: skip
    """Show where each attention head looks, and what the result loses without it.

    bertcli heads "The cat sat on the mat." "It rained."
    bertcli heads -i texts.txt --sort previous --top 5
    bertcli heads "I loved every minute of it." --ablate --top 10
    bertcli heads "I loved every minute of it." --ablate -o heads.html

    Means over all tokens of the texts: entropy of a token's weights in nats,
    distance in tokens, shares of weight on special tokens, on the token itself,
    on the next and the previous one. Weights say where a head looks, not what
    it contributes.

    Change is the result (as in explain) when the head's output is zero, less
    the result as it is: near 0 the model does without the head here, though
    perhaps only because another one does the same.
    """
    asked.check()
    if not ablate and (asked.label, asked.word, asked.other) != (None, None, None):
        raise typer.BadParameter("a result is only asked about with --ablate.", param_hint="--label, --word, --with")
    given = list(begin(texts, passes, output, (*PICTURES, ".json")))
    labels = ablate and not asked.wants_masked_sample(texts)
    opened = open_model(model, SENTIMENT_SAMPLE if labels else MASKED_SAMPLE)
    from bertcli.analysis import heads as views

    found = views.heads(
        opened, [text for text, _ in given], [pair for _, pair in given], ablate=ablate,
        label=asked.label, word=asked.word, other=asked.other, max_length=passes.max_length,
        batch_tokens=passes.batch_tokens, track=partial(tracked, task="heads", unit="texts"),
    ).sorted(sort, top)  # fmt: skip
    show_document(found.document(), output, format, partial(views.heads_page, found), partial(views.heads_svg, found))
