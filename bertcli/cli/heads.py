"""bertcli heads"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from bertcli.cli.job import open_model
from bertcli.cli.options import MASKED_SAMPLE, SENTIMENT_SAMPLE, InputOptions, ModelOptions, changed, wrong
from bertcli.cli.views import AskedOptions, DocumentOptions, PassOptions, begin, show_document
from bertcli.files.formats import PAGE
from bertcli.tasks.options import option

Sort = Literal["layer", "entropy", "distance", "special", "self", "next", "previous", "change"]


@dataclass(frozen=True)
class HeadsOptions:
    """What is measured, and in which order it is shown."""

    ablate: bool = option(False, "", "Also set each head's output to zero, and show what that changes.")
    sort: Sort | None = option(
        None, "NUMBER",
        "Largest first: entropy, distance, special, self, next, previous or change; or by layer. "
        "(default: change with --ablate, else layer)",
    )  # fmt: skip
    top: int | None = option(None, "N", "Show only the first N heads.", least=1)


def heads(
    texts: InputOptions,
    model: ModelOptions,
    passes: PassOptions,
    asked: AskedOptions,
    wanted: HeadsOptions,
    shown: DocumentOptions,
) -> None:
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
    if not wanted.ablate and changed(asked):
        raise wrong(", ".join(changed(asked)), "a result is only asked about with --ablate.")
    given = list(begin(texts, passes, shown.output, (PAGE, ".json")))
    labels = wanted.ablate and not asked.wants_masked_sample(texts)
    opened = open_model(model, SENTIMENT_SAMPLE if labels else MASKED_SAMPLE)
    from bertcli.analysis import heads as views
    from bertcli.report.progress import counted

    found = views.heads(
        opened, counted([text.text for text in given], "heads", "texts", len(given)), [text.pair for text in given],
        ablate=wanted.ablate, label=asked.label, word=asked.word, other=asked.other, max_length=passes.max_length,
        batch_tokens=passes.batch_tokens,
    ).sorted(wanted.sort, wanted.top)  # fmt: skip
    show_document(found, shown, views.heads_page)
