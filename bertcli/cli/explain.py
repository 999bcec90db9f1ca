"""bertcli explain"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Literal

from bertcli.cli.job import open_model
from bertcli.cli.options import MASKED_SAMPLE, SENTIMENT_SAMPLE, InputOptions, ModelOptions, OutputOptions
from bertcli.cli.views import AskedOptions, PassOptions, begin, show_each
from bertcli.files.formats import PAGE, RECORDS
from bertcli.tasks.options import option

if TYPE_CHECKING:
    from bertcli.analysis.explain import Explanation


@dataclass(frozen=True)
class ExplainOptions:
    """How words are left out."""

    by: Literal["mask", "delete"] = option(
        "mask", "HOW", "mask (default): put [MASK] in a word's place; delete: leave the word out."
    )


def explain(
    texts: InputOptions,
    model: ModelOptions,
    output: OutputOptions,
    passes: PassOptions,
    asked: AskedOptions,
    wanted: ExplainOptions,
) -> None:
    """Show which words of a text speak for a result, and which against it.

    bertcli explain "I loved every minute of it."
    bertcli explain "I loved every minute of it." --label negative --by delete
    bertcli explain "She poured a cup of hot [MASK]." --word coffee
    bertcli explain "A dog lay on the rug." --with "The cat sat on the mat."
    bertcli explain -i reviews.txt -o reviews.html
    bertcli explain -m my-reranker "How tall is it?" --text-pair "It is 330 m."

    A word's contribution is the result for the text less the result for the
    text without that word: what the model does when the word is missing, not
    why. Words that only matter together can each show nothing, and
    contributions do not add up to the result.

    The result is the log-odds ln(p / (1 - p)) of a label (of a reranker its
    score), the log-probability of a word at a mask, or (--with) the cosine with
    another text. Words are what the tokenizer takes for words; special tokens
    are never replaced. On a terminal words are blue for, red against; a .html
    file is a page of all texts.
    """
    asked.check()
    given = begin(texts, passes, output.output, (*RECORDS, PAGE))
    opened = open_model(model, MASKED_SAMPLE if asked.wants_masked_sample(texts) else SENTIMENT_SAMPLE)
    from bertcli.analysis import explain as views
    from bertcli.analysis.results import Asked

    result = Asked(asked.label, asked.word, asked.other)
    found = views.explanations(opened, given, result, wanted.by, passes.max_length, passes.batch_tokens)
    show_each(found, "explain", given, output, _show, partial(views.explain_page, model=opened.name))


def _show(one: Explanation) -> None:
    from bertcli.report.documents import print_document
    from bertcli.report.tables import Mark, print_marked

    for text, words in one.texts():
        marks = [Mark(word.start, word.end, shade, title=f"{word.contribution:+.2f}") for word, shade in words]
        print_marked(text, marks)
    print()
    print_document(one.document(), "table")
