"""What commands read: the groups of options for it, and the texts that they name, opened (`read_texts`).

request.py has the ways in which the command of a task reads.
"""

import logging
import os
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from bertcli.cli.options import InputOptions, refuse, wrong
from bertcli.tasks.options import OWN, argument, declared, option

if TYPE_CHECKING:
    from bertcli.files.read.row_columns import Field, RowColumns
    from bertcli.files.texts import Texts

logger = logging.getLogger("bertcli")
ALL = "all"  # of --keep
MANY_WORDS = 4  # arguments of one word from which they are rather a text without quotes


@dataclass(frozen=True, eq=False, repr=False)
class SingleTexts(InputOptions):
    """The input options of a task that reads single texts: those of pairs are not offered."""

    text_pair: None = field(default=None, init=False)
    pair_column: None = field(default=None, init=False)


class TextsAlone(InputOptions):
    """The input options of a task whose pairs are rare: rows that have a second text call it text_pair."""

    not_offered: ClassVar[tuple[str, ...]] = ("text_pair", "pair_column")


class FewTexts(InputOptions):
    """The input options of a command that looks at few texts: rows have a header; a second text is text_pair."""

    not_offered: ClassVar[tuple[str, ...]] = (
        "pair_column", "no_header", "delimiter", "id_column", "keep",
    )  # fmt: skip


@dataclass(frozen=True, eq=False, repr=False)
class TextsOrChoices(InputOptions):
    """The input options of `classify`."""

    choices: bool = option(
        False,
        "",
        "Score how well each choice continues the text. Choices are the arguments after the text; with --input, all "
        "arguments.",
        panel=OWN,
    )

    @property
    def choice_texts(self) -> list[str]:
        """The arguments that are choices; none without --choices."""
        first = 0 if self.input else 1
        return (self.texts or [])[first:] if self.choices else []


@dataclass(frozen=True, eq=False, repr=False)
class Questions(InputOptions):
    """The input options of `answer`: questions, and the contexts that hold their answers."""

    texts: list[str] | None = argument(None, "[QUESTION]...", "Questions; if none, one per line from standard input.")
    column: str | None = option(None, "NAME", "The field that holds the question. (default: question)")
    text_pair: str | None = option(None, "TEXT", "The text that answers all questions.", "--context", panel=OWN)
    pair_column: str | None = option(
        None, "NAME", "The field that holds the context. (default: context, without --context)", "--context-column",
        panel=OWN,
    )  # fmt: skip


@dataclass(frozen=True, eq=False, repr=False)
class Documents(SingleTexts):
    """The input options of `rank`: a query and documents, or rows that hold both."""

    texts: list[str] | None = argument(
        None,
        "[QUERY] [DOCUMENT]...",
        "The query, then the documents; if none, one per line from standard input.",
    )
    column: str | None = option(None, "NAME", "The field that holds the document. (default: text)")
    query_column: str | None = option(
        None, "NAME", "The field that holds the query; sort the rows by query.", panel=OWN
    )


@dataclass(frozen=True, eq=False, repr=False)
class QueryRows(InputOptions):
    """Rows that hold a query and a document: the text is the query, the second text the document.

    The options have the names of the command's own, for messages.
    """

    column: str | None = option(None, "", "", "--query-column")
    pair_column: str | None = option(None, "", "", "--column")


# ----------------------------------------------------------------------------------------------------- opening texts


def read_texts(options: InputOptions, keep_going: bool = False, called: str = "text", way_on: str = "") -> "Texts":
    """Open the texts of the options: arguments, files, or stdin.

    `called` is the word for a text in messages, `way_on` ends the message on a text that cannot be used. Wrong usage is
    a typer.BadParameter.
    """
    files = options.input or []
    if options.texts and files:
        raise wrong("--input", f"give {called}s or --input, not both.")
    about_columns = names_columns(options)
    if about_columns or options.text_pair is not None:
        check_columns(options)
    if options.texts:
        return arguments_as_texts(options, called, way_on)
    if not files and (sys.stdin is None or sys.stdin.isatty()):
        raise wrong(called.upper(), f"give a {called}, a file with --input, or pipe {called}s in, one per line.")
    from bertcli.files.read.inputs import rows_in
    from bertcli.files.texts import STANDARD_INPUT

    columns = columns_of(options)
    if columns.keep_all:
        columns = columns._replace(keep=all_other_fields(files, columns))
    named = files or [STANDARD_INPUT]
    return rows_in(named, columns, keep_going, about_columns, way_on, options.limit)


def columns_of(options: InputOptions) -> "RowColumns":
    """The columns that are read of rows, each with the name of its option in this command."""
    from bertcli.files.read.row_columns import Field, RowColumns

    names, pair = option_names(options), options.pair_column
    usual = "1" if options.no_header else "text"
    return RowColumns(
        Field(usual if options.column is None else options.column, names["column"]),
        None if pair is None else Field(pair, names["pair_column"]),
        None if options.id_column is None else Field(options.id_column, "--id-column", "a text or whole number"),
        fixed_pair=options.text_pair,
        own_pair=takes_pairs(options),
        header=not options.no_header,
        delimiter=options.delimiter,
        headerless="no_header" not in getattr(options, "not_offered", ()),
        keep=tuple(Field(name, "--keep", "anything") for name in options.keep or ()),
        keep_all=options.keep == [ALL],
        or_words=options.column is None and usual == "text",
    )


def all_other_fields(files: list[str], columns: "RowColumns") -> "tuple[Field, ...]":
    """The fields of the first row of each file that are not read anyway. Wrong usage is a typer.BadParameter."""
    from bertcli.files.read.inputs import matching_files, rows_in
    from bertcli.files.read.row_columns import Field
    from bertcli.files.texts import STANDARD_INPUT

    if not files or STANDARD_INPUT in files:
        raise wrong("--keep", "a pipe is read only once: name the fields to keep, or give a file (--input).")
    whole = columns._replace(text=None, pair=None, id=None, keep=(), whole=True)
    names: dict[str, None] = {}
    for file in (name for named in files for name in matching_files(named)):
        first = next(iter(rows_in([file], whole, keep_going=True)), None) if os.path.isfile(file) else None
        names |= dict.fromkeys(first.label or () if first else ())
    read = {field.name for field in columns.in_row(names).fields}
    return tuple(Field(name, "--keep", "anything") for name in names if name not in read)


def names_columns(options: InputOptions) -> bool:
    """True if an option is about columns, so that a pipe has rows of them."""
    named = (options.column, options.pair_column, options.id_column, options.keep, options.delimiter)
    return options.no_header or any(name is not None for name in named)


def takes_pairs(options: InputOptions) -> bool:
    """True if the command reads second texts, and none are named."""
    has_pairs = "pair_column" in option_names(options)
    return has_pairs and options.pair_column is None and options.text_pair is None


def option_names(options: InputOptions) -> dict[str, str]:
    """The names on the command line of a group's options; a command may call them otherwise."""
    return {option.name: option.shown_name for option in declared(type(options))}


def check_columns(options: InputOptions) -> None:
    """Refuse options about fields, columns and formats that the input does not have.

    Wrong usage is a typer.BadParameter.
    """
    files, names = options.input or [], option_names(options)
    if options.text_pair is not None and options.pair_column is not None:
        raise wrong(names["pair_column"], f"give {names['text_pair']} or {names['pair_column']}, not both.")
    naming = ("column", "pair_column", "id_column", "keep")
    given = [names[name] for name in naming if getattr(options, name) is not None]
    if given:
        from bertcli.files.read.inputs import takes_columns

        if options.texts or not takes_columns(files):
            why = "this needs named fields: an --input file .jsonl, .csv, .tsv or .parquet, or a pipe of such rows."
            raise wrong(given[0], why)
    if options.no_header or options.delimiter is not None:
        from bertcli.files.read.inputs import are_separated

        if options.texts or not are_separated(files):
            why = "this is about columns: give a .csv or .tsv file (--input), or a pipe of such rows."
            refuse(options, ("--no-header", "--delimiter"), why)


def arguments_as_texts(options: InputOptions, called: str, way_on: str) -> "Texts":
    """The arguments as texts, with a note where one looks like a file that was meant to be read."""
    from bertcli.files.texts import STANDARD_INPUT, from_arguments

    texts = (options.texts or [])[: options.limit]
    for text in (*texts, options.text_pair or ""):
        is_folder = os.path.isdir(text)
        if is_folder or os.path.isfile(text):
            kind = "folder" if is_folder else "file"
            logger.info("%r is taken as a text; to read the %s of that name: -i %s", text, kind, text)
    if len(texts) >= MANY_WORDS and called == "text" and not any(" " in text for text in texts):
        logger.info("%d texts of one word each; a text of several words stands in quotes.", len(texts))
    if STANDARD_INPUT in (*texts, options.text_pair):
        logger.warning("the %s '-' is taken literally; use -i - to read standard input.", called)
    return from_arguments(texts, options.text_pair, way_on)


def files_of(texts: "Texts") -> list[Path] | None:
    """The files that texts come from; None if they cannot be read a second time (stdin)."""
    if texts.files is None or not all(Path(file).is_file() for file in texts.files):
        return None
    return [Path(file) for file in texts.files]
