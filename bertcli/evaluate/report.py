"""An evaluation as tables: on the terminal, as Markdown and as CSV."""

from collections.abc import Iterator, Sequence
from typing import Any

from bertcli.evaluate.intervals import DRAWS, Figure
from bertcli.evaluate.judge import Evaluation, Verdict
from bertcli.report.documents import Document
from bertcli.report.tables import Row, Table
from bertcli.report.terminal import Column

Cells = tuple[list[Column], list[list[str]]]
INTERVAL = "95 % interval"
MANY = 2  # more models, or ways to store vectors, stand below one another, each with its first figure


def value(figure: Figure, sign: str = "") -> str:
    """A figure for people."""
    return f"{figure.value:{sign}.4f}" if figure.value == figure.value else "–"


def interval(figure: Figure) -> str:
    """Its 95 % interval."""
    low, high = figure.interval
    return f"[{low:.4f}, {high:.4f}]" if low == low else ""


def tabled(columns: Sequence[Column], rows: Sequence[Row]) -> Cells:
    """A table without columns that say nothing in it."""
    table = Table(tuple(columns), lambda record: rows)
    table.add({})
    return table.shown()


def documents(evaluation: Evaluation) -> list[Document]:
    """The figures, and those of labels; each has the whole record."""
    models = evaluation.models
    tables = [_side_by_side(models) if len(models) <= MANY else _below_one_another(evaluation)]
    if labels := [*rows_of_labels(models)]:
        tables.append(tabled(OF_LABELS, labels))
    lines = [
        {"model": verdict.outcome.name, "group": group, "metric": name, **figure.record}
        for verdict in models
        for group in (None, *verdict.by)
        for name, figure in verdict.of(group).items()
    ]
    *others, last = tables
    return [
        *(Document(*table, [], evaluation.record, lines) for table in others),
        Document(*last, [*below(evaluation)], evaluation.record, lines),
    ]


def _side_by_side(models: Sequence[Verdict]) -> Cells:
    """All figures, for all texts and for each group."""
    columns = [Column("Group", optional=True), Column("Figure"), Column("Value", number=True), Column(INTERVAL)]
    if len(models) > 1:
        columns[2:] = [Column(verdict.outcome.name) for verdict in models]
    rows: list[Row] = []
    for group in (None, *models[0].by):
        for name in models[0].figures:
            cells = [(value(verdict.of(group)[name]), interval(verdict.of(group)[name])) for verdict in models]
            rows.append((group, name, *(cells[0] if len(models) == 1 else map(" ".join, cells))))
    return tabled(columns, rows)


def _below_one_another(evaluation: Evaluation) -> Cells:
    """The first figure of each, beside what its vectors take, and by how much it is above the first model's."""
    main = next(iter(evaluation.models[0].figures))
    names = ("Model", "Dims", "Type", "Bytes", main, "Difference", "Ahead")
    columns = [Column(name, number=name not in ("Model", "Type"), varying=name != main) for name in names]
    apart = {one.b: one for one in evaluation.differences if one.metric == main}
    rows: list[Row] = []
    for verdict in evaluation.models:
        name, way, figure = verdict.outcome.name, verdict.outcome.way, verdict.figures[main]
        stored = (f"{way.truncate_dim:,}", way.dtype, f"{way.bytes:,}") if way else ("", "", "")
        name = name.removesuffix(f", {way.title}") if way else name
        other = apart.get(verdict.outcome.name)
        difference = (
            (f"{value(other.figure, '+')} {interval(other.figure)}", f"{other.ahead:.0%}") if other else ("", "")
        )
        rows.append((name, *stored, f"{value(figure)} {interval(figure)}", *difference))
    return tabled(columns, rows)


OF_LABELS = (
    Column("Model", varying=True),
    Column("Label"),
    *(Column(name, number=True) for name in ("Precision", "Recall", "F1", "Support")),
    Column("Found as", optional=True),
)


def rows_of_labels(models: Sequence[Verdict]) -> Iterator[Row]:
    """Each label's figures, and what its texts were found as, most often first."""
    for verdict in models:
        labels: Sequence[Any] = verdict.details.labels
        for row, counts in zip(labels, verdict.details.confusion or [[]] * len(labels), strict=True):
            found = sorted(zip(counts, (row["label"] for row in labels), strict=False), key=lambda pair: -pair[0])
            taken = ", ".join(f"{name} {count:,}" for count, name in found if count)
            numbers = (f"{row[key]:.4f}" for key in ("precision", "recall", "f1"))
            yield verdict.outcome.name, row["label"], *numbers, f"{row['support']:,}", taken


def below(evaluation: Evaluation) -> Iterator[str]:
    """The sentences below the tables."""
    for difference in evaluation.differences if len(evaluation.models) == 2 else ():
        if difference.metric == next(iter(evaluation.models[0].figures)):
            yield difference.sentence(evaluation.count, evaluation.unit)
    left_out, first = evaluation.left_out, evaluation.data.left_out.first
    rest = f"; {left_out:,} left out{f' (the first: {first})' if first else ''}" if left_out else ""
    yield f"{evaluation.count:,} {evaluation.unit}{rest}. Intervals hold 95 % of {DRAWS:,} draws with replacement."
