"""bertcli answer"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

import typer

from bertcli.cli.command import command
from bertcli.cli.job import PAGE, TABLES, Job, read_texts
from bertcli.cli.marked import Found, MarkedTable, Passage
from bertcli.cli.options import InputOptions, OwnModelOptions, WindowOptions, option
from bertcli.files.table import Cell, cell
from bertcli.report import Column

if TYPE_CHECKING:
    from bertcli.files.texts import Texts
    from bertcli.tasks import Progress, RecordStream

COLUMNS = (
    Column("index", number=True, varying=True),
    Column("question"),
    Column("score", number=True),
    Column("answer"),
    Column("start", number=True),
    Column("end", number=True),
)
LEAD = (
    "Each question with its context, where the answers are marked: the darker, the higher the score, which says how "
    "sure the model is, not that it is right."
)
QUESTION, CONTEXT = "question", "context"  # the fields of a file


@dataclass(frozen=True)
class _Questions(InputOptions):
    """Questions, and the contexts that hold their answers."""

    texts: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[QUESTION]...", help="Questions; if none, one per line from standard input.", show_default=False
        ),
    ] = None
    column: Annotated[
        str | None,
        option("Input", "--column", metavar="NAME", help=f"The field that holds the question. (default: {QUESTION})"),
    ] = None
    text_pair: Annotated[
        str | None, option("Input", "--context", metavar="TEXT", help="The text that answers all questions.")
    ] = None
    pair_column: Annotated[
        str | None,
        option("Input", "--context-column", metavar="NAME",
               help=f"The field that holds the context. (default: {CONTEXT}, without --context)"),
    ] = None  # fmt: skip
    names: ClassVar[tuple[str, str, str]] = ("--column", "--context-column", "--context")


@dataclass(frozen=True)
class _Windows(WindowOptions):
    """How question and context are read."""

    max_length: Annotated[
        int | None,
        option("Input", "--max-length", metavar="N",
               help="Read in windows of N tokens. (default: the model's limit, at most 384)"),
    ] = None  # fmt: skip
    stride: Annotated[
        int | None,
        option("Input", "--stride", min=0, metavar="N",
               help="How many tokens windows share. (default: half, at most 128)"),
    ] = None  # fmt: skip


@dataclass(frozen=True)
class _Job(Job):
    texts: _Questions
    length: _Windows
    model: OwnModelOptions

    def read(self, id_column: str | None = None, label_column: str | None = None) -> Texts:
        from bertcli.files.inputs import takes_columns

        asked = self.texts
        if not asked.texts and takes_columns(asked.input or [], asked.format_in):
            context = asked.pair_column or (CONTEXT if asked.text_pair is None else None)
            asked = replace(asked, column=asked.column or QUESTION, pair_column=context)
        elif asked.text_pair is None and asked.pair_column is None:
            raise typer.BadParameter("give the text that holds the answer.", param_hint="--context")
        return read_texts(asked, self.output, id_column, label_column, self.long.keep_going, called="question")


@command("answer")
def answer(
    job: _Job,
    top_k: Annotated[
        int, typer.Option(min=1, metavar="K", help="How many answers per question. (default: 1)", show_default=False)
    ] = 1,
    max_answer_length: Annotated[
        int, typer.Option(min=1, metavar="N", help="Tokens of an answer, at most. (default: 15)", show_default=False)
    ] = 15,
    no_answer: Annotated[
        bool, typer.Option("--no-answer", help="Let no answer, an empty text, compete with the others.")
    ] = False,
    score: Annotated[
        Literal["probability", "logits"],
        typer.Option(
            metavar="NAME",
            help="probability (default), or logits: start + end minus those of no answer, comparable across windows.",
            show_default=False,
        ),
    ] = "probability",
) -> None:
    """Find the answer to a question in a text of any length.

    bertcli answer -m deepset/bert-base-cased-squad2 "Who?" --context "Ann did."
    bertcli answer -m my-model "Who?" "When?" --context "$(cat story.txt)"
    bertcli answer -m my-model -i questions.jsonl --no-answer -o answers.jsonl
    bertcli answer -m my-model -i asked.csv --column q --context-column story
    bertcli answer -m my-model -i questions.jsonl --top-k 3 -o answers.html

    A file holds a question and its context in each row. Shows the context with
    the answers marked; in a pipe, and without color, a table of them. start and
    end count characters of the context.

    A model that finds answers is needed (-m). Long contexts are read in windows
    of at most 384 tokens that overlap, so nothing is cut. A .csv or .parquet file
    has the rows of the table.
    """
    chosen = {"top_k": top_k, "max_answer_length": max_answer_length, "no_answer": no_answer, "score": score}
    options = {f"--{name.replace('_', '-')}": value for name, value in chosen.items()}
    run = job.begin("answer", options, sample=None, endings=(*TABLES, PAGE))
    from bertcli import tasks

    def begin(progress: Progress) -> RecordStream:
        return tasks.answer(run.model, run.texts, start=progress, **chosen, **job.reading)  # type: ignore[arg-type]

    table = MarkedTable(COLUMNS, _rows, passage_of=_passage, title="Answers", lead=LEAD)
    run.end(run.records(table, begin))


def _rows(record: Mapping[str, Any]) -> Iterator[tuple[Cell, ...]]:
    if "error" in record:
        yield record["index"], record["question"], None, record["error"], None, None
        return
    for found in record["answers"]:
        yield record["index"], record["question"], found["score"], found["answer"], found["start"], found["end"]


def _passage(record: Mapping[str, Any]) -> Passage:
    if "error" in record:
        return Passage(record["question"] or "", record["context"] or "", notes=[record["error"]])
    answers = record["answers"]
    marks = [Found(one["start"], one["end"], "", one["score"]) for one in answers]
    notes = [f"{cell(one['score'])}  {one['answer'] or 'no answer'}" for one in answers]
    return Passage(record["question"], record["context"], marks, notes)
