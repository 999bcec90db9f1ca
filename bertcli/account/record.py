"""The account of a model: one row for each module, and totals that are the sums of the rows."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from bertcli.output.document import ByName, Document, Documented


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
class Account(ByName, Documented):
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
        """The account as a JSON record."""
        return {"model": self.model, "rows": [row.record for row in self.rows], **asdict(self.totals)}

    def document(self, room: int | None = None) -> Document:
        """The table that `bertcli params` prints."""
        from bertcli.account.tables import account_document

        return account_document(self)
