"""An evaluation as tables: on the terminal, as Markdown and as CSV."""

from collections.abc import Iterator, Sequence

from bertcli.evaluate.bootstrap import DRAWS, Record, sentence
from bertcli.evaluate.evaluation import Evaluation
from bertcli.evaluate.outcome import Way
from bertcli.report.documents import Document
from bertcli.report.tables import Row, Table
from bertcli.report.terminal import Column

Cells = tuple[list[Column], list[list[str]]]
INTERVAL = "95 % interval"
MANY = 2  # more models, or ways to store vectors, stand below one another, each with its first figure


def value(figure: Record, form: str = ".4f") -> str:
    """A figure for people."""
    return "–" if figure["value"] is None else f"{figure['value']:{form}}"


def interval(figure: Record, form: str = ".4f") -> str:
    """Its 95 % interval."""
    return "" if figure["value"] is None else f"[{figure['low']:{form}}, {figure['high']:{form}}]"


def tabled(columns: Sequence[Column], rows: Sequence[Row]) -> Cells:
    """A table without columns that say nothing in it."""
    table = Table(tuple(columns), lambda record: rows)
    table.add({})
    return table.shown()


def figures_of(model: Record) -> Record:
    """The figures of all texts (None), and of each group."""
    return {None: model["metrics"], **model["by"]}


def documents(evaluation: Evaluation) -> list[Document]:
    """The figures, and those of labels; each has the whole record."""
    record = evaluation.record
    models = record["models"]
    tables = [_side_by_side(models) if len(models) <= MANY else _below_one_another(record)]
    if labels := [*rows_of_labels(models)]:
        tables.append(tabled(OF_LABELS, labels))
    lines = [
        {"model": model["model"], "group": group, "metric": name, **figure}
        for model in models
        for group, figures in figures_of(model).items()
        for name, figure in figures.items()
    ]
    *others, last = tables
    return [
        *(Document(*table, [], record, lines) for table in others),
        Document(*last, [*below(evaluation)], record, lines),
    ]


def _side_by_side(models: Sequence[Record]) -> Cells:
    """All figures, for all texts and for each group."""
    columns = [Column("Group", optional=True), Column("Figure"), Column("Value", number=True), Column(INTERVAL)]
    if len(models) > 1:
        columns[2:] = [Column(model["model"]) for model in models]
    rows: list[Row] = []
    for group, names in figures_of(models[0]).items():
        for name in names:
            figures = [figures_of(model)[group][name] for model in models]
            cells = [(value(figure), interval(figure)) for figure in figures]
            rows.append((group, name, *(cells[0] if len(models) == 1 else map(" ".join, cells))))
    return tabled(columns, rows)


def _below_one_another(record: Record) -> Cells:
    """The first figure of each, beside what its vectors take, and by how much it is above the first model's."""
    main = next(iter(record["models"][0]["metrics"]))
    names = ("Model", "Dims", "Type", "Bytes", main, "Difference", "Ahead")
    columns = [Column(name, number=name not in ("Model", "Type"), varying=name != main) for name in names]
    apart = {one["b"]: one for one in record["differences"] if one["metric"] == main}
    rows: list[Row] = []
    for model in record["models"]:
        name, figure, other = model["model"], model["metrics"][main], apart.get(model["model"])
        stored = [model.get(key, "") for key in Way._fields]
        name = name.removesuffix(f", {Way(*stored).title}")
        apart_by = (f"{value(other, '+.3f')} {interval(other, '.3f')}", f"{other['ahead']:.0%}") if other else ("", "")
        rows.append((name, *stored, f"{value(figure, '.3f')} {interval(figure, '.3f')}", *apart_by))
    return tabled(columns, rows)


OF_LABELS = (
    Column("Model", varying=True),
    Column("Label"),
    *(Column(name, number=True) for name in ("Precision", "Recall", "F1", "Support")),
    Column("Found as", optional=True),
)


def rows_of_labels(models: Sequence[Record]) -> Iterator[Row]:
    """Each label's figures, and what its texts were found as, most often first."""
    for model in models:
        labels = model.get("labels", [])
        for row, counts in zip(labels, model.get("confusion", [[]] * len(labels)), strict=True):
            found = sorted(zip(counts, (row["label"] for row in labels), strict=False), key=lambda pair: -pair[0])
            taken = ", ".join(f"{name} {count:,}" for count, name in found if count)
            numbers = (f"{row[key]:.4f}" for key in ("precision", "recall", "f1"))
            yield model["model"], row["label"], *numbers, f"{row['support']:,}", taken


def below(evaluation: Evaluation) -> Iterator[str]:
    """The sentences below the tables."""
    record, unit = evaluation.record, evaluation.unit
    if len(record["models"]) == 2:
        yield sentence(record["differences"][0], record["count"], unit)
    left_out, first = record["left_out"], evaluation.data.left_out.first
    rest = f"; {left_out:,} left out{f' (the first: {first})' if first else ''}" if left_out else ""
    yield f"{record['count']:,} {unit}{rest}. Intervals hold 95 % of {DRAWS:,} draws with replacement."
