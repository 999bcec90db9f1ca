"""The page of `bertcli evaluate`: figures with their intervals, confusion matrix, curves, worst cases.

figure.py draws its figure for a paper.
"""

from collections.abc import Iterator, Sequence

from bertcli.report.charts import STYLE as CHARTS
from bertcli.report.charts import Curve, charted, confused, strip
from bertcli.report.intervals import written
from bertcli.report.page import Markup, element, page, side_by_side, table
from bertcli.report.tables import Row
from bertcli.report.terminal import Column
from bertcli.statistics.intervals import Record
from bertcli.wings.evaluate import provenance
from bertcli.wings.evaluate.comparison import p_of
from bertcli.wings.evaluate.evaluation import Evaluation
from bertcli.wings.evaluate.figures import explanation
from bertcli.wings.evaluate.report.of_models import figures_of, with_short_names
from bertcli.wings.evaluate.report.tables import (
    DIFFERENCES,
    INTERVAL,
    OF_LABELS,
    below,
    figure_with_interval,
    label_rows_have_intervals,
    rows_of_differences,
    rows_of_labels,
    tabled,
    what_is_missing,
)

STYLE = f"""{CHARTS}
figcaption {{ margin-top: .5rem; }}
.source {{ color: var(--quiet); font-size: .9rem; margin-top: 2rem; }}
.source p {{ margin: 0 0 .2rem; max-width: none; }}
"""
COLUMNS = (
    Column("Group", optional=True),
    Column("Figure"),
    Column("Model", varying=True),
    *(Column(name, number=True) for name in ("Value", INTERVAL, "n")),
    Column("from 0 to 1", optional=True),
)


def evaluation_page(evaluation: Evaluation, title: str) -> str:
    """Draw the page: figures, differences and groups on the left; what they mean, labels and pictures on the right."""
    record = with_short_names(evaluation.record)
    models = record["models"]
    left = [table("Figures", *tabled(COLUMNS, [*_rows_of_figures(models, None)]))]
    if record["differences"]:
        left.append(_differences(record))
    if groups := [name for name in figures_of(models[0]) if name is not None]:
        rows = [row for group in groups for row in _rows_of_figures(models, group)]
        left.append(table("By group", *tabled(COLUMNS, rows)))
    right = [_explained(models, record["task"])]
    if labels := [*rows_of_labels(models)]:
        # Groups are the longer table: where there are some, labels stand on the other side.
        (right if groups else left).append(table("By label", *_label_table(models, labels)))
    for model, curve in zip(models, evaluation.curves, strict=True):
        right += _pictures(model, curve)
    # With groups there are many reasons why something is missing: they stand below what is there.
    missing = [*what_is_missing(models)]
    content = [element("p", sentence) for sentence in below(evaluation) if sentence not in missing]
    content.append(side_by_side(left, right, even=True))
    content += [element("p", sentence) for sentence in missing]
    content += [_readable(model, record["data"]) for model in models if model.get("readable")]
    content += [_worst(model, record["data"]) for model in models if model["worst"]]
    # The command is in the page's head.
    source = [element("p", line) for line in provenance.sentences(record, with_command=False)]
    content.append(element("div", *source, class_="source"))
    return page(title, *content, lead=lead(record), model=names_in(record), style=STYLE)


def lead(record: Record) -> str:
    """Say in a few sentences what the figures show, and what they do not."""
    measured, neither = "Each figure is measured on these texts. ", "It does not show"
    if figure_with_interval(record) is not None:
        measured += "Its interval is the range in which the figure on all texts of this kind plausibly lies. "
        neither = "Neither shows"
    return (
        f"{measured}{neither} whether these texts resemble those that the model will see, nor whether their labels are "
        "right."
    )


def names_in(record: Record) -> str:
    """The names of the models, each once."""
    return ", ".join(dict.fromkeys(model["name"] for model in record["provenance"]["models"]))


def _rows_of_figures(models: Sequence[Record], group: str | None) -> Iterator[Row]:
    """A row for each figure of each model, of all texts (None) or of a group."""
    for name in figures_of(models[0])[group]:
        for model in models:
            figure = figures_of(model)[group].get(name)
            if figure is not None:
                cells = *written(figure), f"{figure['n']:,}", _strip(figure)
                yield group, name, model["model"], *cells


def _strip(figure: Record) -> Markup | str:
    return strip(figure["value"], figure["low"], figure["high"], written(figure).together)


def _explained(models: Sequence[Record], task: str) -> Markup:
    """The meaning of each figure, in a line; figures with one meaning share it."""
    names_of: dict[str, list[str]] = {}
    for name in dict.fromkeys(name for model in models for name in model["metrics"]):
        names_of.setdefault(explanation(name, task), []).append(name)
    rows = [[_together(names), meaning] for meaning, names in names_of.items()]
    return table("What the figures are", [Column("Figure"), Column("Meaning")], rows)


def _together(names: Sequence[str]) -> str:
    """Names of figures with one meaning: "ndcg@K" for those at several ranks, else all of them."""
    kinds = {name.partition("@")[0] for name in names}
    at_ranks = all(name.partition("@")[2].isdecimal() for name in names)
    return f"{kinds.pop()}@K" if at_ranks and len(kinds) == 1 and len(names) > 1 else ", ".join(names)


def _differences(record: Record) -> Markup:
    """The differences of two models, or of several from the first."""
    models = record["models"]
    if len(models) > 2:
        return table(*many_differences(record))
    caption = f"Differences: {models[1]['model']} less {models[0]['model']}"
    return table(caption, *tabled(DIFFERENCES, [*rows_of_differences(record["differences"])]))


def many_differences(record: Record) -> tuple[str, list[Column], list[list[str]]]:
    """All differences from the first model, with Holm's p."""
    columns = [
        Column("Model"),
        *(Column(name, number=name != "Figure") for name in ("Figure", "Less the first", INTERVAL, "p (Holm)")),
    ]
    rows: list[Row] = []
    for one in record["differences"]:
        p = "" if one["p"] is None else p_of(one["p_holm"])
        rows.append((one["b"], one["metric"], *written(one, signed=True), p))
    return f"Differences from {record['models'][0]['model']}", *tabled(columns, rows)


def _label_table(models: Sequence[Record], rows: Sequence[Row]) -> tuple[list[Column], list[list[str]]]:
    """The table of labels; where recall is a share of independent texts, its interval stands behind it.

    What texts were found as is left out where the confusion matrix shows it.
    """
    labels = [label for model in models for label in model.get("labels", [])]
    if any(model.get("confusion") for model in models):
        rows = [(*row[:-1], "") for row in rows]
    if not label_rows_have_intervals(labels):
        return tabled(OF_LABELS, rows)
    at = 1 + next(i for i, column in enumerate(OF_LABELS) if column.name == "Recall")
    columns = [*OF_LABELS[:at], Column(INTERVAL, number=True), *OF_LABELS[at:]]
    wider: list[Row] = []
    for row, label in zip(rows, labels, strict=True):
        recall = {"value": label["recall"], "low": label["recall_low"], "high": label["recall_high"]}
        wider.append((*row[:at], written(recall).interval, *row[at:]))
    return tabled(columns, wider)


def _pictures(model: Record, curve: Curve | None) -> Iterator[Markup]:
    """The confusion matrix and the curve of a model, where it has them."""
    name = model["model"]
    if confusion := model.get("confusion"):
        yield confused(name, [row["label"] for row in model["labels"]], confusion)
    if curve is not None:
        yield charted(curve._replace(title=f"{name}: {curve.title}"))


def _readable(model: Record, file: str) -> Markup:
    """What stays readable of true entities."""
    columns = [Column("Place"), Column("Label"), Column("Entity"), Column("Stays readable")]
    rows: list[Row] = []
    for left in model["readable"]:
        place = left["place"].removeprefix(f"{file}, ")
        rows.append((place, left["label"], left["entity"], left["readable"]))
    count, shown = model["readable_count"], len(rows)
    of_all = f"{count:,}" if count == shown else f"the first {shown:,} of {count:,}"
    caption = f"What --redact would leave readable with {model['model']}: {of_all}"
    return table(caption, *tabled(columns, rows), wide=True)


def _worst(model: Record, file: str) -> Markup:
    """The texts on which a model did worst; their places without the name of the one data file."""
    columns = [Column(key.replace("_", " ").capitalize(), optional=True) for key in model["worst"][0]]
    rows: list[Row] = []
    for case in model["worst"]:
        place, *others = case.values()
        rows.append((place.removeprefix(f"{file}, ").removeprefix(f"{file}/"), *others))
    return table(f"The worst cases of {model['model']}", *tabled(columns, rows), wide=True)
