"""Make the tables of an evaluation, for the terminal, Markdown and CSV."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from bertcli.report.documents import Document
from bertcli.report.intervals import written
from bertcli.report.tables import Row, Table
from bertcli.report.terminal import Column
from bertcli.statistics.intervals import Record
from bertcli.wings.evaluate import provenance
from bertcli.wings.evaluate.comparison import p_of, sentence
from bertcli.wings.evaluate.evaluation import Evaluation
from bertcli.wings.evaluate.evaluators.bertscore import SCALES
from bertcli.wings.evaluate.evaluators.minimal_pairs import CAUTION
from bertcli.wings.evaluate.outcome import VectorStorage
from bertcli.wings.evaluate.report.of_models import figures_of, with_short_names

Cells = tuple[list[Column], list[list[str]]]
INTERVAL = "95 % interval"
# Labels that a sentence lists.
SHOWN = 5
MANY = 2  # more models, or ways to store vectors, stand below one another, each with its first figure


# --------------------------------------------------------------------------------------------------------------- cells


def tabled(columns: Sequence[Column], rows: Sequence[Row]) -> Cells:
    """Leave out the columns of a table that are `optional` and empty, or `varying` and all equal."""
    table = Table(tuple(columns), lambda record: rows)
    table.add({})
    return table.displayed()


# ----------------------------------------------------------------------------------------------------------- documents


def documents(evaluation: Evaluation) -> list[Document]:
    """The figures, the differences of two models, and the figures of labels; each has the whole record."""
    record = with_short_names(evaluation.record)
    models = record["models"]
    tables = [_side_by_side(models) if len(models) <= MANY else _below_one_another(record)]
    if len(models) == MANY:
        tables.append(tabled(DIFFERENCES, [*rows_of_differences(record["differences"])]))
    if labels := [*rows_of_labels(models)]:
        tables.append(tabled(OF_LABELS, labels))
    lines = [*csv_lines(evaluation.record["models"])]
    *others, last = tables
    found = [Document(*table, [], evaluation.record, lines) for table in others]
    sentences = [*below(evaluation), *provenance.sentences(evaluation.record)]
    return [*found, Document(*last, sentences, evaluation.record, lines)]


def csv_lines(models: Sequence[Record]) -> Iterator[Record]:
    """A line for each figure, with the same fields in all."""
    for model in models:
        for group, figures in figures_of(model).items():
            for name, figure in figures.items():
                yield {
                    "model": model["model"],
                    "group": group,
                    "metric": name,
                    **figure,
                    "reason": figure.get("reason"),
                }


def _side_by_side(models: Sequence[Record]) -> Cells:
    """All figures, for all texts and for each group."""
    columns = [
        Column("Group", optional=True),
        Column("Figure"),
        Column("Value", number=True),
        Column(INTERVAL),
        Column("n", number=True),
    ]
    if len(models) > 1:
        columns[2:4] = [Column(model["model"]) for model in models]
    rows: list[Row] = []
    for group, names in figures_of(models[0]).items():
        for name in names:
            figures = [figures_of(model)[group][name] for model in models if name in figures_of(model)[group]]
            cells = [written(figure) for figure in figures]
            if len(models) == 1:
                rows.append((group, name, *cells[0], f"{figures[0]['n']:,}"))
            elif len(figures) == len(models):
                rows.append((group, name, *(cell.together for cell in cells), f"{figures[0]['n']:,}"))
    return tabled(columns, rows)


DIFFERENCES = (
    Column("Figure"),
    Column("Second − first", number=True),
    Column(INTERVAL, number=True),
    Column("p", number=True),
    Column("Test"),
    Column("Detectable", number=True),
)


def rows_of_differences(differences: Sequence[Record]) -> Iterator[Row]:
    """Each figure's difference of two models, with what this file could have shown."""
    for each in differences:
        p = "" if each["p"] is None else p_of(each["p"])
        seen = "" if each["smallest"] is None else f"{each['smallest']:.2g}"
        yield each["metric"], *written(each, signed=True), p, each["test"], seen


def _below_one_another(record: Record) -> Cells:
    """The first figure of each, beside what its vectors take, and by how much it is above the first model's."""
    main = next(iter(record["models"][0]["metrics"]))
    names = ("Model", "Dims", "Type", "Bytes", main, "Difference", "p")
    columns = [Column(name, number=name not in ("Model", "Type"), varying=name != main) for name in names]
    difference_of = {each["b"]: each for each in record["differences"] if each["metric"] == main}
    rows: list[Row] = []
    for model in record["models"]:
        name = model["model"]
        stored = [model.get(key, "") for key in VectorStorage._fields]
        short = name.removesuffix(f", {VectorStorage(*stored).title}")
        figure = model["metrics"][main]
        cells = [written(figure).together, "", ""]
        if name in difference_of:
            other = difference_of[name]
            cells[1] = written(other, signed=True).together
            cells[2] = "" if other["p"] is None else p_of(other["p_holm"])
        rows.append((short, *stored, *cells))
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


# ----------------------------------------------------------------------------------------------------------- sentences


def below(evaluation: Evaluation) -> Iterator[str]:
    """The sentences below the tables: which model is better, what was counted, what intervals are, what is missing."""
    record, unit = with_short_names(evaluation.record), evaluation.unit
    models = record["models"]
    if len(models) == MANY and record["differences"]:
        yield sentence(record["differences"][0], record["count"], unit)
    left_out, first = record["left_out"], evaluation.data.left_out.first
    rest = f"; {left_out:,} left out{f' (the first: {first})' if first else ''}" if left_out else ""
    drawn = "" if record["clusters"] is None else f" of {record['clusters']:,} clusters, which are drawn together"
    yield f"{quantity(record['count'], unit)}{drawn}{rest}."
    with_interval = figure_with_interval(record)
    if with_interval is not None:
        yield what_intervals_are(with_interval, record["count"], unit)
    if len(models) == MANY:
        yield "Detectable: the smallest difference that would have been seen in 80 % of files like this one."
    if len(models) > MANY:
        yield "Differences are from the first; p is corrected for their number as Holm does."
    yield from what_is_missing(models)
    if record["task"] == "minimal-pairs":
        yield CAUTION
    signatures = [*dict.fromkeys(model["signature"] for model in models if "signature" in model)]
    if len(signatures) > 1:
        yield SCALES
    for signature in signatures:
        yield f"Cite as {signature}"


def quantity(count: int, unit: str) -> str:
    """A number of things: "1 text", "40 texts", "1 query"."""
    singular = f"{unit[:-3]}y" if unit.endswith("ies") else unit[:-1]
    return f"{count:,} {singular if count == 1 else unit}"


def figure_with_interval(record: Record) -> str | None:
    """The first figure that has an interval, in the whole or in a group; None if none has."""
    for model in record["models"]:
        for figures in figures_of(model).values():
            for name, figure in figures.items():
                if figure["low"] is not None:
                    return name
    return None


def what_intervals_are(figure: str, count: int, unit: str) -> str:
    """The meaning of a confidence interval, with a figure as an example."""
    return (
        f"95 % confidence interval: the range of values that the model's true {figure} on all {unit} of this kind may "
        f"plausibly have, as these {quantity(count, unit)} suggest."
    )


def what_is_missing(models: Sequence[Record]) -> Iterator[str]:
    """Why figures have no interval, and which labels are in none."""
    yield from without_intervals(models)
    yield from absent_labels(models)


def without_intervals(models: Sequence[Record]) -> Iterator[str]:
    """The reasons why figures have no interval, a line for all figures with one reason; of some models: with names."""
    figures_of_reason: dict[str, list[str]] = {}
    models_of_reason: dict[str, list[str]] = {}
    for model in models:
        for group, figures in figures_of(model).items():
            for name, figure in figures.items():
                if reason := figure.get("reason"):
                    # A group has a line of its own, unless the whole has the same reason.
                    whole = model["metrics"].get(name, {}).get("reason")
                    key = f"{reason} ({group})" if group is not None and reason != whole else reason
                    _append_new(figures_of_reason.setdefault(key, []), name)
                    _append_new(models_of_reason.setdefault(key, []), model["model"])
    for reason, names in figures_of_reason.items():
        having = models_of_reason[reason]
        of = "" if len(having) == len({model["model"] for model in models}) else f" of {', '.join(having)}"
        yield f"No interval for {', '.join(names)}{of}: {reason}."


def absent_labels(models: Sequence[Record]) -> Iterator[str]:
    """How many labels of a model are neither true nor predicted here, and so not in macro F1."""
    for model in models:
        if absent := model.get("absent"):
            of_labels = len(absent) + len(model["labels"])
            names = ", ".join(absent[:SHOWN]) + (" …" if len(absent) > SHOWN else "")
            verb, them = ("is", "it") if len(absent) == 1 else ("are", "them")
            yield (
                f"{len(absent)} of {of_labels} labels of {model['model']} {verb} neither true nor predicted here, and "
                f"macro_f1 leaves {them} out: {names}."
            )


def _append_new(names: list[str], name: str) -> None:
    if name not in names:
        names.append(name)


def label_rows_have_intervals(labels: Sequence[Mapping[str, Any]]) -> bool:
    """True if recalls of labels have intervals."""
    return any(row.get("recall_low") is not None for row in labels)
