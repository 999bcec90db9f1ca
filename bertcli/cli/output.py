"""Where a result goes, in every command: to the file of -o, in the form of its ending, or to standard output.

`OutputOptions` declares --format and -o. Records of texts are written by results.py, as they come; `write_results`
writes records that are in memory, and `show` a document. No output replaces or removes a file that the command reads:
`check_not_read` is asked of the files that options name (command.py), and of those of patterns and folders (`check`, or
of a request tasks/request.py).
"""

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from bertcli.cli.options import ONE_FILE
from bertcli.errors import BertcliError, WrongOptions
from bertcli.files.files_beside import check_not_read, check_output
from bertcli.files.formats import FIGURES, PAGE, TABLES, ending_of
from bertcli.report.terminal import PrintFormat
from bertcli.report.written import say_written
from bertcli.tasks.options import option

if TYPE_CHECKING:
    from bertcli.files.texts import Texts
    from bertcli.report.documents import Document
    from bertcli.report.figures import Panel
    from bertcli.report.tables import Record, Table

OBJECT, MARKDOWN = ".json", ".md"


@dataclass(frozen=True, eq=False, repr=False)
class PrintOptions:
    """The format of what is printed."""

    panel: ClassVar = "Output"
    format: PrintFormat | None = option(
        None, "FORMAT", "How it is printed: table (default), json, jsonl, csv or markdown."
    )

    @property
    def printed(self) -> PrintFormat:
        """How the result is printed, if it is."""
        return self.format or "table"


@dataclass(frozen=True, eq=False, repr=False)
class OutputOptions(PrintOptions):
    """The output file, or the format of what is printed. Errors: BertcliError for both of them.

    endings: those of the files that a command writes; they take the place of {endings} in its help.
    """

    endings: ClassVar[tuple[str, ...]] = TABLES
    output: str | None = option(
        None, "FILE", "Write a file; its ending decides what is written: {endings}.", "-o", "--output", once=ONE_FILE
    )

    def __post_init__(self) -> None:
        if self.output is not None and self.format is not None:
            raise WrongOptions(
                f"the ending of {self.output} decides what is written: leave out --format, or -o to print the result.",
                "format",
            )

    @property
    def is_table(self) -> bool:
        """True if the result is printed as a table for people."""
        return self.output is None and self.printed == "table"

    @property
    def shows_table(self) -> bool:
        """True if the result is a table for people: printed, or Markdown, which a file may be, too."""
        return self.ending == MARKDOWN if self.output else self.printed in ("table", "markdown")

    @property
    def ending(self) -> str:
        """The ending of the file; "" without one."""
        return ending_of(self.output or "")

    @property
    def is_page(self) -> bool:
        """True if a page is written."""
        return self.ending == PAGE

    @property
    def is_figure(self) -> bool:
        """True if a figure is written."""
        return self.ending in FIGURES

    def check(self, texts: "Texts | None" = None) -> None:
        """Raise BertcliError for a file that cannot be written, or that is read for texts, before any work is done."""
        if texts is not None:
            check_not_read(self.output, texts.files or ())
        check_output(self.output, self.endings)
        if self.is_figure:
            from bertcli.report.figures import require_matplotlib

            require_matplotlib()


class PageOutput(OutputOptions):
    """The output of a command that also draws a page."""

    endings: ClassVar[tuple[str, ...]] = (*TABLES, PAGE)


class FigureOutput(PageOutput):
    """The output of a command that also draws a page, and its plots as a figure for papers."""

    endings: ClassVar[tuple[str, ...]] = (*PageOutput.endings, *FIGURES)


def is_folder(output: str | None) -> bool:
    """True if the name of an output is that of a folder: there is one, it ends in a slash, or has no ending."""
    return output is not None and (os.path.isdir(output) or output.endswith((os.sep, "/")) or not ending_of(output))


def check_folder(output: str, read: list[str]) -> None:
    """Raise BertcliError for a folder that cannot be written, or that is, or holds, what is read.

    read: the names that --input has.
    """
    if len(read) != 1 or not os.path.isdir(read[0]):
        raise BertcliError(f"Cannot write {output}: a folder is written where a folder is read (-i FOLDER).")
    target, source = (os.path.realpath(name) for name in (output, read[0]))
    if os.path.commonpath([target, source]) in (target, source):
        raise BertcliError(f"Cannot write {output}: the texts are read from {read[0]}; choose another --output.")
    if os.path.lexists(target) and not os.path.isdir(target):
        raise BertcliError(f"Cannot write {output}: something of that name exists that is not a folder.")
    if os.path.isdir(target) and os.listdir(target):
        raise BertcliError(f"Cannot write {output}: there are files in it already; choose a new --output.")
    parent = os.path.dirname(target)
    if not os.path.isdir(parent):
        raise BertcliError(f"Cannot write {output}: there is no folder {parent}.")
    if not os.access(parent, os.W_OK):
        raise BertcliError(f"Cannot write {output}: the folder {parent} is not writable.")


def write_results(records: "Iterable[Record]", output: OutputOptions, table: "Table") -> None:
    """Print records, or write them to the output file and report it on stderr."""
    from bertcli.files.write.record_writer import write_records

    write_records(records, output.printed, output.output, table)
    if output.output is not None:
        say_written(output.output)


def show(
    document: "Document",
    output: OutputOptions,
    draw: Callable[[], str] | None = None,
    panels: "Callable[[], Sequence[Panel]] | None" = None,
) -> None:
    """Print a document, or write it to the output file and report it on stderr.

    draw: gives its page. panels: gives the parts of its figure.
    """
    from bertcli.report.documents import print_document

    if output.output is None:
        print_document(document, output.printed)
        return
    write_document([document], output.output, draw, panels)
    say_written(output.output)


def write_document(
    documents: "list[Document]",
    file: str,
    draw: Callable[[], str] | None = None,
    panels: "Callable[[], Sequence[Panel]] | None" = None,
) -> None:
    """Write documents about one result: what is drawn and Markdown have all of them, any other file has the first."""
    from bertcli.files.write.record_writer import write_lines
    from bertcli.files.write.save import save
    from bertcli.report.documents import as_bytes
    from bertcli.report.terminal import as_json

    ending, first = ending_of(file), documents[0]
    if ending == PAGE and draw is not None:
        save(file, draw().encode())
    elif ending in FIGURES and panels is not None:
        from bertcli.report.figures import as_bytes as drawn
        from bertcli.report.figures import figure_of

        save(file, drawn(figure_of(panels()), ending))
    elif ending == OBJECT:
        save(file, as_json(first.record) + b"\n")
    elif ending == MARKDOWN:
        save(file, b"\n".join(as_bytes(document, "markdown") for document in documents))
    else:
        write_lines(first.lines, file, first.names)
