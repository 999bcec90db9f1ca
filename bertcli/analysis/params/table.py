"""The summary of a model: its rows with their totals, and the table and the lines that show them."""

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from bertcli.analysis.params.rows import SummaryRow
from bertcli.report.documents import ByName, Document, View
from bertcli.report.terminal import Column

if TYPE_CHECKING:
    from bertcli.analysis.params.memory import Memory, Peak

UNITS = ("bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")


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
