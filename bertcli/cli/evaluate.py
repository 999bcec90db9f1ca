"""bertcli evaluate"""

import logging
import os
from collections.abc import Iterator
from dataclasses import field
from typing import TYPE_CHECKING

from bertcli.cli.job import open_as, set_threads
from bertcli.cli.options import (
    MASKED_SAMPLE,
    SENTENCE_SAMPLE,
    SENTIMENT_SAMPLE,
    EngineOptions,
    ModelOptions,
    ThreadOptions,
    argument,
    wrong,
)
from bertcli.errors import shown
from bertcli.evaluate.options import Evaluate
from bertcli.files.formats import PAGE, check_output, ending_of
from bertcli.lean import lean_dataclass
from bertcli.report.terminal import TableFormat
from bertcli.tasks.options import option
from bertcli.tasks.registry import spec

if TYPE_CHECKING:
    from bertcli.evaluate.evaluation import Evaluation
    from bertcli.model import Model

logger = logging.getLogger("bertcli")
RUN = ".trec"  # a ranking, of the last model
FORMS: dict[str, TableFormat] = {".json": "json", ".md": "markdown", ".csv": "csv"}
SAMPLES = {
    **dict.fromkeys(("sts", "pairs", "triplets", "retrieval"), SENTENCE_SAMPLE),
    **dict.fromkeys(("fill-mask", "score"), MASKED_SAMPLE),
    "classification": SENTIMENT_SAMPLE,
}


@lean_dataclass
class Models(ModelOptions):
    """Which models are judged."""

    data: str = argument(..., "DATA", "A file of labelled texts, or a folder as BEIR has them.")
    model: list[str] | None = option(
        None, "DIR|HUB_ID", "A model; give it again for more, which are compared with the first. "
        "(default: a bundled model, if one fits)", "-m", "--model",
    )  # type: ignore[assignment]  # fmt: skip
    adapter: None = field(default=None, init=False)


@lean_dataclass
class ReportOptions:
    """Where the report goes."""

    format: TableFormat = option("table", "FORMAT", "How it is printed: table (default), json, csv or markdown.")
    output: str | None = option(
        None,
        "FILE",
        "Write a page (.html), a record (.json), Markdown (.md), figures (.csv), or a ranking (.trec).",
        "-o",
        "--output",
    )


def evaluate(
    models: Models, wanted: Evaluate, report: ReportOptions, threads: ThreadOptions, engine: EngineOptions
) -> None:
    """Say how good a model is on labelled texts, and which of two is better.

    bertcli evaluate reviews.csv -m my-classifier
    bertcli evaluate reviews.csv -m old -m new --by source -o report.html
    bertcli evaluate beir/ --truncate-dim 256,64 --dtype int8,binary
    bertcli evaluate qrels.txt --run bm25.trec
    bertcli evaluate test.conll -m dslim/bert-base-NER --at-least f1=0.9

    DATA says what the task is: a table (.csv, .tsv, .jsonl, .parquet) by its
    fields: a text (or two) and a label; two texts and a score (sts), or 0 and 1
    (pairs); anchor, positive, negative (triplets); a text with [MASK] and a word
    (fill-mask); in .jsonl tokens and tags (tag), question, context, answers
    (answer), query, documents, labels (rank). A folder with corpus.jsonl,
    queries.jsonl and qrels/test.tsv, or TREC's qrels with --run, is retrieval (by
    cosine); CoNLL's columns are tag, SQuAD's json is answer, plain lines score.

    Every figure has a 95 % interval: what other texts of the same kind would
    have given. It does not show whether your texts are like those that the
    model will see, nor errors in the labels.
    """
    set_threads(threads)
    check_output(report.output, (PAGE, *FORMS, RUN))
    from bertcli.evaluate.evaluation import check_bound, read
    from bertcli.evaluate.evaluation import evaluate as judged
    from bertcli.evaluate.figures import possible_figures

    labelled = read(models.data, wanted)
    logger.info("the task is %s: %s (--task says otherwise).", labelled.task, labelled.why)
    if wanted.at_least is not None:
        name, known = wanted.at_least[0], possible_figures(labelled, wanted)
        if name not in known:
            what = f"there is no figure {shown(name)} for {labelled.task}; choose from {', '.join(known)}."
            raise wrong("--at-least", what)
    alone = wanted.run is not None and labelled.task == "retrieval" and not models.model
    evaluation = judged(labelled, () if alone else _opened(models, labelled.task, engine), wanted)
    _show(evaluation, report)
    if wanted.at_least is not None:
        check_bound(evaluation.record, *wanted.at_least)


def _opened(models: Models, task: str, engine: EngineOptions) -> "Iterator[Model]":
    """The models one after the other, so that only one is in memory."""
    from bertcli.model import Model

    given: list[str | None] = [*(models.model or ())] or [os.environ.get("BERTCLI_MODEL") or None]
    if given == [None] and task not in SAMPLES:
        found = spec(task)
        fitting = found.needs(found.options()).fitting if found else "one that was made for it"
        raise wrong("--model", f"there is no bundled model for {task}; give one that fits, such as {fitting}.")
    for name in given:
        one = ModelOptions(name, models.revision, models.cache_dir, models.offline)
        yield open_as(Model, one, SAMPLES.get(task, MASKED_SAMPLE), engine)


def _show(evaluation: "Evaluation", report: ReportOptions) -> None:
    from bertcli.evaluate.report.tables import documents
    from bertcli.files.shards import save
    from bertcli.report.documents import as_bytes, print_document

    file = report.output
    if file is None:
        for document in documents(evaluation)[: None if report.format in ("table", "markdown") else 1]:
            print_document(document, report.format)
    elif (ending := ending_of(file)) == PAGE:
        from bertcli.evaluate.report.page import evaluation_page

        save(file, evaluation_page(evaluation, f"{evaluation.data.task} on {evaluation.data.file}").encode())
    elif ending == RUN:
        from bertcli.evaluate.load.beir import run_of

        save(file, run_of(evaluation.outcomes[-1]))
    else:
        some = documents(evaluation)[: None if ending == ".md" else 1]
        save(file, b"\n".join(as_bytes(document, FORMS[ending]) for document in some))
