"""What the command of a task reads: a row of READINGS for each kind of input, with its groups of options.

A row says, too, how the texts are opened, and what else the command line says of the task's own options. Not here: the
texts that a group of options names, opened (inputs.py).
"""

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from bertcli.cli.inputs import (
    Documents,
    QueryRows,
    Questions,
    SingleTexts,
    TextsAlone,
    TextsOrChoices,
    read_texts,
)
from bertcli.cli.options import EngineOptions, InputOptions, LongOptions, ModelOptions, wrong
from bertcli.cli.output import OutputOptions
from bertcli.cli.vectors import VectorOutput
from bertcli.tasks.registry import (
    DOCUMENTS,
    QUESTIONS,
    SINGLE_TEXTS,
    TEXTS,
    TEXTS_OR_CHOICES,
    TEXTS_WITH_IDS,
    InputKind,
)

if TYPE_CHECKING:
    from bertcli.files.texts import Texts

# Ends the message on a text that cannot be used.
WAY_ON = " (--keep-going goes on without such texts.)"


class Given(NamedTuple):
    """What a task's command is given: its groups of options."""

    texts: Any
    model: ModelOptions
    output: Any
    long: LongOptions
    engine: EngineOptions
    options: Any


def open_texts(given: Given) -> "Texts":
    """Open texts, each a request's text."""
    return read_texts(given.texts, given.options.keep_going, way_on=WAY_ON)


class Reading(NamedTuple):
    """How the command of a task reads.

    texts, model, output  its groups of options
    open                  opens the texts
    options               the task's options, with what the other groups say of them
    """

    texts: type[InputOptions]
    open: Callable[[Given], "Texts"] = open_texts
    options: Callable[[Given], Any] = lambda given: given.options
    model: type[ModelOptions] = ModelOptions
    output: type[OutputOptions] = OutputOptions


def open_before_choices(given: Given) -> "Texts":
    """Open texts; the arguments after the first are choices, or with --input all of them."""
    arguments, choices = given.texts.texts or [], given.texts.choice_texts
    texts = arguments[: len(arguments) - len(choices)] or None
    return open_texts(given._replace(texts=replace(given.texts, texts=texts)))


def options_with_choices(given: Given) -> Any:
    """The options of `classify` with the choices. Wrong usage is a typer.BadParameter."""
    choices = given.texts.choice_texts
    if given.texts.choices and not choices:
        raise wrong("--choices", "give the text, and the choices after it; with --input give only the choices.")
    return replace(given.options, choices=choices) if choices else given.options


def options_of_vectors(given: Given) -> Any:
    """The options of `encode`; refuse what the file cannot hold. Wrong usage is a typer.BadParameter."""
    options, output = given.options, given.output
    output.check_holds(options, given.texts)
    return options.output.with_words(options) if output.shows_table else options


def open_questions(given: Given) -> "Texts":
    """Open questions, each with the text that holds its answer: one for all, or from its row."""
    from bertcli.files.read.inputs import takes_columns
    from bertcli.files.texts import STANDARD_INPUT

    questions = given.texts
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
    return read_texts(questions, given.options.keep_going, called="question", way_on=WAY_ON)


def open_documents(given: Given) -> "Texts":
    """Open documents, each with the query: the first argument, or from its row."""
    options, keep_going = given.texts, given.options.keep_going
    if options.query_column is not None:
        if options.texts:
            raise wrong("QUERY", "give the query or --query-column, not both.")
        document = options.column or ("2" if options.no_header else "text")
        rows = QueryRows(
            input=options.input,
            column=options.query_column,
            pair_column=document,
            no_header=options.no_header,
            delimiter=options.delimiter,
            limit=options.limit,
            id_column=options.id_column,
            keep=options.keep,
        )
        return read_texts(rows, keep_going, called="row", way_on=WAY_ON)
    if not options.texts:
        raise wrong("QUERY", "give the query, or the field that holds it (--query-column).")
    query, *documents = options.texts
    single = InputOptions(
        texts=documents or None,
        input=options.input,
        column=options.column,
        no_header=options.no_header,
        delimiter=options.delimiter,
        limit=options.limit,
        id_column=options.id_column,
        keep=options.keep,
    )
    source = read_texts(single, keep_going, called="document", way_on=WAY_ON)
    from bertcli.tasks.compute.rank import with_query

    return with_query(query, source)


# A task that gives vectors has other outputs.
OF_VECTORS = Reading(TextsAlone, options=options_of_vectors, output=VectorOutput)
READINGS: dict[InputKind, Reading] = {
    TEXTS: Reading(InputOptions),
    TEXTS_WITH_IDS: Reading(TextsAlone),
    TEXTS_OR_CHOICES: Reading(TextsOrChoices, open_before_choices, options_with_choices),
    SINGLE_TEXTS: Reading(SingleTexts),
    QUESTIONS: Reading(Questions, open_questions),
    DOCUMENTS: Reading(Documents, open_documents),
}
