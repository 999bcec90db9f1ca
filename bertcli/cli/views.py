"""What explain, lens, heads and diff share: options, a progress bar, and where a view goes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from bertcli.cli.job import read_texts, set_threads
from bertcli.cli.options import InputOptions, OutputOptions, TableFormat, ThreadOptions, changed, wrong
from bertcli.errors import BertcliError
from bertcli.files.formats import PAGE, check_output
from bertcli.tasks.options import option

if TYPE_CHECKING:
    from bertcli.files.texts import Texts
    from bertcli.report.documents import Document

MASK = "[MASK]"  # in an argument: the bundled model for masks is meant


@dataclass(frozen=True)
class PassOptions(ThreadOptions):
    """How texts are cut, and how the work is done."""

    batch_tokens: int | None = option(None, "N", "Tokens computed together. (default: 1536)", panel="Work", least=1)
    max_length: int | None = option(None, "N", "Cut texts to N tokens. (default: the model's own limit)", panel="Input")


@dataclass(frozen=True)
class AskedOptions:
    """Which result of a text is asked about."""

    label: str | None = option(None, "LABEL", "A label's log-odds. (default: the predicted label)")
    word: str | None = option(None, "WORD", "A word's log-probability at the mask. (default: the best word)")
    other: str | None = option(None, "TEXT", "The cosine of the text's vector with this text's.", "--with")

    def check(self) -> None:
        """Wrong usage is a typer.BadParameter."""
        if len(given := changed(self)) > 1:
            raise wrong(", ".join(given), "ask about one result.")

    def wants_masked_sample(self, texts: InputOptions) -> bool:
        """Whether the bundled model without labels is meant: for a mask, or for vectors."""
        return self.word is not None or self.other is not None or any(MASK in text for text in texts.texts or ())


@dataclass(frozen=True)
class DocumentOptions:
    """How one view of everything is shown."""

    format: TableFormat = option("table", "FORMAT", "How it is printed: table (default), json, csv or markdown.")
    output: str | None = option(None, "FILE", "Write a .html page or a .json file.", "-o", "--output")


class View(Protocol):
    """What can be shown."""

    @property
    def record(self) -> dict[str, Any]: ...

    def document(self) -> Document: ...


V = TypeVar("V", bound=View)


def begin(texts: InputOptions, passes: PassOptions, output: str | None, endings: tuple[str, ...]) -> Texts:
    """The texts asked for, counted if they are at hand. A file that cannot be written is refused before any work."""
    from bertcli.files.texts import Texts

    set_threads(passes)
    source = read_texts(texts, OutputOptions(output=output))
    if output is not None:
        check_output(output, endings)
    if not source.at_hand:
        return source
    rows = list(source)
    return Texts(rows, at_hand=True, count=len(rows))


def show_each(
    found: Iterable[V],
    task: str,
    texts: Texts,
    output: OutputOptions,
    show: Callable[[V], None],
    page: Callable[[Sequence[V]], str],
) -> None:
    """Views of texts as records, or a page of all of them, or shown one after the other on standard output.

    Where they are collected before they are shown, a progress bar counts them.
    """
    if output.output is not None or output.format == "json":
        from bertcli.report.progress import counted

        found = counted(found, task, "texts", texts.count)
    ending = Path(output.output or "").suffix.lower()
    if ending == PAGE:
        several = list(found)
        if not several:
            raise BertcliError(f"A {PAGE} file needs a text: give it.")
        _write(output.output or "", page(several))
    elif output.output is not None or output.format != "table":
        from bertcli.files.records import record_output
        from bertcli.files.table import Table

        with record_output(output.format, output.output, Table((), lambda record: ())) as add:
            for one in found:
                add(one.record)
    else:
        for number, one in enumerate(found):
            if number:
                print()
            show(one)


def show_document(found: V, wanted: DocumentOptions, page: Callable[[V], str]) -> None:
    """One view of everything as a page or a JSON file, or printed."""
    from bertcli.report.documents import as_json, print_document

    ending = Path(wanted.output or "").suffix.lower()
    if wanted.output is None:
        print_document(found.document(), wanted.format)
    elif ending == ".json":
        _write(wanted.output, as_json(found.record).decode() + "\n")
    else:
        _write(wanted.output, page(found))


def _write(file: str, text: str) -> None:
    """Write a whole file; on an error what was there stays."""
    from bertcli.files.shards import save

    save(file, text.encode())
