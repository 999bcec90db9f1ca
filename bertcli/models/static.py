"""Static embeddings (model2vec, StaticEmbedding): a token's vector is its row of a table, without any context."""

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any, ClassVar

from bertcli.engine.packing import Packed
from bertcli.models.config import Config, count, renamed
from bertcli.models.registry import Family
from bertcli.network.heads import Network
from bertcli.network.module import Module, parameter, part
from bertcli.network.ops import embed, gather
from bertcli.tracing.dispatch import Array, Integers


class Embeddings(Module):
    """X = E_tok[ids]"""

    token: Array = parameter("V H")

    def forward(self, batch: Packed) -> Array:
        """Token ids [token] -> [token, hidden]"""
        return embed(self.token, batch.ids)


class Static(Network):
    """Token ids to rows of a table"""

    embeddings: Embeddings = part()

    def forward(self, batch: Packed, rows: Integers | None = None) -> Array:
        """Rows of the table [token, hidden]; with `rows` (ascending) only those: [row, hidden]."""
        hidden = self.embeddings(batch)
        return hidden if rows is None else gather(hidden, rows)

    def states(self, batch: Packed) -> Iterator[Array]:
        yield self.embeddings(batch)


LONGEST_TEXT = 1_000_000  # tokens of a text; model2vec's own limit. There are no positions to run out of


class StaticConfig(Config):
    """The sizes of the table; they come from the checkpoint's tensors, not from its config.json."""

    hidden_size: int = count(256, "H")
    num_hidden_layers: int = 0
    num_attention_heads: int = 1
    intermediate_size: int = 0
    model_type: str = "model2vec"

    title: ClassVar[str] = "a static model"
    contextual: ClassVar[bool] = False

    @classmethod
    def normalized(cls, data: Mapping[str, Any]) -> Mapping[str, Any]:
        """BERT's key for model2vec's own."""
        return renamed(data, {"hidden_dim": "hidden_size"})

    @cached_property
    def sizes(self) -> dict[str, int]:
        return {"V": self.vocab_size, "H": self.hidden_size, "L": 0, "A": 1, "P": LONGEST_TEXT, "C": self.num_labels}


FAMILY = Family(
    types={"model2vec": "StaticModel"},
    config=StaticConfig,
    network=Static,
    prefixes=(),
    names=("embeddings.token    embedding.weight",),
    variants={},
)
# The names of these modules' steps in `trace`; analysis/trace/step_names.py reads them by this constant's name.
STEP_NAMES = """
Embeddings
  Embeddings.token embed   | token embedding | Embedding output | E_tok
  Static.embeddings gather | rows            | Rows asked for
"""
