"""score: how probable each token of a text is, given all the others."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from bertcli.files.texts import Pairs
from bertcli.report.tables import Row, Table
from bertcli.report.terminal import Column
from bertcli.tasks.options import Reading, option
from bertcli.tasks.registry import MASKED_SAMPLE, TEXTS, Fields, Needs, Page


@dataclass(frozen=True, eq=False)
class ScoreOptions(Reading):
    """Show how likely each word of a text is, given all the others.

    bertcli score "The cat sat on the mat."
    bertcli score "The cat sat on the mat." "The cat sat on the moon."
    bertcli score -i sentences.txt --format jsonl
    bertcli score -i sentences.txt -o scores.jsonl --resume
    bertcli score "The cat [MASK] on the mat." --target "The cat sat on the mat."

    Each token is masked in turn. The loss is the mean negative log-probability,
    the pseudo-perplexity is exp(loss): the lower, the more likely the text.
    """

    pairs: Pairs = None
    target: str | None = option(None, "TEXT", "The true sentence: score only the tokens that the text has masked.")


def record(wanted: ScoreOptions) -> Fields:
    """Of a text without tokens: none, and null twice."""
    return {
        "index": int,
        "text": str,
        "truncated": bool,
        "tokens": [{"token": str, "log_prob": float}],
        "loss": (float, None),
        "pseudo_perplexity": (float, None),
    }


COLUMNS = (
    Column("index", number=True, varying=True),
    Column("token"),
    Column("log prob", number=True),
    Column("loss", number=True),
    Column("pseudo-perplexity", number=True),
)


def rows(record: Mapping[str, Any]) -> Iterator[Row]:
    """One for every token, and one for all of them."""
    for token in record["tokens"]:
        yield record["index"], token["token"], token["log_prob"], None, None
    yield record["index"], "(all)", None, record["loss"], record["pseudo_perplexity"]


PAGE = Page(
    ScoreOptions,
    reads=TEXTS,
    needs=lambda wanted: Needs("score", "mlm", MASKED_SAMPLE),
    record=record,
    table=lambda wanted: Table(COLUMNS, rows, in_files=False),
    place=4,
)
