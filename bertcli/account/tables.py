"""Accounts as documents: the cells of the tables, and the lines below them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import PurePath

from bertcli.account.compare import Comparison, Pair
from bertcli.account.record import Account, Row
from bertcli.checkpoint import TensorUse
from bertcli.output.document import Document
from bertcli.output.table import Column

UNITS = ("bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")
USES = ("used", "renamed", "ignored", "missing")
SHORT = 16  # longest model name used as a column heading


Shown = tuple[Column, Callable[[Row, int], str]]  # a column, and its cell for a row and the total

LAYER: Shown = Column("Layer (type)"), lambda row, _: _layer(row.path, row.type)
TIED_LAYER: Shown = (
    LAYER[0],
    lambda row, _: _layer(row.path, row.type) + _tie(row),
)
SHAPE: Shown = Column("Output Shape"), lambda row, _: row.output_shape
PARAMS: Shown = Column("Param #", number=True), lambda row, _: f"{row.params:,}"
BYTES: Shown = Column("Bytes", number=True), lambda row, _: f"{row.bytes:,}"
SHARE: Shown = Column("% of total", number=True), lambda row, total: f"{100 * row.params / total:.2f}"
CONNECTED: Shown = Column("Connected to"), lambda row, _: ", ".join(row.connected_to)
FORMULA: Shown = Column("Formula"), lambda row, _: row.formula and f"{row.formula} = {row.numbers}"
STYLES = {"tree": (TIED_LAYER, SHAPE, PARAMS, BYTES, SHARE), "keras": (LAYER, SHAPE, PARAMS, CONNECTED)}


def account_document(account: Account, formulas: bool = False) -> Document:
    """The rows of a model in the style of the Keras summary."""
    shown = [*STYLES[account.style], *([FORMULA] if formulas else [])]
    totals = account.totals
    rows = [[cell(row, totals.total_params) for _, cell in shown] for row in account.rows]
    below = [
        f"Total params: {totals.total_params:,}",
        f"Trainable params: {totals.trainable_params:,}",
        f"Non-trainable params: {totals.non_trainable_params:,}",
        f"Size: {_bytes(totals.total_bytes)}",
    ]
    lines = [row.record for row in account.rows]
    return Document([column for column, _ in shown], rows, below, account.record, lines)


def comparison_document(comparison: Comparison) -> Document:
    """Two models side by side."""
    names = [PurePath(account.model).name for account in comparison.accounts]
    heads = names if max(map(len, names)) <= SHORT and names[0] != names[1] else ["1st", "2nd"]
    columns = [
        Column("Layer (type)"),
        Column("Output Shape"),
        *(Column(f"Param # {name}", number=True) for name in heads),
        Column("Difference", number=True),
        Column("Ratio", number=True),
    ]
    totals = comparison.totals
    below = [
        f"{name}: {account.total_params:,} params, {_bytes(account.total_bytes)}"
        for name, account in zip(_explained(heads, comparison), comparison.accounts, strict=True)
    ]
    below += [f"Difference: {totals['difference']:+,} params, ratio {_ratio(totals['ratio'])}"]
    rows = [_side_by_side(pair) for pair in comparison.pairs]
    return Document(columns, rows, below, comparison.record, [pair.record for pair in comparison.pairs])


def _explained(heads: Sequence[str], comparison: Comparison) -> list[str]:
    """Headings with the models they stand for, where the two differ."""
    models = [account.model for account in comparison.accounts]
    return [model if head == model else f"{head}, {model}" for head, model in zip(heads, models, strict=True)]


def tensors_document(model: str, uses: Sequence[TensorUse]) -> Document:
    """What is in a checkpoint's files, and what the loader does with it."""
    columns = [Column("Tensor"), Column("Shape"), Column("Dtype"), Column("Bytes", number=True), Column("Use")]
    rows = [
        [use.name, _shape(use.shape), use.dtype, f"{use.bytes:,}", use.use, use.path or "", use.note] for use in uses
    ]
    counts, sizes = Counter(use.use for use in uses), Counter[str]()
    for use in uses:
        sizes[use.use] += use.bytes
    below = [f"Total: {len(uses) - counts['missing']} tensors, {_bytes(sum(sizes.values()))}"]
    below += [f"{use.capitalize()}: {counts[use]} tensors, {_bytes(sizes[use])}" for use in USES]
    lines = [{**use._asdict(), "shape": list(use.shape)} for use in uses]
    record = {"model": model, "tensors": lines, "total_bytes": sum(sizes.values())}
    return Document([*columns, Column("Place in the model"), Column("Note")], rows, below, record, lines)


def _side_by_side(pair: Pair) -> list[str]:
    before, after = pair.params
    return [
        _layer(pair.path, _change(pair, "type", " × ")),
        _change(pair, "output_shape"),
        f"{before:,}" if pair.rows[0] else "",
        f"{after:,}" if pair.rows[1] else "",
        f"{after - before:+,}" if after != before else "0",
        _ratio(pair.record["ratio"]),
    ]


def _change(pair: Pair, field: str, mark: str | None = None) -> str:
    """The value both rows share, or that of the only row, or `before → after`, not repeating what precedes `mark`."""
    found = list(dict.fromkeys(getattr(row, field) for row in pair.rows if row is not None))
    if len(found) == 2 and mark is not None and len({text.split(mark)[0] for text in found}) == 1:
        found[1] = found[1].split(mark)[1]
    return " → ".join(found)


def _ratio(ratio: float | None) -> str:
    return "" if ratio is None else f"{ratio:.4f}"


def _tie(row: Row) -> str:
    return f", tied to {row.tied_to}" if row.tied_to else ""


def _layer(path: str, kind: str) -> str:
    return f"{path} ({kind})" if path else kind


def _shape(shape: tuple[int, ...]) -> str:
    return f"[{', '.join(map(str, shape))}]"


def _bytes(count: int) -> str:
    """`438,820,040 bytes (418.5 MiB)`"""
    amount, unit = float(count), 0
    while amount >= 1024 and unit + 1 < len(UNITS):
        amount, unit = amount / 1024, unit + 1
    return f"{count:,} bytes" + (f" ({amount:.1f} {UNITS[unit]})" if unit else "")
