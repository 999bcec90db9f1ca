"""Make the command of a view from its spec (`specs/`), and print its result or write it as a record or a page."""

import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from bertcli.cli.inputs import FewTexts, SingleTexts, read_texts
from bertcli.cli.model import open_model
from bertcli.cli.options import InputOptions, ModelOptions, wrong
from bertcli.cli.output import MARKDOWN, FigureOutput, OutputOptions, PageOutput, show, write_results
from bertcli.errors import BertcliError
from bertcli.extensions import CommandParts
from bertcli.files.formats import RECORDS, SEVERAL, TABLES, ending_of
from bertcli.report.documents import Document, in_markdown, print_document
from bertcli.report.tables import Table
from bertcli.report.terminal import Column
from bertcli.report.written import say_written
from bertcli.tasks.options import argument, option
from bertcli.wings.interpret.specs.probe import CLASSIFIER, LabelledTextOptions
from bertcli.wings.interpret.view_spec import ViewSpec

if TYPE_CHECKING:
    from bertcli.files.texts import Texts
    from bertcli.report.figures import Panel

logger = logging.getLogger("bertcli")


# Of files that hold the rows of tables, not records.
ROW_ENDINGS = tuple(ending for ending in TABLES if ending not in RECORDS)


def begin(texts: InputOptions, output: OutputOptions) -> "Texts":
    """Open the texts of the options, and refuse an output that cannot be written before any work."""
    source = read_texts(texts)
    output.check(source)
    return source.in_memory() if source.at_hand else source


def show_each(
    views: Iterable[Any],
    task: str,
    texts: "Texts",
    output: OutputOptions,
    draw: Callable[..., str],
) -> None:
    """Views of texts as records, or a page or figure of all of them, or shown one after the other on standard output.

    Where they are collected before they are shown, a progress bar counts them.
    """
    if output.ending in SEVERAL:
        _save_arrays([*views], output)
        return
    if output.output is not None or output.printed == "json":
        from bertcli.report.progress import counted

        views = counted(views, task, "texts", texts.count)
    if output.output is None and output.printed in ("table", "markdown"):
        for number, view in enumerate(views):
            if number:
                print()
            if output.is_table:
                view.print()
            else:
                print(f"{in_markdown(view.text)}\n", flush=True)
                print_document(view.document(), "markdown")
    elif output.is_page or output.is_figure or output.ending in (MARKDOWN, *ROW_ENDINGS) or output.printed == "csv":
        made = list(views)
        show(_together(made), output, lambda: draw(made), lambda: _panels(made))
    else:
        write_results((view.record for view in views), output, Table((), ""))


def _save_arrays(views: Sequence[Any], output: OutputOptions) -> None:
    """The arrays of the results in one file; of several texts each name begins with the text's number."""
    from bertcli.files.write.save import save_arrays

    arrays: dict[str, Any] = {}
    for number, view in enumerate(views):
        before = f"{number}." if len(views) > 1 else ""
        arrays |= {before + name: array for name, array in view.arrays().items()}
    save_arrays(str(output.output), arrays)
    say_written(str(output.output))


def _panels(views: Sequence[Any]) -> "list[Panel]":
    """The parts of one figure of all texts."""
    panels = []
    for view in views:
        of_view = [*view.panels()]
        if len(views) > 1:
            of_view[0] = of_view[0]._replace(title=f"Text {view.index}: {of_view[0].title or view.text}")
        panels += of_view
    return panels


def _together(views: Sequence[Any]) -> Document:
    """The tables of all texts in one, each row with its text's number."""
    documents = [view.document() for view in views]
    rows, lines = [], []
    for view, document in zip(views, documents, strict=True):
        rows += [[str(view.index), *row] for row in document.rows]
        lines += [{"index": view.index, **line} for line in document.lines]
    columns = [Column("Index", number=True), *(documents[0].columns if documents else ())]
    return Document(columns, rows, [], {}, lines)


def show_document(view: Any, output: OutputOptions, draw: Callable[[Any], str]) -> None:
    """One view of everything, printed or in a file."""
    if output.is_table:
        view.print()
    elif output.ending in SEVERAL:
        _save_arrays([view], output)
    else:
        show(view.document(), output, lambda: draw(view), lambda: view.panels())


# -------------------------------------------------------------------------------------------------- what a view reads


@dataclass(frozen=True, eq=False, repr=False)
class BothTexts:
    """The two texts."""

    a: str = argument(..., "A", "The clean text: its result is explained.")
    other_text: str = argument(..., "B", "The corrupted text: it differs from A, best by one word.")


@dataclass(frozen=True, eq=False, repr=False)
class OptionalTexts(SingleTexts):
    """Texts of a command that does without: it reads no pipe unasked."""

    not_offered: ClassVar[tuple[str, ...]] = ("column", "no_header", "delimiter", "limit", "id_column", "keep")

    texts: list[str] | None = argument(
        None, "[OTHER] [TEXT]...",
        "The other model, unless --versus names it; then texts that both models run on; -i - reads them from a pipe.",
    )  # fmt: skip


class ProbeOutput(FigureOutput):
    """The output of a command that also makes a classifier."""

    endings: ClassVar[tuple[str, ...]] = (*FigureOutput.endings, CLASSIFIER)


@dataclass(frozen=True, eq=False, repr=False)
class ArraysOutput(FigureOutput):
    """The output of a command whose results have arrays."""

    endings: ClassVar[tuple[str, ...]] = (*FigureOutput.endings, *SEVERAL)


@dataclass(frozen=True, eq=False, repr=False)
class BothModels(ModelOptions):
    """The two models."""

    model: str = argument(..., "MODEL", "A folder, or a name on the Hugging Face Hub.")
    versus: str | None = option(
        None, "OTHER", "The other model, or a .npz or .safetensors file of arrays (trace -o).", panel="Model"
    )


def view_spec(name: str) -> ViewSpec:
    """The spec of a view."""
    spec: ViewSpec = import_module(f"{__package__}.specs.{name}").SPEC
    return spec


def compute(spec: ViewSpec) -> Any:
    """Import the module in compute/ of a view; only then, since it imports NumPy, which --help does without."""
    return import_module(f"{__package__}.compute.{spec.name}")


def command_parts(name: str) -> CommandParts:
    """The parts of a view's command; the docstring of its options is the help."""
    spec = view_spec(name)
    return CommandParts(spec.options.__doc__, groups_of(spec), partial(run, spec))


def groups_of(spec: ViewSpec) -> dict[str, Any]:
    """The groups of options of a view's command, by the names of `run`'s parameters."""
    common = {"options": spec.options}
    output: type[OutputOptions] = FigureOutput if spec.has_figure else PageOutput
    if spec.has_arrays:
        output = ArraysOutput
    if spec.reads == "two texts":
        return {"texts": BothTexts, "model": ModelOptions, **common, "output": output}
    if spec.reads == "two models":
        return {"models": BothModels, "texts": OptionalTexts, **common, "output": output}
    if spec.reads == "labelled texts":
        return {"data": LabelledTextOptions, "model": ModelOptions, **common, "output": ProbeOutput}
    return {"texts": FewTexts, "model": ModelOptions, **common, "output": output}


def run(spec: ViewSpec, **groups: Any) -> None:
    """Run a view's `measure`, and print or write its result."""
    if spec.reads == "texts":
        _of_texts(spec, **groups)
    elif spec.reads == "two texts":
        _of_two_texts(spec, **groups)
    elif spec.reads == "labelled texts":
        _of_labelled_texts(spec, **groups)
    else:
        _of_two_models(spec, **groups)


def _of_texts(spec: ViewSpec, texts: InputOptions, model: ModelOptions, options: Any, output: Any) -> None:
    source = begin(texts, output)
    if not spec.each:  # all are read before a model is opened
        source = source.in_memory()
    opened = open_model(model, spec.sample(options, texts.texts or ()))
    work = compute(spec)
    if spec.each:
        views = work.measure(opened, source, options)
        show_each(views, spec.name, source, output, partial(work.draw, model=opened.name))
        return
    from bertcli.files.texts import Texts
    from bertcli.report.progress import counted

    seen = Texts(counted(source, spec.name, "texts", source.count))
    show_document(work.measure(opened, seen, options), output, work.draw)


def _of_two_texts(
    spec: ViewSpec,
    texts: BothTexts,
    model: ModelOptions,
    options: Any,
    output: OutputOptions,
) -> None:
    output.check()
    opened = open_model(model, spec.sample(options, [texts.a, texts.other_text]))
    work = compute(spec)
    from bertcli.report.progress import counted

    def counting(rows: Sequence[Any]) -> Iterable[Any]:
        return counted(rows, spec.name, "rows", len(rows))

    views = work.measure(opened, texts.a, replace(options, b=texts.other_text), output.is_page, counting)
    show_document(views[0], output, lambda _: work.draw(views, opened.name))


def _of_labelled_texts(
    spec: ViewSpec,
    data: LabelledTextOptions,
    model: ModelOptions,
    options: Any,
    output: OutputOptions,
) -> None:
    output.check()
    classifier = output.output if output.ending == CLASSIFIER else None
    if classifier is not None and options.words:
        raise wrong("--words", f"a classifier ({CLASSIFIER}) is of texts, not of words: leave out one of the two.")
    options = replace(options, save=classifier)
    from bertcli.wings.interpret.labelled import read_labelled

    labelled = read_labelled(data, options)
    opened = open_model(model, spec.sample(options, ()))
    work = compute(spec)
    from bertcli.report.progress import counted

    def counting(items: Sequence[Any], unit: str) -> Iterable[Any]:
        return counted(items, spec.name, unit, len(items))

    view = work.measure(
        opened, labelled.texts, replace(options, labels=labelled.labels, clusters=labelled.clusters), counting
    )
    if classifier is None:
        show_document(view, output, lambda view: work.draw(view, opened.name))
        return
    # The table is printed first, since the file does not have it: it is there even where that cannot be written.
    view.print()
    _save_classifier(view, classifier, opened.name)


def _save_classifier(view: Any, file: str, model: str) -> None:
    """Write the classifier of a `probe`, and report on stderr its layer and the command that uses it."""
    made = view.save(file)
    say_written(file)
    layer = f"layer {made.layer}" if made.layer else "the embeddings"
    logger.info("it reads %s, pooling %s, and has %d labels.", layer, ",".join(made.pooling), len(made.labels))
    logger.info("use it: bertcli classify -m %s+%s", model, file)


def _of_two_models(
    spec: ViewSpec,
    models: BothModels,
    texts: InputOptions,
    options: Any,
    output: OutputOptions,
) -> None:
    words = [*(texts.texts or [])]
    versus = models.versus
    # A text has blanks, as no model's name has; a folder may.
    if versus is None and words and (" " not in words[0] or Path(words[0]).exists()):
        versus, *words = words
        texts = replace(texts, texts=words or None)
    if versus is None:
        raise wrong("OTHER", "give the other model, too: diff MODEL OTHER.")
    rows: list[Any] = []
    # Its texts are optional, so a pipe is read only where -i - asks for it: a shell's loop keeps its own input.
    if texts.texts or texts.input:
        rows = list(begin(texts, output))
    else:
        output.check()
    from bertcli.loaded_model import LoadedModel
    from bertcli.report.progress import counted

    work = compute(spec)
    model = LoadedModel.load(models.model, **models.fetching)
    other: str | LoadedModel = versus
    if ending_of(versus) not in SEVERAL or Path(versus).is_dir():
        other = LoadedModel.load(versus, **models.fetching)
    for either in (model, other):
        if not isinstance(either, str):
            either.note_layers_after("compared")
    values = counted([text.text for text in rows], spec.name, "texts", len(rows)) if rows or texts.input else None
    try:
        view = work.measure(model, other, values, tolerance=options.tolerance, max_length=options.max_length)
    except work.OtherText as error:
        raise wrong("TEXT", str(error)) from None
    show_document(view, output, work.draw)
    if options.check and view.differs:
        raise BertcliError(view.differs)
    if options.check == "all" and any(view.only):
        raise BertcliError(f"{'; '.join(view.only.lines(view.names))} (--check common: only what both have matters).")
