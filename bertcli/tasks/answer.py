"""The task answer: its options, record and table. Its work is in compute/answer.py."""

from collections.abc import Iterator, Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Any, Literal

from bertcli.files.texts import Pairs
from bertcli.report.marked import MarkedTable, Passage, mark
from bertcli.report.tables import Record, cell
from bertcli.report.terminal import Column
from bertcli.tasks.examples import CONTEXT, QUESTION, Example, Subject
from bertcli.tasks.options import for_python, option
from bertcli.tasks.registry import QUESTIONS, Fields, Needs, TaskSpec
from bertcli.tasks.window_options import WindowOptions

Scoring = Literal["probability", "logits"]


@dataclass(frozen=True, eq=False, repr=False)
class AnswerOptions(WindowOptions):
    """Find the answer to a question in a text of any length.

    bertcli answer -m deepset/bert-base-cased-squad2 "Who?" --context "Ann did."
    bertcli answer -m my-model "Who?" "When?" --context "$(cat story.txt)"
    bertcli answer -m my-model -i questions.jsonl --no-answer -o answers.jsonl
    bertcli answer -m my-model -i asked.csv --column q --context-column story
    bertcli answer -m my-model -i questions.jsonl --top-k 3 -o answers.html

    A file has a question and its context in each row. A terminal shows the context
    with the answers marked; a pipe gets a table of them. start and end count
    characters of the context.

    Give a model for extractive question answering with -m; none is bundled. A long
    context is read in overlapping windows; nothing is cut. A .csv, .tsv or .parquet
    file has the rows of the table, a .html file the marked contexts, too.
    """

    contexts: Pairs = None  # one for each question, or one for all
    top_k: int | None = option(None, "K", "How many answers per question. (default: 1)", least=1)
    max_answer_length: int | None = for_python(None, "Tokens of an answer, at most. (default: 15)", least=1)
    no_answer: bool = option(False, "", 'Let "no answer" (an empty text) compete with the answers.')
    score: Scoring = for_python(
        "probability",
        "probability (default), or logits: start + end minus those of no answer, comparable across windows.",
    )
    _: KW_ONLY
    max_length: int | None = for_python(None, "Read in windows of N tokens. (default: the model's limit, at most 384)")
    stride: int | None = for_python(None, "How many tokens windows share. (default: half, at most 128)", least=0)


def record(options: AnswerOptions) -> Fields:
    """Records {index, question, context, answers: [{score, start, end, answer}, …]}, best answer first.

    start and end count characters of the context, which is read in windows, as in `tag`, and never cut.
    """
    answer = {"score": float, "start": int, "end": int, "answer": str}
    return {"index": int, "question": str, "context": str, "answers": [answer]}


COLUMNS = (
    Column("index", int, varying=True),
    Column("question"),
    Column("score", float),
    Column("answer"),
    Column("start", int),
    Column("end", int),
)
LEAD = (
    "Each question, and its context with the answers marked. A stronger mark has a higher score: a measure of how "
    "sure the model is, not of whether it is right."
)


def passage(record: Record) -> Passage:
    """Mark the answers in the context, after the question."""
    spans = record.get("answers", ())
    marks = [mark(span["start"], span["end"], "", span["score"]) for span in spans]
    notes = [f"{cell(span['score'])}  {span['answer'] or 'no answer'}" for span in spans]
    return Passage(record["question"] or "", record["context"] or "", marks, notes)


def examples(subject: Subject) -> Iterator[Example]:
    """Yield a question about a context."""
    yield Example("answer", [QUESTION, "--context", CONTEXT])


def shape(record: Record, options: Mapping[str, Any]) -> Any:
    """Shape a record as transformers' pipeline does: the answer, or a list if several are requested."""
    return record["answers"][0] if options.get("top_k", 1) == 1 else record["answers"]


SPEC = TaskSpec(
    AnswerOptions,
    reads=QUESTIONS,
    needs=lambda options: Needs("answer", "qa", None, "-m deepset/bert-base-cased-squad2"),
    record=record,
    shape=shape,
    table=lambda options: MarkedTable(COLUMNS, "answers", passage_of=passage, title="Answers", lead=LEAD),
    examples=examples,
    position=6,
    other_words=("qa", "ask"),
)
