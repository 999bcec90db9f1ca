"""bertcli answer"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from bertcli.cli.job import Job, read_texts
from bertcli.cli.options import InputOptions, argument, wrong
from bertcli.files.formats import PAGE, TABLES
from bertcli.report.marked import MarkedTable, Passage, mark
from bertcli.report.tables import Cell, cell
from bertcli.report.terminal import Column
from bertcli.tasks.answer import AnswerOptions
from bertcli.tasks.options import option

if TYPE_CHECKING:
    from bertcli.files.texts import Texts

COLUMNS = (
    Column("index", number=int, varying=True),
    Column("question"),
    Column("score", number=float),
    Column("answer"),
    Column("start", number=int),
    Column("end", number=int),
)
LEAD = (
    "Each question with its context, where the answers are marked: the stronger, the higher the score, which says how "
    "sure the model is, not that it is right."
)


@dataclass(frozen=True)
class _Questions(InputOptions):
    """Questions, and the contexts that hold their answers."""

    texts: list[str] | None = argument(None, "[QUESTION]...", "Questions; if none, one per line from standard input.")
    column: str | None = option(None, "NAME", "The field that holds the question. (default: question)", panel="Input")
    text_pair: str | None = option(None, "TEXT", "The text that answers all questions.", "--context", panel="Input")
    pair_column: str | None = option(
        None, "NAME", "The field that holds the context. (default: context, without --context)", "--context-column",
        panel="Input",
    )  # fmt: skip


@dataclass(frozen=True)
class _Job(Job):
    texts: _Questions

    def read(self, keep_going: bool, id_column: str | None = None, label_column: str | None = None) -> "Texts":
        from bertcli.files.inputs import takes_columns

        questions = self.texts
        without_context = questions.text_pair is None and questions.pair_column is None
        if not questions.texts and takes_columns(questions.input or [], questions.format_in):
            context = "context" if without_context else questions.pair_column
            questions = replace(questions, column=questions.column or "question", pair_column=context)
        elif without_context and not (questions.texts and questions.input):
            raise wrong("--context", "give the text that holds the answer.")
        return read_texts(questions, self.output, id_column, label_column, keep_going, called="question")


def answer(job: _Job, wanted: AnswerOptions) -> None:
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
    of at most 384 tokens that overlap, so nothing is cut. A .csv, .tsv or .parquet
    file has the rows of the table, a .html file the marked contexts, too.
    """
    run = job.begin("answer", wanted, sample=None, endings=(*TABLES, PAGE))
    from bertcli.tasks.compute.answer import plan

    table = MarkedTable(COLUMNS, _rows, passage_of=_passage, title="Answers", model=run.model.name, lead=LEAD)
    run.write(plan(run.model, run.wanted), table)


def _rows(record: Mapping[str, Any]) -> Iterator[tuple[Cell, ...]]:
    for span in record["answers"]:
        yield record["index"], record["question"], span["score"], span["answer"], span["start"], span["end"]


def _passage(record: Mapping[str, Any]) -> Passage:
    spans = record.get("answers", ())
    marks = [mark(span["start"], span["end"], "", span["score"]) for span in spans]
    notes = [f"{cell(span['score'])}  {span['answer'] or 'no answer'}" for span in spans]
    return Passage(record["question"] or "", record["context"] or "", marks, notes)
