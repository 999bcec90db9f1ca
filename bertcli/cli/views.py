"""What explain, lens, heads and diff share: options, a progress bar, and where a view goes."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Protocol, TypeVar

import typer

from bertcli.cli.job import read_texts, set_threads
from bertcli.cli.options import BatchTokens, InputOptions, MaxLength, OutputOptions, Threads, WorkOptions, option
from bertcli.errors import BertcliError

if TYPE_CHECKING:
    from bertcli.report import Document, Format

PICTURES = (".html", ".svg")
RECORDS = (".json", ".jsonl")
MASK = "[MASK]"  # in an argument: the bundled model for masks is meant
T = TypeVar("T")


@dataclass(frozen=True)
class PassOptions:
    """How texts are cut, and how the work is done."""

    max_length: MaxLength = None
    batch_tokens: BatchTokens = None
    threads: Threads = None


@dataclass(frozen=True)
class AskedOptions:
    """Which result of a text is asked about."""

    label: Annotated[
        str | None, option(None, "--label", metavar="LABEL", help="A label's log-odds. (default: the predicted label)")
    ] = None
    word: Annotated[
        str | None,
        option(None, "--word", metavar="WORD", help="A word's log-probability at the mask. (default: the best word)"),
    ] = None
    other: Annotated[
        str | None, option(None, "--with", metavar="TEXT", help="The cosine of the text's vector with this text's.")
    ] = None

    def check(self) -> None:
        """Wrong usage is a typer.BadParameter."""
        if sum(one is not None for one in (self.label, self.word, self.other)) > 1:
            raise typer.BadParameter("ask about one result.", param_hint="--label, --word, --with")

    def wants_masked_sample(self, texts: InputOptions) -> bool:
        """Whether the bundled model without labels is meant: for a mask, or for vectors."""
        return self.word is not None or self.other is not None or any(MASK in text for text in texts.texts or ())


class View(Protocol):
    """What a view of one text offers."""

    @property
    def record(self) -> dict[str, Any]: ...


V = TypeVar("V", bound=View)


def has_several(texts: InputOptions) -> bool:
    """Whether more than one text may come: then texts are counted, not the batches of each."""
    return len(texts.texts or ()) != 1


def followed(found: Iterable[V], texts: InputOptions, output: OutputOptions, task: str) -> Iterable[V]:
    """The same views; where they are collected before they are shown, a progress bar counts them."""
    collected = output.output is not None or output.format == "json"
    if not (has_several(texts) and collected and sys.stderr.isatty()):
        return found
    from bertcli.report import progress  # brings rich

    given = len(texts.texts or ())
    done = count(1)

    def reached(one: V) -> tuple[int, float | None]:
        number = next(done)
        return number, number / given if given else None

    return progress(found, task, reached)


def begin(
    texts: InputOptions, passes: PassOptions, output: str | None, endings: tuple[str, ...]
) -> Iterator[tuple[str, str | None]]:
    """The texts asked for, each with its pair; a file that cannot be written is refused before any work."""
    set_threads(WorkOptions(threads=passes.threads))
    source = read_texts(texts, OutputOptions(output=output))
    if output is not None:
        from bertcli.files.draft import check_output

        check_output(output, endings)
    return ((text.text, text.pair) for text in source)


def tracked(items: Sequence[T], task: str, unit: str) -> Iterable[T]:
    """The same items, counted by a progress bar if standard error is a terminal."""
    if not sys.stderr.isatty() or len(items) < 2:
        return items
    from bertcli.report import progress  # brings rich

    total = len(items)
    done = iter(range(1, total + 1))

    def reached(item: T) -> tuple[int, float]:
        count = next(done)
        return count, count / total

    return progress(items, task, reached, unit)


def show_each(
    found: Iterable[V],
    output: OutputOptions,
    show: Callable[[V], None],
    page: Callable[[Sequence[V]], str],
    svg: Callable[[V], str],
) -> None:
    """Views of texts as records, or a page of all of them, or shown one after the other on standard output."""
    ending = Path(output.output or "").suffix.lower()
    if ending in PICTURES:
        several = list(found)
        if not several or (ending == ".svg" and len(several) > 1):
            raise BertcliError(f"A {ending} file needs {'one text' if ending == '.svg' else 'a text'}: give it.")
        write(output.output or "", page(several) if ending == ".html" else svg(several[0]))
        return
    if output.output is not None or output.format != "table":
        from bertcli.files.records import record_output
        from bertcli.files.table import Table

        with record_output(output.format, output.output, Table((), lambda record: ())) as add:
            for one in found:
                add(one.record)
        return
    for number, one in enumerate(found):
        if number:
            print()
        show(one)


def show_document(
    document: Document, output: str | None, format: Format, page: Callable[[], str], svg: Callable[[], str]
) -> None:
    """One view of everything as a page, a drawing or a JSON file, or printed."""
    ending = Path(output or "").suffix.lower()
    if output is None:
        from bertcli.report import print_document

        print_document(document, format)
    elif ending == ".json":
        from bertcli.report import as_json

        write(output, as_json(document.record).decode() + "\n")
    else:
        write(output, page() if ending == ".html" else svg())


def write(file: str, text: str) -> None:
    """Write a whole file; on an error what was there stays."""
    from bertcli.files.draft import save

    save(file, text.encode("utf-8", "backslashreplace"))
