"""Rows and the parameters they count: every array belongs to one row, a tied one to that of its first use."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import prod
from typing import NamedTuple

from bertcli.analysis.params.flow import Input, flow, nearest
from bertcli.analysis.params.formula import expanded, factored, sum_of, with_numbers
from bertcli.analysis.params.summary import Row
from bertcli.model import Model
from bertcli.network.module import Module, Parameter, parameters, walk

EVERY = "*"  # in the place of a layer's number


class RowPlan(NamedTuple):
    """A row before its parameters are known."""

    name: str
    type: str
    output_shape: str
    connected_to: tuple[str, ...]
    holds: str | None = None  # path of the subtree this row counts, except parameters claimed by a more specific row
    formula: str | None = None  # hand-written formula, where it is clearer than the one derived from the axes


def module_plans(model: Model, depth: int, given: Input) -> list[RowPlan]:
    """A plan for every module at most `depth` levels below the whole model; the whole itself only for depth 0."""
    types = {path: type(item).__name__ for path, item in walk(model.network) if isinstance(item, Module)}
    levels: dict[str, int] = {}
    for path in types:
        levels[path] = levels[nearest(path.rpartition(".")[0], levels)] + 1 if path else 0
    shown = [path for path, level in levels.items() if min(1, depth) <= level <= depth]
    found = flow(model, shown)
    return [
        RowPlan(path, types[path], given.text(found.shapes[path]), found.inputs[path], holds=path) for path in shown
    ]


class CountedParameter(NamedTuple):
    """A parameter of the tree with what it counts for."""

    parameter: Parameter
    params: int
    bytes: int
    tied_to: str | None


def entries(model: Model) -> Iterator[CountedParameter]:
    """Every parameter of a model's tree; one that is tied to an earlier one counts as 0."""
    stored = {path: use.bytes // len(use.paths) for use in model.uses for path in use.paths}
    first: dict[int, str] = {}
    for parameter in parameters(model.network, model.config.aliases):
        path, array = parameter.path, parameter.array
        home = first.setdefault(id(array), path)
        if home == path:
            yield CountedParameter(parameter, array.size, stored.get(path, array.nbytes), None)
        else:
            yield CountedParameter(parameter, 0, 0, home)


def rows(plans: Sequence[RowPlan], model: Model, *, collapse: bool, powers: bool) -> tuple[Row, ...]:
    """The row of each plan with its parameters; `collapse` merges rows that differ only in a layer's number."""
    names = {plan.holds: plan.name for plan in plans if plan.holds is not None}
    held: dict[str, list[CountedParameter]] = defaultdict(list)
    for entry in entries(model):
        held[nearest(entry.parameter.path, names)].append(entry)
    if held.keys() - names.keys():
        raise RuntimeError(f"no row shows {', '.join(entry.parameter.path for entry in held[''])}")
    if not collapse:
        return tuple(_row([plan], held, names, model, powers=powers) for plan in plans)
    groups: dict[str, list[RowPlan]] = defaultdict(list)
    for plan in plans:
        inputs = tuple(dict.fromkeys(map(every_layer, plan.connected_to)))
        groups[every_layer(plan.name)].append(plan._replace(name=every_layer(plan.name), connected_to=inputs))
    return tuple(_row(group, held, names, model, powers=powers) for group in groups.values())


def every_layer(name: str) -> str:
    """A path or name with the layer's number replaced: `encoder.layers.*.attention`."""
    return re.sub(r"(?<=[.-])\d+(?=[.-]|$)", EVERY, name)


def _row(
    group: Sequence[RowPlan],
    held: Mapping[str, Sequence[CountedParameter]],
    names: Mapping[str, str],
    model: Model,
    *,
    powers: bool,
) -> Row:
    plan, folded = group[0], EVERY in group[0].name
    mine = [entry for one in group if one.holds is not None for entry in held.get(one.holds, ())]
    formula = plan.formula and (f"L·({plan.formula})" if folded else plan.formula)
    if formula is None:
        place = every_layer(plan.holds or "") if folded else plan.holds or ""
        counted = [entry.parameter for entry in mine if entry.params]
        total = sum_of(_products(counted, place, model.config.sizes))
        formula = factored(total) if powers else expanded(total)
    tied_to = next((path for _, _, _, path in mine if path and nearest(path, names) != plan.holds), None)
    return Row(
        path=plan.name,
        type=f"{plan.type} × {len(group)}" if folded else plan.type,
        output_shape=plan.output_shape,
        params=sum(entry.params for entry in mine),
        bytes=sum(entry.bytes for entry in mine),
        formula=formula,
        numbers=with_numbers(formula, model.config.sizes),
        connected_to=tuple(dict.fromkeys(path for one in group for path in one.connected_to)),
        tied_to=tied_to and names.get(tied_to, tied_to),
    )


def _products(counted: Iterable[Parameter], place: str, sizes: Mapping[str, int]) -> Iterator[tuple[str, ...]]:
    """Axes of each parameter; those that differ only in a layer that `place` covers are one, times L or so many."""
    known = place.split(".") if place else []
    alike: dict[str, list[Parameter]] = defaultdict(list)
    layers: dict[str, tuple[str, ...]] = {}
    for parameter in counted:
        words, counts = parameter.path.split("."), iter(parameter.counts)
        numbered = {i: next(counts) for i, word in enumerate(words) if word.isdigit()}
        covered = {i: count for i, count in numbered.items() if i >= len(known) or known[i] == EVERY}
        path = ".".join(EVERY if i in covered else word for i, word in enumerate(words))
        alike[path].append(parameter)
        layers[path] = tuple(covered.values())
    for path, several in alike.items():
        whole = len(several) == prod(sizes[count] for count in layers[path])
        yield (*(layers[path] if whole else (str(len(several)),)), *several[0].symbols)
