"""The view explain: its options, whose docstring is the help. Its work is in compute/explain.py."""

from dataclasses import KW_ONLY, dataclass
from typing import Literal

from bertcli.files.texts import Pairs
from bertcli.tasks.options import option
from bertcli.wings.interpret.options import TargetOptions
from bertcli.wings.interpret.view_spec import ViewSpec, sample_for


@dataclass(frozen=True, eq=False, repr=False)
class ExplainOptions(TargetOptions):
    """Occlusion: which words speak for a result, and which against it.

    bertcli explain "I loved every minute of it."
    bertcli explain "I loved every minute of it." --label negative --method delete
    bertcli explain "She poured a cup of hot [MASK]." --word coffee
    bertcli explain "A dog lay on the rug." --contrast "The cat sat on the mat."
    bertcli explain "I loved every minute of it." -o why.pdf
    bertcli explain -i reviews.txt -o reviews.html
    bertcli explain -m my-reranker "How tall is it?" --text-pair "It is 330 m."

    A word's contribution is the result for the text less the result for the
    text without that word: what the model does when the word is missing, not
    why. Words that only matter together can each show nothing, and
    contributions do not add up to the result.

    The result is one of these:

      the log-odds ln(p / (1 - p)) of a label (default: the predicted one; --label)
      the log-probability of a word at a mask (--word)
      the score of a reranker
      the cosine with another text (--contrast)

    A model of late interaction (ColBERT) shows instead which token of the document
    (--text-pair) each token of the query matched.

    Words are split as the tokenizer splits them; special tokens are never replaced.
    On a terminal blue words raise the result and red words lower it. A .html file
    is a page of all texts, a .pdf, .svg or .png file a figure.
    """

    pairs: Pairs = None
    _: KW_ONLY
    method: Literal["mask", "delete"] = option(
        "mask", "METHOD", "mask (default): put [MASK] in a word's place; delete: leave the word out."
    )


SPEC = ViewSpec(ExplainOptions, sample=sample_for, each=True, has_figure=True)
