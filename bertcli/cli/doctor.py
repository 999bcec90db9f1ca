"""The command doctor: its options and its lines. bertcli/doctor.py finds and measures."""

import logging
from dataclasses import dataclass
from typing import Any

from bertcli import extensions
from bertcli.cli.installed import plugin_list
from bertcli.cli.options import ModelOptions, models_here
from bertcli.cli.output import PrintOptions
from bertcli.report.documents import Document, flat, print_document
from bertcli.report.terminal import Column
from bertcli.tasks.options import option

logger = logging.getLogger("bertcli")
SPEEDS = (Column("Sentences", number=True), Column("Tokens each", number=True), Column("NumPy, ms", number=True))
PRODUCTS = (
    Column("Tokens", number=True),
    Column("In strips", number=True),
    Column("Plain", number=True),
    Column("OpenBLAS's threads", number=True),
    Column("bertcli", number=True),
)


@dataclass(frozen=True, eq=False, repr=False)
class DoctorOptions(PrintOptions):
    """The options of doctor's output."""

    model: str | None = option(
        None, "DIR|HUB_ID", "Also measure this model in each engine.", "-m", "--model",
        autocompletion=models_here,
    )  # fmt: skip


def doctor(options: DoctorOptions) -> None:
    """Show what determines speed here: BLAS, its kernel, threads, measured rates.

    bertcli doctor
    bertcli doctor --format json
    bertcli doctor -m sentence-transformers/all-MiniLM-L6-v2

    With -m a table compares NumPy with the other engine (--engine) on this model: a
    short text, a longer one, a small batch and a long text. The times are measured
    once and kept beside the model's graph in the cache.
    """
    from bertcli.doctor import examine
    from bertcli.report.terminal import print_table, visible

    findings = examine()
    if installed := plugin_list():
        findings["plugins"] = installed
    speeds = None if options.model is None else _speeds(options.model)
    if speeds is not None:
        findings["engines"] = speeds
    if options.printed != "table":
        columns = (Column("Finding"), Column("Value"))
        rows = [(name, str(flat(value))) for name, value in findings.items()]
        print_document(Document(columns, rows, [], findings, [findings]), options.printed)
        return
    for name, value in findings.items():
        if name in ("engines", "products"):
            continue
        if value not in (None, []):
            if isinstance(value, bool):
                value = "yes" if value else "no"
            between = ", " if name == "plugins" else " "
            text = between.join(value) if isinstance(value, list) else str(value)
            print(f"{name.replace('_', ' '):26}{visible(text)}")
    print("\nMicroseconds of a product of BERT-base: with one thread in strips and plain, with all threads as")
    print("OpenBLAS divides it and as bertcli does.")
    print_table(PRODUCTS, [[_count(value) for value in row.values()] for row in findings["products"]])
    if speeds:
        print()
        measured, *_ = (*extensions.engines(), *extensions.plugin_engines())
        timed = (*SPEEDS, Column(f"{measured.title}, ms", number=True), Column("Faster"))
        print_table(timed, [[_cell(row[column]) for column in row] for row in speeds])


def _count(value: int | None) -> str:
    """A cell of the table of products."""
    return "" if value is None else f"{value:,}"


def _cell(value: str | float) -> str:
    """A cell of the table of speeds: milliseconds with two decimals, counts and names as they are."""
    return f"{value:.2f}" if isinstance(value, float) else str(value)


def _speeds(model: str) -> list[dict[str, Any]]:
    """Measure a model in NumPy and the other engine; empty, with a note, if there is none, or it cannot run it."""
    if not (*extensions.engines(), *extensions.plugin_engines()):
        logger.info("there is no engine beside NumPy here to compare it with: leave out -m.")
        return []
    from bertcli.loaded_model import LoadedModel

    opened = LoadedModel.load(model, **ModelOptions().fetching, text=False)
    for note in opened.notes:
        logger.info("%s", note)
    from bertcli.doctor import engine_times

    return engine_times(opened)
