"""The rows of a model's summary: one for each module, with the parameters that it counts and their formula.

Every array belongs to one row, a tied one to that of its first use. Parameters are read from the tree; output shapes,
and which modules feed which, are in flow.py, the totals in table.py.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, NamedTuple

from bertcli.analysis.layers import EVERY_LAYER
from bertcli.analysis.params.flow import Shape, connections, nearest
from bertcli.analysis.params.formula import formula_of, with_numbers
from bertcli.loaded_model import LoadedModel
from bertcli.network.heads import HEADS
from bertcli.network.module import Parameter, parameters, walk
from bertcli.report.documents import ByName
from bertcli.tracing.dispatch import Module


class Count(NamedTuple):
    """Parameters counted together; fields as a SummaryRow's."""

    params: int
    bytes: int
    formula: str
    numbers: str


@dataclass(frozen=True)
class SummaryRow(ByName):
    """A module and those of its parameters that no other row counts, so that the rows' sum is the model's.

    output_shape: "(None, 512, 768)". bytes: at the dtype they are stored in. formula: params in the symbols of the
    axes, "4·(H² + H)". numbers: the formula with the sizes in place of the symbols. connected_to: the rows its input
    comes from. tied_to: the parameter that shares its array with one of this row's, and is counted there. whole: the
    module with all modules inside it, as tables show it.
    """

    path: str
    type: str
    output_shape: str
    params: int
    bytes: int
    formula: str
    numbers: str
    connected_to: tuple[str, ...]
    tied_to: str | None
    whole: Count

    @property
    def record(self) -> dict[str, Any]:
        record = vars(self) | {"connected_to": list(self.connected_to)}
        del record["numbers"], record["whole"]
        return record


class BareRow(NamedTuple):
    """A row before its parameters are known."""

    name: str
    type: str
    shapes: "tuple[Shape, ...]"  # of its output
    connected_to: tuple[str, ...]
    holds: str | None = None  # path of the subtree this row counts, except parameters claimed by a more specific row
    formula: str | None = None  # hand-written formula, where it is clearer than the one derived from the axes


def module_rows(model: LoadedModel, depth: int) -> list[BareRow]:
    """A bare row for every module at most `depth` levels below the whole model; the whole itself only for depth 0."""
    modules = [(path, item) for path, item in walk(model.network) if isinstance(item, Module)]
    types = {path: type(item).__name__ for path, item in modules}
    types |= {path: HEADS[path].type for path in types if path in HEADS and HEADS[path].type}
    # The whole model, whose path is "", is level 0.
    levels = {"": 0}
    for path in types:
        if path:
            outer = nearest(path.rpartition(".")[0], levels)
            levels[path] = levels[outer] + 1
    least = min(1, depth)
    paths = [path for path, level in levels.items() if least <= level <= depth]
    shapes, inputs = connections(model, paths)
    return [BareRow(path, types[path], (shapes[path],), inputs[path], holds=path) for path in paths]


class CountedParameter(NamedTuple):
    """A parameter of the tree with what it counts for."""

    parameter: Parameter
    params: int
    bytes: int
    tied_to: str | None


def entries(model: LoadedModel) -> Iterator[CountedParameter]:
    """Every parameter of a model's tree; one that is tied to an earlier one counts as 0."""
    stored = {path: use.bytes // len(use.paths) for use in model.tensor_uses for path in use.paths}
    first: dict[int, str] = {}
    for parameter in parameters(model.network, model.config.aliases):
        path, array = parameter.path, parameter.array
        home = first.setdefault(id(array), path)
        if home == path:
            yield CountedParameter(parameter, array.size, stored.get(path, array.nbytes), None)
        else:
            yield CountedParameter(parameter, 0, 0, home)


def rows(
    bare_rows: Sequence[BareRow], model: LoadedModel, inputs: Mapping[str, int | None], *, collapse: bool, nested: bool
) -> tuple[SummaryRow, ...]:
    """Each row with its parameters, for an input of this size: B sentences (None: any number), S tokens.

    `collapse` merges rows that differ only in a layer's number. nested: a row's `whole` has the rows inside it, and
    formulas have powers; Keras' layers stand side by side, and its formulas are products.
    """
    row_of_subtree = {bare.holds: bare.name for bare in bare_rows if bare.holds is not None}
    entries_of = _entries_by_subtree(model, row_of_subtree)
    entries_within = _with_those_inside(entries_of)
    row_name = every_layer if collapse else str
    groups: dict[str, list[BareRow]] = defaultdict(list)
    for bare in bare_rows:
        groups[row_name(bare.name)].append(bare)

    summary_rows = []
    for name, group in groups.items():
        bare = group[0]  # the others differ only in the number of their layer
        is_collapsed = EVERY_LAYER in name
        subtrees = [member.holds for member in group if member.holds is not None]
        counted = [entry for subtree in subtrees for entry in entries_of.get(subtree, ())]
        with_inner = [entry for subtree in subtrees for entry in entries_within.get(subtree, ())]
        own = _count(bare, counted, is_collapsed, model.config.sizes, nested)
        whole = own
        if nested and len(with_inner) > len(counted):
            whole = _count(bare, with_inner, is_collapsed, model.config.sizes, nested)
        feeding = [row_name(path) for member in group for path in member.connected_to]
        row = SummaryRow(
            path=name,
            type=f"{bare.type} × {len(group)}" if is_collapsed else bare.type,
            output_shape=", ".join(_in_text(shape, inputs) for shape in bare.shapes),
            **own._asdict(),
            connected_to=tuple(dict.fromkeys(feeding)),
            tied_to=_tied_to(bare, counted, row_of_subtree),
            whole=whole,
        )
        summary_rows.append(row)
    return tuple(summary_rows)


def _entries_by_subtree(
    model: LoadedModel, row_of_subtree: Mapping[str, str]
) -> Mapping[str, Sequence[CountedParameter]]:
    """The parameters of each subtree that a row counts, without those of a subtree inside it that has its own row."""
    entries_of: dict[str, list[CountedParameter]] = defaultdict(list)
    for entry in entries(model):
        entries_of[nearest(entry.parameter.path, row_of_subtree)].append(entry)
    if entries_of.keys() - row_of_subtree.keys():
        raise RuntimeError(f"no row shows {', '.join(entry.parameter.path for entry in entries_of[''])}")
    return entries_of


def _with_those_inside(
    entries_of: Mapping[str, Sequence[CountedParameter]],
) -> Mapping[str, Sequence[CountedParameter]]:
    """The parameters of each subtree, with those of the subtrees inside it that have rows of their own."""
    within: dict[str, list[CountedParameter]] = defaultdict(list)
    for subtree, of_row in entries_of.items():
        around = subtree
        within[around] += of_row
        while around:
            around = around.rpartition(".")[0]
            within[around] += of_row
    return within


def _count(
    bare: BareRow, entries: Sequence[CountedParameter], is_collapsed: bool, sizes: Mapping[str, int], powers: bool
) -> Count:
    """What these parameters of a row count together."""
    formula = _formula(bare, entries, is_collapsed, sizes, powers)
    params, stored = sum(entry.params for entry in entries), sum(entry.bytes for entry in entries)
    return Count(params, stored, formula, with_numbers(formula, sizes))


def _formula(
    bare: BareRow, counted: Sequence[CountedParameter], is_collapsed: bool, sizes: Mapping[str, int], powers: bool
) -> str:
    """The formula of a row: its own, else one derived from the axes of the parameters that it counts."""
    if bare.formula is not None:
        return f"L·({bare.formula})" if is_collapsed else bare.formula
    subtree = bare.holds or ""
    if is_collapsed:
        subtree = every_layer(subtree)
    # A tied parameter counts elsewhere.
    untied = [entry.parameter for entry in counted if entry.params]
    return formula_of(tuple(_products(untied, subtree, sizes)), powers)


def _tied_to(bare: BareRow, counted: Sequence[CountedParameter], row_of_subtree: Mapping[str, str]) -> str | None:
    """Where a row's first tied parameter counts: the row, or the parameter if no row has it; None: in this row."""
    for entry in counted:
        if entry.tied_to and nearest(entry.tied_to, row_of_subtree) != bare.holds:
            return row_of_subtree.get(entry.tied_to, entry.tied_to)
    return None


def every_layer(name: str) -> str:
    """A path or name with the layer's number replaced: `encoder.layers.*.attention`."""
    return re.sub(r"(?<=[.-])\d+(?=[.-]|$)", EVERY_LAYER, name)


def _in_text(shape: "Shape", inputs: Mapping[str, int | None]) -> str:
    """`(None, 512, 768)`, as the Keras summary writes it."""
    sizes = [inputs[axis] if isinstance(axis, str) else axis for axis in shape]
    return f"({', '.join(map(str, sizes))})"


def _products(members: Iterable[Parameter], subtree: str, sizes: Mapping[str, int]) -> Iterator[tuple[str, ...]]:
    """The axes of each parameter as a product of symbols, for the formula of the row of a subtree.

    Parameters that differ only in the number of a layer below `subtree` become one product, times L if all layers have
    it, else times their number.
    """
    outer = subtree.split(".") if subtree else []
    groups: dict[str, list[Parameter]] = defaultdict(list)
    # By a group's path: the symbols of the layers' counts, such as L.
    counts_of: dict[str, tuple[str, ...]] = {}
    for parameter in members:
        counts = iter(parameter.counts)
        words, merged = [], []
        for level, word in enumerate(parameter.path.split(".")):
            if word.isdigit():
                count = next(counts)
                # A number in the row's own path stays, unless it stands for all layers.
                if level >= len(outer) or outer[level] == EVERY_LAYER:
                    merged.append(count)
                    word = EVERY_LAYER
            words.append(word)
        path = ".".join(words)
        groups[path].append(parameter)
        counts_of[path] = tuple(merged)
    for path, group in groups.items():
        in_all_layers = len(group) == prod(sizes[count] for count in counts_of[path])
        factors = counts_of[path] if in_all_layers else (str(len(group)),)
        yield (*factors, *group[0].symbols)
