"""The summary of a model: one row for each module, and totals that are the sums of the rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from bertcli.checkpoint.loading import TensorUse
from bertcli.report import ByName, Column, Document, Documented

UNITS = ("bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")


@dataclass(frozen=True)
class Row(ByName):
    """A module and those of its parameters that no other row counts."""

    path: str
    type: str
    output_shape: str  # "(None, 512, 768)"
    params: int
    bytes: int  # at the dtype they are stored in
    formula: str  # params in the symbols of the axes: "4·(H² + H)"
    numbers: str  # the same with the sizes in place of the symbols
    connected_to: tuple[str, ...]  # the rows its input comes from
    tied_to: str | None  # the parameter that one of this row's shares its array with; counted there

    @property
    def record(self) -> dict[str, Any]:
        """The row as a JSON record."""
        record = vars(self) | {"connected_to": list(self.connected_to)}
        del record["numbers"]
        return record


@dataclass(frozen=True)
class Totals(ByName):
    """The numbers below the table."""

    total_params: int
    trainable_params: int
    non_trainable_params: int
    total_bytes: int


@dataclass(frozen=True)
class Summary(ByName, Documented):
    """A model's name, its rows and their totals; prints as a table."""

    model: str
    rows: tuple[Row, ...]
    style: str = "tree"

    @property
    def total_params(self) -> int:
        return sum(row.params for row in self.rows)

    @property
    def total_bytes(self) -> int:
        return sum(row.bytes for row in self.rows)

    @property
    def totals(self) -> Totals:
        """Sums over the rows. Nothing in a BERT is frozen, so every parameter is trainable."""
        return Totals(self.total_params, self.total_params, 0, self.total_bytes)

    @property
    def record(self) -> dict[str, Any]:
        """The summary as a JSON record."""
        return {"model": self.model, "rows": [row.record for row in self.rows], **asdict(self.totals)}

    def document(self, room: int | None = None) -> Document:
        """The table that `bertcli params` prints."""
        return summary_document(self)


Shown = tuple[Column, Callable[[Row, int], str]]  # a column, and its cell for a row and the total

LAYER: Shown = Column("Layer (type)"), lambda row, _: layer_title(row.path, row.type)
TIED_LAYER: Shown = LAYER[0], lambda row, _: layer_title(row.path, row.type) + _tie(row)
SHAPE: Shown = Column("Output Shape"), lambda row, _: row.output_shape
PARAMS: Shown = Column("Param #", number=True), lambda row, _: f"{row.params:,}"
BYTES: Shown = Column("Bytes", number=True), lambda row, _: f"{row.bytes:,}"
SHARE: Shown = Column("% of total", number=True), lambda row, total: f"{100 * row.params / total:.2f}"
CONNECTED: Shown = Column("Connected to"), lambda row, _: ", ".join(row.connected_to)
FORMULA: Shown = Column("Formula"), lambda row, _: row.formula and f"{row.formula} = {row.numbers}"
STYLES = {"tree": (TIED_LAYER, SHAPE, PARAMS, BYTES, SHARE), "keras": (LAYER, SHAPE, PARAMS, CONNECTED)}


def summary_document(summary: Summary, formulas: bool = False) -> Document:
    """The rows of a model in the style of the Keras summary."""
    shown = [*STYLES[summary.style], *([FORMULA] if formulas else [])]
    totals = summary.totals
    rows = [[cell(row, totals.total_params) for _, cell in shown] for row in summary.rows]
    below = [
        f"Total params: {totals.total_params:,}",
        f"Trainable params: {totals.trainable_params:,}",
        f"Non-trainable params: {totals.non_trainable_params:,}",
        f"Size: {size_in_bytes(totals.total_bytes)}; in float16 {_unit(2 * totals.total_params)}, "
        f"in int8 {_unit(totals.total_params)}",
    ]
    lines = [row.record for row in summary.rows]
    return Document([column for column, _ in shown], rows, below, summary.record, lines)


def _tie(row: Row) -> str:
    return f", tied to {row.tied_to}" if row.tied_to else ""


def layer_title(path: str, kind: str) -> str:
    """`encoder.layers.0 (EncoderLayer)`"""
    return f"{path} ({kind})" if path else kind


def size_in_bytes(count: int) -> str:
    """`438,820,040 bytes (418.5 MiB)`"""
    return f"{count:,} bytes" + (f" ({_unit(count)})" if count >= 1024 else "")


def _unit(count: int) -> str:
    """`418.5 MiB`"""
    amount, unit = float(count), 0
    while amount >= 1024 and unit + 1 < len(UNITS):
        amount, unit = amount / 1024, unit + 1
    return f"{amount:.1f} {UNITS[unit]}" if unit else f"{count:,} bytes"


USES = ("used", "renamed", "ignored", "missing")


def tensors_document(model: str, uses: Sequence[TensorUse]) -> Document:
    """What is in a checkpoint's files, and what the loader does with it."""
    columns = [Column("Tensor"), Column("Shape"), Column("Dtype"), Column("Bytes", number=True), Column("Use")]
    rows = [
        [use.name, _shape(use.shape), use.dtype, f"{use.bytes:,}", use.use, use.path or "", use.note] for use in uses
    ]
    counts, sizes = Counter(use.use for use in uses), Counter[str]()
    for use in uses:
        sizes[use.use] += use.bytes
    below = [f"Total: {len(uses) - counts['missing']} tensors, {size_in_bytes(sum(sizes.values()))}"]
    below += [f"{use.capitalize()}: {counts[use]} tensors, {size_in_bytes(sizes[use])}" for use in USES]
    lines = [{**use._asdict(), "shape": list(use.shape)} for use in uses]
    record = {"model": model, "tensors": lines, "total_bytes": sum(sizes.values())}
    return Document([*columns, Column("Place in the model"), Column("Note")], rows, below, record, lines)


def _shape(shape: tuple[int, ...]) -> str:
    return f"[{', '.join(map(str, shape))}]"
