"""Groups of input options by what a task reads: texts, questions with contexts, a query with documents."""

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar

from bertcli.cli.classifier import ClassifiedModelOptions
from bertcli.cli.job import Job, read_texts
from bertcli.cli.options import InputOptions, TextsWithIds, argument, wrong
from bertcli.cli.vectors import VectorOutput
from bertcli.tasks.options import option
from bertcli.tasks.registry import (
    DOCUMENTS,
    PAIRS_IN_ROWS,
    QUESTIONS,
    SINGLE_TEXTS,
    TEXTS,
    TEXTS_OR_CHOICES,
    TEXTS_WITH_IDS,
    InputKind,
)

if TYPE_CHECKING:
    from bertcli.files.texts import Texts
    from bertcli.tasks.classify import ClassifyOptions
    from bertcli.tasks.encode import EncodeOptions


@dataclass(frozen=True, eq=False, repr=False)
class SingleTexts(InputOptions):
    """The input options of a task that reads single texts: those of pairs are not offered."""

    text_pair: None = field(default=None, init=False)
    pair_column: None = field(default=None, init=False)


@dataclass(frozen=True, eq=False, repr=False)
class TextsAlone(InputOptions):
    """The input options of a task whose pairs are rare: rows that have a second text call it text_pair."""

    not_offered: ClassVar[tuple[str, ...]] = ("text_pair", "pair_column")


@dataclass(frozen=True, eq=False, repr=False)
class FewTexts(InputOptions):
    """The input options of a command that looks at few texts: rows have a header; a second text is text_pair."""

    not_offered: ClassVar[tuple[str, ...]] = ("pair_column", "no_header", "delimiter")


@dataclass(frozen=True, eq=False, repr=False)
class _AloneJob(Job):
    texts: TextsAlone


@dataclass(frozen=True, eq=False, repr=False)
class _TextsAloneWithIds(TextsWithIds, TextsAlone):
    """The input options of `encode`."""


@dataclass(frozen=True, eq=False, repr=False)
class _VectorJob(Job):
    texts: _TextsAloneWithIds
    output: VectorOutput

    def completed(self, options: "EncodeOptions") -> "EncodeOptions":
        self.output.check_holds(options, self.texts.id_column)
        # A table of sparse vectors has word pieces.
        return replace(options, words=True) if options.sparse and self.output.shows_table else options

    @property
    def settings(self) -> dict[str, Any]:
        return {**super().settings, "--dtype": self.output.dtype}


@dataclass(frozen=True, eq=False, repr=False)
class _TextsOrChoices(TextsWithIds):
    """The input options of `classify`."""

    choices: bool = option(
        False,
        "",
        "Score how well each choice continues the text. Choices are the arguments after the text; with --input, all "
        "arguments.",
    )


@dataclass(frozen=True, eq=False, repr=False)
class _LabelJob(Job):
    texts: _TextsOrChoices
    model: ClassifiedModelOptions

    def completed(self, options: "ClassifyOptions") -> "ClassifyOptions":
        if self.texts.choices and not self._choices:
            raise wrong("--choices", "give the text, and the choices after it; with --input give only the choices.")
        return replace(options, choices=self._choices) if self.texts.choices else options

    def read(self, keep_going: bool) -> "Texts":
        arguments = self.texts.texts or []
        texts = arguments[: len(arguments) - len(self._choices)] or None
        return read_texts(replace(self.texts, texts=texts), self.output, keep_going, way_on=self.way_on)

    @property
    def settings(self) -> dict[str, Any]:
        return {**super().settings, "choices": self._choices}

    @property
    def _choices(self) -> list[str]:
        """The arguments that are choices; none without --choices."""
        first = 0 if self.texts.input else 1
        return (self.texts.texts or [])[first:] if self.texts.choices else []


@dataclass(frozen=True, eq=False, repr=False)
class _SingleJob(Job):
    texts: SingleTexts


@dataclass(frozen=True, eq=False, repr=False)
class _Questions(InputOptions):
    """The input options of `answer`: questions, and the contexts that hold their answers."""

    texts: list[str] | None = argument(None, "[QUESTION]...", "Questions; if none, one per line from standard input.")
    column: str | None = option(None, "NAME", "The field that holds the question. (default: question)")
    text_pair: str | None = option(None, "TEXT", "The text that answers all questions.", "--context")
    pair_column: str | None = option(
        None, "NAME", "The field that holds the context. (default: context, without --context)", "--context-column",
    )  # fmt: skip


@dataclass(frozen=True, eq=False, repr=False)
class _QuestionsJob(Job):
    texts: _Questions

    def read(self, keep_going: bool) -> "Texts":
        from bertcli.files.read.inputs import takes_columns
        from bertcli.files.texts import STANDARD_INPUT

        questions = self.texts
        files = questions.input or [STANDARD_INPUT]
        without_context = questions.text_pair is None and questions.pair_column is None
        # With a context for all a pipe has a question a line, unless a column is named.
        lines_piped = files == [STANDARD_INPUT] and questions.text_pair is not None and questions.column is None
        if not questions.texts and not lines_piped and takes_columns(files):
            question, context = ("1", "2") if questions.no_header else ("question", "context")
            questions = replace(
                questions,
                column=questions.column or question,
                pair_column=context if without_context else questions.pair_column,
            )
        elif without_context and not (questions.texts and questions.input):
            raise wrong("--context", "give the text that holds the answer.")
        return read_texts(questions, self.output, keep_going, called="question", way_on=self.way_on)


@dataclass(frozen=True, eq=False, repr=False)
class _Documents(SingleTexts):
    """The input options of `rank`: a query and documents, or rows that hold both."""

    texts: list[str] | None = argument(
        None,
        "[QUERY] [DOCUMENT]...",
        "The query, then the documents; if none, one per line from standard input.",
    )
    column: str | None = option(None, "NAME", "The field that holds the document. (default: text)")
    query_column: str | None = option(None, "NAME", "The field that holds the query; sort the rows by query.")


@dataclass(frozen=True, eq=False, repr=False)
class _QueryRows(InputOptions):
    """Rows that hold a query and a document: the text is the query, the second text the document.

    The options have the names of the command's own, for messages.
    """

    column: str | None = option(None, "", "", "--query-column")
    pair_column: str | None = option(None, "", "", "--column")


@dataclass(frozen=True, eq=False, repr=False)
class _DocumentsJob(Job):
    texts: _Documents

    def read(self, keep_going: bool) -> "Texts":
        options = self.texts
        if options.query_column is not None:
            if options.texts:
                raise wrong("QUERY", "give the query or --query-column, not both.")
            document = options.column or ("2" if options.no_header else "text")
            rows = _QueryRows(
                input=options.input,
                column=options.query_column,
                pair_column=document,
                no_header=options.no_header,
                delimiter=options.delimiter,
            )
            return read_texts(rows, self.output, keep_going=keep_going, called="row", way_on=self.way_on)
        if not options.texts:
            raise wrong("QUERY", "give the query, or the field that holds it (--query-column).")
        query, *documents = options.texts
        single = InputOptions(
            texts=documents or None,
            input=options.input,
            column=options.column,
            no_header=options.no_header,
            delimiter=options.delimiter,
        )
        source = read_texts(single, self.output, keep_going=keep_going, called="document", way_on=self.way_on)
        from bertcli.tasks.compute.rank import with_query

        return with_query(query, source)


JOBS: dict[InputKind, type[Job]] = {
    TEXTS: Job,
    TEXTS_WITH_IDS: _VectorJob,
    PAIRS_IN_ROWS: _AloneJob,
    TEXTS_OR_CHOICES: _LabelJob,
    SINGLE_TEXTS: _SingleJob,
    QUESTIONS: _QuestionsJob,
    DOCUMENTS: _DocumentsJob,
}
