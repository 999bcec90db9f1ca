"""bertcli score"""

from collections.abc import Iterator, Mapping
from typing import Any

from bertcli.cli.job import Job
from bertcli.report.tables import Cell, Table
from bertcli.report.terminal import Column
from bertcli.tasks.score import ScoreOptions

COLUMNS = (
    Column("index", number=True, varying=True),
    Column("token"),
    Column("log prob", number=True),
    Column("loss", number=True),
    Column("pseudo-perplexity", number=True),
)


def score(job: Job, wanted: ScoreOptions) -> None:
    """Show how likely each word of a text is, given all the others.

    bertcli score "The cat sat on the mat."
    bertcli score "The cat sat on the mat." "The cat sat on the moon."
    bertcli score -i sentences.txt --format jsonl
    bertcli score -i sentences.txt -o scores.jsonl --resume
    bertcli score "The cat [MASK] on the mat." --target "The cat sat on the mat."

    Each token is masked in turn. The loss is the mean negative log-probability,
    the pseudo-perplexity is exp(loss): the lower, the more likely the text.
    """
    run = job.begin("score", wanted)
    from bertcli.tasks.compute.score import plan

    run.write(plan(run.model, run.wanted), Table(COLUMNS, _rows))


def _rows(record: Mapping[str, Any]) -> Iterator[tuple[Cell, ...]]:
    """A row for every token, and one for all of them."""
    for token in record["tokens"]:
        yield record["index"], token["token"], token["log_prob"], None, None
    yield record["index"], "(all)", None, record["loss"], record["pseudo_perplexity"]
