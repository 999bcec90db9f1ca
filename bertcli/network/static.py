"""Static embeddings (model2vec, StaticEmbedding): a token's vector is its row of a table, whatever stands around it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from bertcli.engine.array import Array, Integers
from bertcli.engine.packing import Packed
from bertcli.network.module import Module, parameter, part
from bertcli.network.network import Network
from bertcli.network.ops import embed, pick


@dataclass(frozen=True, eq=False)
class Embeddings(Module):
    """X = E_tok[ids]"""

    token: Array = parameter("V H")

    def forward(self, batch: Packed) -> Array:
        return embed(self.token, batch.ids)


@dataclass(frozen=True, eq=False)
class Static(Network):
    """Token ids to rows of a table"""

    embeddings: Embeddings = part()

    def forward(self, batch: Packed, rows: Integers | None = None) -> Array:
        hidden = self.embeddings(batch)
        return hidden if rows is None else pick(hidden, rows)

    def states(self, batch: Packed) -> Iterator[Array]:
        yield self.embeddings(batch)
