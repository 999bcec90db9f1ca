"""Figures by their names in a record. Each evaluator says which it gives; metrics.py computes them."""

import re
from collections.abc import Mapping
from functools import cache

from bertcli.wings.evaluate.evaluators.evaluator import FigureSpec, evaluator, evaluators
from bertcli.wings.evaluate.load.labelled import Labelled
from bertcli.wings.evaluate.options import Evaluate

RANK = re.compile(r"@\d+$")


@cache
def figures() -> dict[str, FigureSpec]:
    """All figures by their names in evaluators, such as "ndcg@K" and "f1:TYPE"."""
    return {name: spec for of_task in evaluators().values() for name, spec in of_task.figures.items()}


def spec_of(name: str, known: Mapping[str, FigureSpec] | None = None) -> FigureSpec:
    """The specification of a figure by its name in a record, such as "ndcg@10" or "f1:PER"."""
    known = figures() if known is None else known
    if name in known:
        return known[name]
    if name.startswith("f1:"):
        return known["f1:TYPE"]
    return known[RANK.sub("@K", name)]


def explanation(name: str, task: str) -> str:
    """The meaning of a task's figure in a line."""
    return spec_of(name, evaluator(task).figures).explanation


def possible_figures(data: Labelled, options: Evaluate) -> list[str]:
    """The names of the figures that this data can give, before any model has run.

    Some depend on the model as well: spearman_dot, for one, exists where vectors are not normalized.
    """
    of_task = evaluator(data.task)
    names: list[str] = []
    for name in of_task.figures if of_task.named is None else of_task.named(data):
        if name.endswith("@K"):
            names += [name.replace("K", str(k)) for k in options.ranks(of_task.ranks)]
        else:
            names.append(name)
    return names
