"""The figure of `bertcli evaluate`: intervals, differences, confusion matrices, curves. Its page is in page.py."""

from collections.abc import Sequence

from bertcli.report.charts import Curve, confusion_map
from bertcli.report.figures import Interval, Panel, curve, heat_map, intervals
from bertcli.statistics.intervals import Record
from bertcli.wings.evaluate.report.of_models import figures_of, with_short_names

NONE = Interval(None, None, None)


def panels(record: Record, curves: Sequence[Curve | None]) -> list[Panel]:
    """The parts of the figure: of all texts and of each group, differences, and each model's plots."""
    record = with_short_names(record)
    models = record["models"]
    parts = [_intervals(models, group) for group in figures_of(models[0])]
    if record["differences"]:
        names = [*dict.fromkeys(one["metric"] for one in record["differences"])]
        others = []
        for first in range(0, len(record["differences"]), len(names)):
            of_model = record["differences"][first : first + len(names)]
            others.append((of_model[0]["b"], [_interval(one) for one in of_model]))
        parts.append(intervals(names, others, f"less {models[0]['model']}", "Differences", zero=True))
    for model, of_model in zip(models, curves, strict=True):
        if confusion := model.get("confusion"):
            labels = [row["label"] for row in model["labels"]]
            title = f"{model['model']}: true labels down, predicted across"
            parts.append(heat_map(confusion_map(model["model"], labels, confusion), title))
        if of_model is not None:
            parts.append(curve(of_model, f"{model['model']}: {of_model.title}"))
    return parts


def _intervals(models: Sequence[Record], group: str | None) -> Panel:
    """The figures of each model, of all texts (None) or of a group."""
    of_models = [figures_of(model)[group] for model in models]
    names = [*dict.fromkeys(name for figures in of_models for name in figures)]
    series = []
    for model, figures in zip(models, of_models, strict=True):
        series.append((model["model"], [_interval(figures[name]) if name in figures else NONE for name in names]))
    return intervals(names, series, "value, with its 95 % interval", group or "")


def _interval(figure: Record) -> Interval:
    return Interval(figure["value"], figure["low"], figure["high"])
