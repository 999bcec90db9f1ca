"""bertcli explain"""

from functools import partial

from bertcli.cli.classifier import LabelModelOptions
from bertcli.cli.job import open_model
from bertcli.cli.options import InputOptions, OutputOptions, ThreadOptions
from bertcli.cli.views import begin, sample_for, show_each
from bertcli.files.formats import PAGE, RECORDS
from bertcli.views.options import ExplainOptions


def explain(
    texts: InputOptions, model: LabelModelOptions, output: OutputOptions, threads: ThreadOptions, wanted: ExplainOptions
) -> None:
    """Show which words of a text speak for a result, and which against it.

    bertcli explain "I loved every minute of it."
    bertcli explain "I loved every minute of it." --label negative --method delete
    bertcli explain "She poured a cup of hot [MASK]." --word coffee
    bertcli explain "A dog lay on the rug." --versus "The cat sat on the mat."
    bertcli explain -i reviews.txt -o reviews.html
    bertcli explain -m my-reranker "How tall is it?" --text-pair "It is 330 m."

    A word's contribution is the result for the text less the result for the
    text without that word: what the model does when the word is missing, not
    why. Words that only matter together can each show nothing, and
    contributions do not add up to the result.

    The result is the log-odds ln(p / (1 - p)) of a label (of a reranker its
    score), the log-probability of a word at a mask, or (--versus) the cosine with
    another text. A model of late interaction (ColBERT) shows for each token of
    the query the token of the document (--text-pair) that it matched. Words are
    what the tokenizer takes for words; special tokens are never replaced. On a
    terminal words are blue for, red against; a .html file is a page of all
    texts.
    """
    source = begin(texts, threads, output.output, (*RECORDS, PAGE))
    opened = open_model(model, sample_for(wanted, texts))
    from bertcli.views.compute.explain import explain_page, explanations

    views = explanations(opened, source, wanted)
    show_each(views, "explain", source, output, partial(explain_page, model=opened.name))
