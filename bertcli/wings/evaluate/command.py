"""The command evaluate: open models, print the report or write it. Options of the data are in evaluate/options.py."""

import logging
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from bertcli.cli.model import open_as
from bertcli.cli.options import (
    EngineOptions,
    ModelOptions,
    models_given,
    wrong,
)
from bertcli.cli.output import FigureOutput, write_document
from bertcli.errors import BertcliError, quoted
from bertcli.files.files_beside import check_not_read
from bertcli.files.formats import ending_of
from bertcli.names import MASKED_SAMPLE
from bertcli.report.written import COMMAND, say_written
from bertcli.tasks.options import argument, option
from bertcli.tasks.registry import spec
from bertcli.wings.evaluate.options import Evaluate

if TYPE_CHECKING:
    from bertcli.model import Model
    from bertcli.wings.evaluate.evaluation import Evaluation

logger = logging.getLogger("bertcli")
# A ranking, of the last model.
RUN = ".trec"


@dataclass(frozen=True, eq=False, repr=False)
class Models(ModelOptions):
    """The data, and the models that are evaluated."""

    data: str = argument(..., "DATA", "A file of labelled texts, or a folder as BEIR has them.")
    model: list[str] | None = option(
        None, "DIR|HUB_ID", "A model; give it again for more, which are compared with the first. "
        "(default: BERTCLI_MODEL, or a bundled model, if one fits)", "-m", "--model",
    )  # type: ignore[assignment]  # fmt: skip


class ReportOptions(FigureOutput):
    """The report's file and format; a file of rows has the figures."""

    endings: ClassVar[tuple[str, ...]] = (*FigureOutput.endings, RUN)


def evaluate(models: Models, options: Evaluate, report: ReportOptions, engine: EngineOptions) -> None:
    """Measure a model on labelled texts, with confidence intervals; compare two models.

    bertcli evaluate reviews.csv -m my-classifier
    bertcli evaluate reviews.csv -m old -m new --by source -o report.html
    bertcli evaluate reviews.csv -m my-classifier -o figures.pdf
    bertcli evaluate reviews.csv --cluster author
    bertcli evaluate beir/ --truncate-dim 256,64 --dtype int8,binary
    bertcli evaluate qrels.txt --run bm25.trec
    bertcli evaluate test.conll -m dslim/bert-base-NER --at-least f1=0.9
    bertcli evaluate pairs.csv --task minimal-pairs --by phenomenon
    bertcli evaluate summaries.jsonl --task bertscore -m roberta-large

    The fields of DATA say which task it is, unless --task names it:

      classification   a text (or two) and a label
      sts, pairs       two texts and a score; two texts and 0 or 1
      triplets         anchor, positive, negative
      retrieval        a BEIR folder (corpus.jsonl, queries.jsonl, qrels/test.tsv),
                       or TREC's qrels with --run; by cosine
      rank             query, documents, labels (.jsonl)
      tag              CoNLL's columns; .jsonl of tokens, tags or text, entities
      answer           SQuAD's json, or question, context, answers
      fill-mask        a text with [MASK], and the word
      score            a text a line
      minimal-pairs    two texts that differ a little: which is likelier? (--task)
      bertscore        a text and its references: is it like one of them? (--task)

    95 % confidence interval: the range of values that the model's true accuracy
    on all texts of this kind may plausibly have, as these texts suggest. It does
    not show whether your texts are like those that the model will see, nor errors
    in the labels. Texts of one document or author are not independent: name the
    field that says which belong together (--cluster).

    mcc: Matthews correlation of labels, 1 perfect, 0 chance. ece: mean gap of
    confidence and accuracy in 15 bins. brier: mean squared error of probabilities.
    accuracy@50%: accuracy on the most confident half.
    """
    report.check()
    from bertcli.wings.evaluate.provenance import data_files

    check_not_read(report.output, data_files(models.data, options))
    from bertcli.wings.evaluate.evaluation import check_bound
    from bertcli.wings.evaluate.evaluation import evaluate as evaluation_of
    from bertcli.wings.evaluate.figures import possible_figures
    from bertcli.wings.evaluate.load.data_file import read

    data = read(models.data, options)
    if options.task is None:
        logger.info("evaluating as %s, because %s (--task chooses another).", data.task, data.why)
    if data.note:
        logger.info("%s", data.note)
    if options.dtype and "binary" in options.dtype:
        logger.info("binary vectors are compared as ±1 (Hamming distance); sentence-transformers compares 0 and 1.")
    # What is asked for and cannot be is refused before a model is opened.
    if options.at_least is not None:
        figure, _ = options.at_least
        possible = possible_figures(data, options)
        if figure not in possible:
            what = f"there is no figure {quoted(figure)} for {data.task}; choose from {', '.join(possible)}."
            raise wrong("--at-least", what)
    if report.ending == RUN and data.task not in ("retrieval", "rank"):
        raise BertcliError("A run (.trec) is written of retrieval and rank only: give another ending.")
    # A run needs no model: it has the documents that another program found.
    run_alone = options.run is not None and data.task == "retrieval" and not models.model
    opened = iter(()) if run_alone else _opened(models, data.task, engine)
    evaluation = evaluation_of(data, opened, options, COMMAND.get())
    if report.output is None:
        _print(evaluation, report)
    else:
        _write(evaluation, report.output)
    # Last, so that the report is there even where the bound is missed.
    if options.at_least is not None:
        check_bound(evaluation.record, *options.at_least)


def _opened(models: Models, task: str, engine: EngineOptions) -> "Iterator[Model]":
    """Open the models one after the other, so that only one is in memory."""
    from bertcli.model import Model
    from bertcli.wings.evaluate.evaluators.evaluator import evaluator

    names: list[str | None] = [*models_given(models.model)] or [None]
    sample = evaluator(task).sample
    if names == [None] and sample is None:
        found = spec(task)
        fitting = found.needs(found.options()).fitting if found else evaluator(task).fitting
        raise wrong("--model", f"there is no bundled model for {task}; give one that fits, such as {fitting}.")
    for name in names:
        options = ModelOptions(model=name)
        model = open_as(Model, options, sample or MASKED_SAMPLE, engine)
        yield model


def _print(evaluation: "Evaluation", report: ReportOptions) -> None:
    """Print the tables, or the record."""
    from bertcli.report.documents import print_document
    from bertcli.wings.evaluate.report.tables import documents

    tables = documents(evaluation)
    # Figures are first; in csv and json they are all there is room for.
    if report.printed not in ("table", "markdown"):
        tables = tables[:1]
    for document in tables:
        print_document(document, report.printed)


def _write(evaluation: "Evaluation", file: str) -> None:
    """Write the report in the format of the file's ending, and report the file on stderr."""
    from bertcli.files.write.save import save
    from bertcli.wings.evaluate.load.beir import run_of
    from bertcli.wings.evaluate.report.page import evaluation_page
    from bertcli.wings.evaluate.report.tables import documents

    if ending_of(file) == RUN:
        save(file, run_of(evaluation.outcomes[-1]))
    else:
        title = f"Evaluation: {evaluation.data.task} on {Path(evaluation.data.file).name}"
        write_document(documents(evaluation), file, lambda: evaluation_page(evaluation, title), evaluation.panels)
    say_written(file)
