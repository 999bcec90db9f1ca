"""The summary of a model: one row for each module, with the parameters it counts, and totals that are their sums.

Every array belongs to one row, a tied one to that of its first use. Parameters are read from the tree; output shapes,
and which modules feed which, from a pass by shapes.
"""

import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple

from bertcli.analysis.params.formula import expanded, factored, sum_of, with_numbers
from bertcli.engine.packing import batch_of_shapes
from bertcli.loaded_model import LoadedModel
from bertcli.network.heads import TITLES, outputs
from bertcli.network.module import Parameter, parameters, walk
from bertcli.network.traced_tree import twins
from bertcli.report.documents import ByName, Document, View
from bertcli.report.terminal import Column
from bertcli.tracing.dispatch import Module, watching
from bertcli.tracing.traced import Axes, Traced, Weight, extent
from bertcli.tracing.tracer import Ran, Tracer

if TYPE_CHECKING:
    from bertcli.analysis.params.memory import Memory, Peak

UNITS = ("bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")


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


@dataclass(frozen=True)
class ParameterTotals(ByName):
    """The numbers below the table."""

    total_params: int
    trainable_params: int
    non_trainable_params: int
    total_bytes: int


@dataclass(frozen=True)
class Summary(View):
    """A model's name, its rows and their totals; prints as a table."""

    model: str
    rows: tuple[SummaryRow, ...]
    style: str = "tree"
    memory: "Memory | None" = None  # of a pass, if its size was given
    idle: int = 0  # parameters that a token does not use: those of the experts that it does not go to

    @property
    def total_params(self) -> int:
        return sum(row.params for row in self.rows)

    @property
    def total_bytes(self) -> int:
        return sum(row.bytes for row in self.rows)

    @property
    def totals(self) -> ParameterTotals:
        """Sums over the rows. Nothing in a BERT is frozen, so every parameter is trainable."""
        return ParameterTotals(self.total_params, self.total_params, 0, self.total_bytes)

    @property
    def record(self) -> dict[str, Any]:
        memory = {} if self.memory is None else {"memory": self.memory.record}
        active = {"active_params": self.total_params - self.idle} if self.idle else {}
        rows = [row.record for row in self.rows]
        return {"model": self.model, "rows": rows, **asdict(self.totals), **active, **memory}

    def document(self) -> Document:
        return summary_document(self)


# ------------------------------------------------------------------------------------------------------ the counting

# Stands for a layer's number in a path: `encoder.layers.*.attention`.
EVERY = "*"


class RowPlan(NamedTuple):
    """A row before its parameters are known."""

    name: str
    type: str
    shapes: "tuple[Shape, ...]"  # of its output
    connected_to: tuple[str, ...]
    holds: str | None = None  # path of the subtree this row counts, except parameters claimed by a more specific row
    formula: str | None = None  # hand-written formula, where it is clearer than the one derived from the axes


def module_plans(model: LoadedModel, depth: int) -> list[RowPlan]:
    """A plan for every module at most `depth` levels below the whole model; the whole itself only for depth 0."""
    modules = [(path, item) for path, item in walk(model.network) if isinstance(item, Module)]
    types = {path: TITLES.get(path, type(item).__name__) for path, item in modules}
    # The whole model, whose path is "", is level 0.
    levels = {"": 0}
    for path in types:
        if path:
            outer = nearest(path.rpartition(".")[0], levels)
            levels[path] = levels[outer] + 1
    least = min(1, depth)
    paths = [path for path, level in levels.items() if least <= level <= depth]
    flow = flow_of(model, paths)
    shapes, inputs = flow.shapes, flow.inputs
    return [RowPlan(path, types[path], (shapes[path],), inputs[path], holds=path) for path in paths]


class CountedParameter(NamedTuple):
    """A parameter of the tree with what it counts for."""

    parameter: Parameter
    params: int
    bytes: int
    tied_to: str | None


def entries(model: LoadedModel) -> Iterator[CountedParameter]:
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


def rows(
    plans: Sequence[RowPlan], model: LoadedModel, inputs: Mapping[str, int | None], *, collapse: bool, nested: bool
) -> tuple[SummaryRow, ...]:
    """The row of each plan with its parameters, for an input of this size: B sentences (None: any number), S tokens.

    `collapse` merges rows that differ only in a layer's number. nested: a row's `whole` has the rows inside it, and
    formulas have powers; Keras' layers stand side by side, and its formulas are products.
    """
    row_of_subtree = {plan.holds: plan.name for plan in plans if plan.holds is not None}
    entries_of = _entries_by_subtree(model, row_of_subtree)
    row_name = every_layer if collapse else str
    groups: dict[str, list[RowPlan]] = defaultdict(list)
    for plan in plans:
        groups[row_name(plan.name)].append(plan)

    summary_rows = []
    for name, group in groups.items():
        plan = group[0]  # the others differ only in the number of their layer
        is_collapsed = EVERY in name
        subtrees = [member.holds for member in group if member.holds is not None]
        counted = [entry for subtree in subtrees for entry in entries_of.get(subtree, ())]
        with_inner = [entry for subtree in subtrees for entry in _entries_within(subtree, entries_of)]
        own = _count(plan, counted, is_collapsed, model.config.sizes, nested)
        whole = own
        if nested and len(with_inner) > len(counted):
            whole = _count(plan, with_inner, is_collapsed, model.config.sizes, nested)
        feeding = [row_name(path) for member in group for path in member.connected_to]
        row = SummaryRow(
            path=name,
            type=f"{plan.type} × {len(group)}" if is_collapsed else plan.type,
            output_shape=", ".join(_in_text(shape, inputs) for shape in plan.shapes),
            **own._asdict(),
            connected_to=tuple(dict.fromkeys(feeding)),
            tied_to=_tied_to(plan, counted, row_of_subtree),
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


def _entries_within(subtree: str, entries_of: Mapping[str, Sequence[CountedParameter]]) -> Iterator[CountedParameter]:
    """The parameters of a subtree, with those of the subtrees inside it that have rows of their own."""
    for path, of_row in entries_of.items():
        if path == subtree or is_within(path, subtree):
            yield from of_row


def _count(
    plan: RowPlan, entries: Sequence[CountedParameter], is_collapsed: bool, sizes: Mapping[str, int], powers: bool
) -> Count:
    """What these parameters of a plan's row count together."""
    formula = _formula(plan, entries, is_collapsed, sizes, powers)
    params, stored = sum(entry.params for entry in entries), sum(entry.bytes for entry in entries)
    return Count(params, stored, formula, with_numbers(formula, sizes))


def _formula(
    plan: RowPlan, counted: Sequence[CountedParameter], is_collapsed: bool, sizes: Mapping[str, int], powers: bool
) -> str:
    """The formula of a row: the plan's own, else one derived from the axes of the parameters that it counts."""
    if plan.formula is not None:
        return f"L·({plan.formula})" if is_collapsed else plan.formula
    subtree = plan.holds or ""
    if is_collapsed:
        subtree = every_layer(subtree)
    # A tied parameter counts elsewhere.
    untied = [entry.parameter for entry in counted if entry.params]
    total = sum_of(_products(untied, subtree, sizes))
    return factored(total) if powers else expanded(total)


def _tied_to(plan: RowPlan, counted: Sequence[CountedParameter], row_of_subtree: Mapping[str, str]) -> str | None:
    """Where a row's first tied parameter counts: the row, or the parameter if no row has it; None: in this row."""
    for entry in counted:
        if entry.tied_to and nearest(entry.tied_to, row_of_subtree) != plan.holds:
            return row_of_subtree.get(entry.tied_to, entry.tied_to)
    return None


def every_layer(name: str) -> str:
    """A path or name with the layer's number replaced: `encoder.layers.*.attention`."""
    return re.sub(r"(?<=[.-])\d+(?=[.-]|$)", EVERY, name)


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
                if level >= len(outer) or outer[level] == EVERY:
                    merged.append(count)
                    word = EVERY
            words.append(word)
        path = ".".join(words)
        groups[path].append(parameter)
        counts_of[path] = tuple(merged)
    for path, group in groups.items():
        in_all_layers = len(group) == prod(sizes[count] for count in counts_of[path])
        factors = counts_of[path] if in_all_layers else (str(len(group)),)
        yield (*factors, *group[0].symbols)


# ------------------------------------------------------------------------------- what feeds what, from a pass by shapes

# A small input is enough for the pass by shapes: it computes no numbers.
SENTENCES, TOKENS = 2, 3

Shape = tuple[int | str, ...]  # "B" and "S" stand for the batch and the tokens of a sentence
IDS: Shape = ("B", "S")
Paths = tuple[str, ...]


class Flow(Tracer):
    """The output shape of every module of a pass and, for the `displayed` ones (paths), which of them feed it.

    Every value is followed from the modules that make it to those that use it. An op without parameters passes on the
    sources of its operands; one with parameters is a source itself. So a norm after a residual sum is fed by both sides
    of the sum, whichever module contains the sum. Work inside a module that is not shown is attributed to the nearest
    shown module around it.
    """

    def __init__(self, model: LoadedModel, displayed: Collection[str]) -> None:
        super().__init__(model.name, dry=True)
        self.register(twins(model.network))
        self._displayed = frozenset(displayed)
        # By a module's path: of its results, call by call.
        self._shapes: dict[str, list[Shape]] = {}
        # Sources of a module's arguments.
        self._arguments: dict[str, Paths] = {}
        # Sources of what a module's own ops work on.
        self._work: dict[str, Paths] = {"": ()}

    @property
    def shapes(self) -> dict[str, Shape]:
        """Output shapes by module path: of several outputs the first with a batch axis, else the first."""
        shapes_of = {}
        for path, shapes in self._shapes.items():
            with_batch = [shape for shape in shapes if "B" in shape]
            shapes_of[path] = (with_batch or shapes)[0]
        return shapes_of

    @property
    def inputs(self) -> dict[str, Paths]:
        """The displayed modules that feed each of them."""
        return {path: self._work[path] or arguments for path, arguments in self._arguments.items()}

    def ran(self, ran: Ran) -> None:
        """Note where the result of an op comes from."""
        operands = [operand for operand in ran.operands if operand is not None]
        sources = self._sources(operands)
        if any(operand.weight for operand in operands):
            here = nearest(self.frame.path if self.frame else "", self._displayed)
            self._work_on(here, sources)
            sources = (here,)
        ran.output.source[:] = dict.fromkeys((*ran.output.source, *sources))

    def returned(self, path: str, module: Module, arguments: Sequence[Any], output: Traced) -> None:
        """Note the shape of a result; that of a shown module comes from it, unless a module inside made it."""
        self._shapes.setdefault(path, []).append(_shape(output.axes))
        if path not in self._displayed:
            return
        self._arguments.setdefault(path, self._sources(value for value in arguments if isinstance(value, Traced)))
        self._work.setdefault(path, ())
        sources = self._sources([output])
        if len(sources) != 1 or not is_within(sources[0], path):
            self._work_on(path, sources)
            output.source[:] = [path]

    def _work_on(self, path: str, sources: Paths) -> None:
        before = self._work.get(path, ())
        others = [source for source in sources if source != path]
        self._work[path] = tuple(dict.fromkeys([*before, *others]))

    def _sources(self, values: Iterable[Traced]) -> Paths:
        """The modules that values, among them parameters, come from."""
        paths = []
        for value in values:
            for origin in value.source:
                paths.append(nearest(origin.home, self._displayed) if isinstance(origin, Weight) else origin)
        return tuple(dict.fromkeys(paths))


def flow_of(model: LoadedModel, displayed: Collection[str]) -> Flow:
    """Run a pass by shapes and return which of the `displayed` modules feeds which."""
    flow = Flow(model, displayed)
    with watching(flow):
        outputs(model.network, batch_of_shapes(SENTENCES, min(TOKENS, model.config.max_tokens)))
    return flow


def nearest(path: str, displayed: Collection[str]) -> str:
    """The innermost of the `displayed` paths that is `path` or contains it; "" is the whole model."""
    while path and path not in displayed:
        path = path.rpartition(".")[0]
    return path


def is_within(path: str, outer: str) -> bool:
    """True if `path` lies inside the module at `outer`, not if it is that module."""
    return path != outer and (not outer or path.startswith(f"{outer}."))


def _shape(axes: Axes) -> Shape:
    """Axes with letters for the sizes that depend on the input."""
    symbols = {factor.symbol for factor in axes[0]}
    rows: Shape = tuple(letter for letter in IDS if letter in symbols)
    if not rows:
        rows = (extent(axes[0]),)
    return (*rows, *map(extent, axes[1:]))


# -------------------------------------------------------------------------------------------------------- the tables

# A column, and its cell for a row and the total.
SummaryColumn = tuple[Column, Callable[[SummaryRow, int], str]]

LAYER_TITLE: SummaryColumn = Column("Layer (type)"), lambda row, _: layer_title(row.path, row.type)
TIED_LAYER_TITLE: SummaryColumn = (
    Column("Layer (type)"),
    lambda row, _: layer_title(row.path, row.type) + (f", tied to {row.tied_to}" if row.tied_to else ""),
)
SHAPE: SummaryColumn = Column("Output Shape"), lambda row, _: row.output_shape
PARAMS: SummaryColumn = Column("Param #", number=True), lambda row, _: f"{row.whole.params:,}"
BYTES: SummaryColumn = Column("Bytes", number=True), lambda row, _: f"{row.whole.bytes:,}"
SHARE: SummaryColumn = Column("% of total", number=True), lambda row, total: f"{100 * row.whole.params / total:.2f}"
CONNECTED: SummaryColumn = Column("Connected to"), lambda row, _: ", ".join(row.connected_to)
FORMULA: SummaryColumn = (
    Column("Formula"),
    lambda row, _: row.whole.formula and f"{row.whole.formula} = {row.whole.numbers}",
)
STYLES = {"tree": (TIED_LAYER_TITLE, SHAPE, PARAMS, BYTES, SHARE), "keras": (LAYER_TITLE, SHAPE, PARAMS, CONNECTED)}


def summary_document(summary: Summary, formulas: bool = False) -> Document:
    """The rows of a model in the style of the Keras summary."""
    columns = list(STYLES[summary.style])
    if formulas:
        columns.append(FORMULA)
    totals = summary.totals
    rows = [[cell(row, totals.total_params) for _, cell in columns] for row in summary.rows]
    below = [f"Total params: {totals.total_params:,}"]
    if summary.idle:
        below.append(f"Active params: {totals.total_params - summary.idle:,} (those that a token uses)")
    below += [
        f"Trainable params: {totals.trainable_params:,}",
        f"Non-trainable params: {totals.non_trainable_params:,}",
        f"Size: {size_in_bytes(totals.total_bytes)}; in float16 {_unit(2 * totals.total_params)}, "
        f"in int8 {_unit(totals.total_params)}",
        *memory_lines(summary),
    ]
    lines = [row.record for row in summary.rows]
    return Document([column for column, _ in columns], rows, below, summary.record, lines)


def memory_lines(summary: Summary) -> list[str]:
    """The lines about the peak memory of a pass; empty if no size was given (--batch-size, --seq-len)."""
    if summary.memory is None:
        return []
    memory = summary.memory
    texts = f"{memory.at_once:,} text{'s' if memory.at_once > 1 else ''} at a time"
    return [
        f"A pass of {memory.batch} × {memory.sequence} tokens in {memory.dtype}: {_peak_text(memory.ours)}",
        f"In ordinary padded execution: {_peak_text(memory.padded)}",
        f"bertcli computes in float32, {texts}: {_peak_text(memory.taken)}",
    ]


def _peak_text(peak: "Peak") -> str:
    with_weights = peak.weights + peak.activations
    return f"{_unit(peak.activations)} of activations at once, {_unit(with_weights)} with the weights"


def layer_title(path: str, type: str) -> str:
    """`encoder.layers.0 (EncoderLayer)`"""
    return f"{path} ({type})" if path else type


def size_in_bytes(count: int) -> str:
    """`438,820,040 bytes (418.5 MiB)`"""
    return f"{count:,} bytes" + (f" ({_unit(count)})" if count >= 1024 else "")


def _unit(count: int) -> str:
    """`418.5 MiB`"""
    amount, unit = float(count), 0
    while amount >= 1024 and unit + 1 < len(UNITS):
        amount, unit = amount / 1024, unit + 1
    return f"{amount:.1f} {UNITS[unit]}" if unit else f"{count:,} bytes"
