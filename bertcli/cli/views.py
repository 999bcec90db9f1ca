"""What explain, lens, heads and diff share: options, a progress bar, and where a view goes."""

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, TypeVar

from bertcli.cli.job import read_texts, set_threads
from bertcli.cli.options import (
    MASKED_SAMPLE,
    SENTENCE_SAMPLE,
    SENTIMENT_SAMPLE,
    InputOptions,
    OutputOptions,
    TableFormat,
    ThreadOptions,
)
from bertcli.files.formats import PAGE, check_output, ending_of
from bertcli.lean import lean_dataclass
from bertcli.report.written import say_written
from bertcli.tasks.options import option

if TYPE_CHECKING:
    from bertcli.files.texts import Texts
    from bertcli.report.documents import View
    from bertcli.views.options import Asked

MASK = "[MASK]"  # in an argument: the bundled model for masks is meant


@lean_dataclass
class DocumentOptions:
    """How one view of everything is shown."""

    format: TableFormat = option("table", "FORMAT", "How it is printed: table (default), json, csv or markdown.")
    output: str | None = option(None, "FILE", "Write a .html page or a .json file.", "-o", "--output")


V = TypeVar("V", bound="View")


def sample_for(wanted: "Asked", texts: InputOptions) -> str:
    """The bundled model that has such a result."""
    if wanted.versus is not None:
        return SENTENCE_SAMPLE
    masks = wanted.label is None and any(MASK in text for text in texts.texts or ())
    return MASKED_SAMPLE if masks or wanted.word is not None else SENTIMENT_SAMPLE


def begin(texts: InputOptions, threads: ThreadOptions, output: str | None, endings: tuple[str, ...]) -> "Texts":
    """The texts asked for, counted if they are at hand. A file that cannot be written is refused before any work."""
    from bertcli.files.texts import Texts

    set_threads(threads)
    source = read_texts(texts, OutputOptions(output=output))
    check_output(output, endings)
    if not source.at_hand:
        return source
    rows = list(source)
    return Texts(rows, at_hand=True, count=len(rows))


def show_each(
    views: Iterable[V],
    task: str,
    texts: "Texts",
    output: OutputOptions,
    page: Callable[[Sequence[V]], str],
) -> None:
    """Views of texts as records, or a page of all of them, or shown one after the other on standard output.

    Where they are collected before they are shown, a progress bar counts them.
    """
    if output.output is not None or output.format == "json":
        from bertcli.report.progress import counted

        views = counted(views, task, "texts", texts.count)
    if ending_of(output.output or "") == PAGE:
        from bertcli.files.shards import save

        save(str(output.output), page(list(views)).encode())
    elif output.output is not None or output.format != "table":
        from bertcli.files.forms import write_records
        from bertcli.report.tables import Table

        write_records((view.record for view in views), output.format, output.output, Table((), ""))
    else:
        for number, view in enumerate(views):
            if number:
                print()
            view.print()
    if output.output is not None:
        say_written(output.output)


def show_document(view: V, wanted: DocumentOptions, page: Callable[[V], str]) -> None:
    """One view of everything as a page or a JSON file, or printed."""
    from bertcli.report.documents import print_document
    from bertcli.report.terminal import as_json

    if wanted.output is None and wanted.format == "table":
        view.print()
    elif wanted.output is None:
        print_document(view.document(), wanted.format)
    else:
        from bertcli.files.shards import save

        draws = ending_of(wanted.output) == PAGE
        save(wanted.output, page(view).encode() if draws else as_json(view.record) + b"\n")
        say_written(wanted.output)
