"""What tables, page and figure take from the record of an evaluation: the figures of a model, and short names."""

from bertcli.report.model_names import told_apart
from bertcli.statistics.intervals import Record


def figures_of(model: Record) -> dict[str | None, Record]:
    """The figures of all texts (None), and of each group."""
    return {None: model["metrics"], **model["by"]}


def with_short_names(record: Record) -> Record:
    """A record for tables, in which each model has as much of its path as distinguishes it from the others."""
    names = [*dict.fromkeys(model["model"] for model in record["models"])]
    short = dict(zip(names, told_apart(names), strict=True))
    models = [{**model, "model": short[model["model"]]} for model in record["models"]]
    differences = [
        {**one, "a": short.get(one["a"], one["a"]), "b": short.get(one["b"], one["b"])} for one in record["differences"]
    ]
    return {**record, "models": models, "differences": differences}
