"""The task score: its options, record and table. Its work is in compute/score.py."""

from collections.abc import Iterator
from dataclasses import dataclass

from bertcli.errors import WrongOptions
from bertcli.files.texts import Pairs
from bertcli.report.tables import Record, Row, Table
from bertcli.report.terminal import Column
from bertcli.tasks.examples import CAT, Example, Subject
from bertcli.tasks.options import ReadOptions, option
from bertcli.tasks.registry import MASKED_SAMPLE, TEXTS_WITH_IDS, Fields, Needs, TaskSpec


@dataclass(frozen=True, eq=False, repr=False)
class ScoreOptions(ReadOptions):
    """Show how likely each word of a text is, given all the others.

    bertcli score "The cat [MASK] on the mat." --target "The cat sat on the mat."
    bertcli score "The cat sat on the mat."
    bertcli score "The cat sat on the mat." "The cat sat on the moon."
    bertcli score -i sentences.txt --format jsonl
    bertcli score -i sentences.txt -o scores.jsonl --resume

    Each token is masked in turn. The loss is the mean negative log-probability,
    the pseudo-perplexity is exp(loss): the lower, the more likely the text. With
    --target the masks of the text are predicted at once; loss sum is
    -Σ log p over them, the loss that a masked language model is trained with.
    """

    pairs: Pairs = None
    target: str | None = option(None, "TEXT", "The true sentence: score only the tokens that the text has masked.")
    within_word: bool = option(False, "", "Mask the later pieces of a word while one of its pieces is predicted.")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.within_word and self.target is not None:
            raise WrongOptions(
                "--within-word does not apply to a target (--target): leave it out.", "within_word", "target"
            )


def record(options: ScoreOptions) -> Fields:
    """Records {index, text, truncated, tokens: [{token, log_prob}, …], loss, pseudo_perplexity}.

    For a text without tokens: [], None and None. Each token except [CLS] and [SEP] is masked in a pass of its own.
    A text that has a mask itself has no pseudo_perplexity: no word is named there, so not every token is predicted.
    With `target`, the true sentence, only the masks in the text are predicted, all in one pass: loss_sum is -Σ log p
    over them, the training loss of a masked language model, and perplexity is exp(loss).
    """
    of_text: Fields = {"pseudo_perplexity": (float, None)}
    if options.target is not None:
        of_text = {"loss_sum": (float, None), "perplexity": (float, None)}
    return {
        "index": int,
        "text": str,
        "truncated": bool,
        "tokens": [{"token": str, "log_prob": float}],
        "loss": (float, None),
        **of_text,
    }


COLUMNS = (
    Column("index", int, varying=True),
    Column("token"),
    Column("log prob", float),
    Column("loss", float),
)
OF_TEXT = (Column("pseudo-perplexity", float),)
OF_MASKS = (Column("loss sum", float), Column("perplexity", float))


def table(options: ScoreOptions) -> Table:
    """A row for every token, and one for the whole text."""
    return Table((*COLUMNS, *(OF_TEXT if options.target is None else OF_MASKS)), rows)


def rows(record: Record) -> Iterator[Row]:
    """Yield a row for every token, and one for the whole text."""
    names = ("pseudo_perplexity",) if "pseudo_perplexity" in record else ("loss_sum", "perplexity")
    for token in record["tokens"]:
        yield record["index"], token["token"], token["log_prob"], None, *(None for _ in names)
    yield record["index"], "(all)", None, record["loss"], *(record[name] for name in names)


def examples(subject: Subject) -> Iterator[Example]:
    """Yield a text whose tokens are masked one after the other."""
    yield Example("score", [CAT])


SPEC = TaskSpec(
    ScoreOptions,
    reads=TEXTS_WITH_IDS,
    needs=lambda options: Needs("score", "mlm", MASKED_SAMPLE),
    record=record,
    table=table,
    examples=examples,
    position=4,
    other_words=("perplexity", "ppl", "loss"),
)
