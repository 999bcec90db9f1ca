"""The request of a task's command, made of its options, and the model that they name, opened.

What a task reads (`InputKind`) has a row in READINGS: its groups of options, how its texts are opened, and what else
the command line says of the task's own options. results.py writes what comes of a request.
"""

import logging
from collections.abc import Callable
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from bertcli.cli.inputs import (
    ALL,
    Documents,
    QueryRows,
    Questions,
    SingleTexts,
    TextsAlone,
    TextsOrChoices,
    files_of,
    read_texts,
)
from bertcli.cli.options import EngineOptions, InputOptions, LongOptions, ModelOptions, wrong
from bertcli.cli.output import OutputOptions, check_folder, is_folder
from bertcli.cli.vectors import VectorOutput
from bertcli.errors import BertcliError
from bertcli.extensions.of_kinds import fitting
from bertcli.files.files_beside import check_output
from bertcli.files.formats import LINES, PAGE, TABLES
from bertcli.names import MASKED_SAMPLE
from bertcli.tasks.registry import (
    DOCUMENTS,
    QUESTIONS,
    SINGLE_TEXTS,
    TEXTS,
    TEXTS_OR_CHOICES,
    TEXTS_WITH_IDS,
    InputKind,
    TaskSpec,
)
from bertcli.tasks.request import Request

if TYPE_CHECKING:
    from bertcli.files.texts import Texts
    from bertcli.loaded_model import LoadedModel

logger = logging.getLogger("bertcli")
K = TypeVar("K", bound="LoadedModel")
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


def complete(spec: TaskSpec, reading: "Reading", given: Given) -> Request:
    """Make the request of a task's command, and refuse what cannot be read or written.

    Wrong usage is a typer.BadParameter.
    """
    options, output = reading.options(given), given.output.output
    allowed, needs = endings(spec, options), spec.needs(options)
    if needs.sample is None and given.model.model is None:
        such = needs.fitting or fitting(needs.task)
        raise wrong(
            "--model",
            f"there is no bundled model for {needs.task}; give one that fits{f', such as {such}' if such else ''}.",
        )
    texts = reading.open(given)
    if texts.kept:
        texts = without_clashes(texts, given, spec, options)
    if spec.table(options).rewritten is not None and is_folder(output):
        check_folder(output, given.texts.input or [])
    elif output is not None:
        check_output(output, allowed)
    if given.long.resume:
        check_resumable(given, texts, allowed)
    if texts.files and not options.keep_going:
        check_rows(texts)
    prompt_name = getattr(options, "prompt_name", None)
    open_named = partial(open_model, given.model, needs.sample or MASKED_SAMPLE, given.engine, prompt_name)
    return Request(spec, replace(options, workers=options.workers or "auto"), texts, open_named, output)


def endings(spec: TaskSpec, options: Any) -> tuple[str, ...]:
    """The endings of files that can hold a task's results."""
    table = spec.table(options)
    page = (PAGE,) if table.on_page else ()
    lines = (LINES,) if table.line_of is not None else ()
    arrays = spec.arrays(options) if spec.arrays is not None else ()
    return tuple(dict.fromkeys((*lines, *TABLES, *page, *arrays)))


def without_clashes(texts: "Texts", given: Given, spec: TaskSpec, options: Any) -> "Texts":
    """Keep no field of the input whose name results have for another. Wrong usage is a typer.BadParameter."""
    own = {name for name in spec.record(options) if not name.endswith("?")}
    if given.texts.id_column is not None or spec.arrays is not None:
        own.add("id")
    own |= {"error", *spec.table(options).in_files.file_columns(own_ids="id" in own)}
    clashing = [name for name in texts.kept if name in own]
    if clashing and given.texts.keep != [ALL]:
        raise wrong("--keep", f"the results have a field {clashing[0]!r} of their own: rename that of the input.")
    for name in clashing:
        logger.info("the field %r is not kept: the results have one of that name.", name)
    return replace(texts, kept=tuple(name for name in texts.kept if name not in own))


def check_resumable(given: Given, texts: "Texts", allowed: tuple[str, ...]) -> None:
    """Refuse --resume where it cannot work. Wrong usage is a typer.BadParameter."""
    if given.output.output is None:
        raise wrong("--resume", "--resume needs --output: only a result in a file can be continued.")
    if files_of(texts) is None:
        raise BertcliError("A pipe cannot be read a second time, so --resume needs the texts in a file (--input).")
    if given.output.is_page:
        works = ", ".join(allowed[:-1])
        why = f"a {PAGE} page is written at the end, so --resume does not go with it; it works with {works}."
        raise wrong("--resume", why)


def check_rows(texts: "Texts") -> int:
    """Read files to their ends before any work, so that a bad row is told at once; a pipe is read only once.

    Returns the number of texts; 0 for a pipe. Reading takes a small part of the time of computing. Errors: BertcliError
    naming the first row that cannot be used.
    """
    return sum(1 for _ in texts.rows) if texts.files else texts.count or 0


# --------------------------------------------------------------------------------------------------- ways of reading


def as_texts(given: Given) -> "Texts":
    """Open texts, each a request's text."""
    return read_texts(given.texts, given.options.keep_going, way_on=WAY_ON)


def before_choices(given: Given) -> "Texts":
    """Open texts; the arguments after the first are choices, or with --input all of them."""
    arguments, choices = given.texts.texts or [], given.texts.choice_texts
    texts = arguments[: len(arguments) - len(choices)] or None
    return as_texts(given._replace(texts=replace(given.texts, texts=texts)))


def with_choices(given: Given) -> Any:
    """The options of `classify` with the choices. Wrong usage is a typer.BadParameter."""
    choices = given.texts.choice_texts
    if given.texts.choices and not choices:
        raise wrong("--choices", "give the text, and the choices after it; with --input give only the choices.")
    return replace(given.options, choices=choices) if choices else given.options


def as_vectors(given: Given) -> Any:
    """The options of `encode`; refuse what the file cannot hold. Wrong usage is a typer.BadParameter."""
    options, output = given.options, given.output
    output.check_holds(options, given.texts)
    return options.output.with_words(options) if output.shows_table else options


def as_questions(given: Given) -> "Texts":
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


def as_documents(given: Given) -> "Texts":
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


class Reading(NamedTuple):
    """How the command of a task reads.

    texts, model, output  its groups of options
    open                  opens the texts
    options               the task's options, with what the other groups say of them
    """

    texts: type[InputOptions]
    open: Callable[[Given], "Texts"] = as_texts
    options: Callable[[Given], Any] = lambda given: given.options
    model: type[ModelOptions] = ModelOptions
    output: type[OutputOptions] = OutputOptions


# A task that gives vectors has other outputs.
OF_VECTORS = Reading(TextsAlone, options=as_vectors, output=VectorOutput)
READINGS: dict[InputKind, Reading] = {
    TEXTS: Reading(InputOptions),
    TEXTS_WITH_IDS: Reading(TextsAlone),
    TEXTS_OR_CHOICES: Reading(TextsOrChoices, before_choices, with_choices),
    SINGLE_TEXTS: Reading(SingleTexts),
    QUESTIONS: Reading(Questions, as_questions),
    DOCUMENTS: Reading(Documents, as_documents),
}


# ------------------------------------------------------------------------------------------------------------- model


def open_model(
    options: ModelOptions, sample: str, engine: EngineOptions | None = None, prompt_name: str | None = None
) -> "LoadedModel":
    """Open the model of the options, or the bundled sample, with a note on stderr.

    prompt_name: may choose the adapter of a model that has one for each task. Wrong usage is a typer.BadParameter.
    """
    from bertcli.folder.hub import Source

    source = Source(**options.load_arguments(sample), prompt_name=prompt_name)
    # Before the code of networks is imported, so that a name that is wrong is told at once.
    folder = source.find()
    from bertcli.loaded_model import NUMPY, EngineChoice, LoadedModel

    model = LoadedModel.open(folder, source.name, engine=NUMPY if engine is None else EngineChoice(engine.engine))
    for note in model.notes:
        logger.info("%s", note)
    return model


def public_name(model: str) -> str:
    """Name a model for clients of a server: its name on the Hub, of a folder the last part.

    A path of this machine is nobody else's business.
    """
    parts = [model] if Path(model).exists() else model.split("+")
    return "+".join(Path(part).absolute().name if Path(part).exists() else part for part in parts)


def note_untrained(options: ModelOptions, model: "LoadedModel", works: tuple[str, ...]) -> None:
    """Log a note if the model that was given was not trained for a work that has a bundled model.

    No `works`: it is none of these.
    """
    if not works or options.model is None:
        return
    from bertcli.capabilities import untrained

    if note := untrained(model, works):
        logger.info("%s", note)


def open_as(
    model_class: type[K],
    options: ModelOptions,
    sample: str,
    engine: EngineOptions | None = None,
    prompt_name: str | None = None,
    name_in_notes: bool = False,
) -> K:
    """Open a model as `open_model` does, as an instance of `model_class`, a subclass of LoadedModel such as `Model`.

    name_in_notes: begin each note with the model's name, for commands that open several.
    """
    computing = asdict(engine) if engine else {}
    model = model_class.load(**options.load_arguments(sample), **computing, prompt_name=prompt_name)
    for note in model.notes:
        logger.info("%s", f"{model.name}: {note}" if name_in_notes else note)
    return model
