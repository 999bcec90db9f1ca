"""ERNIE (Sun et al. 2019, 2020): BERT, in some models with an embedding of the task, which is always the first."""

from typing import ClassVar

from bertcli.engine.packing import Packed
from bertcli.models import bert
from bertcli.models.bert import Bert, BertConfig
from bertcli.models.config import count
from bertcli.models.registry import Family
from bertcli.network import encoder
from bertcli.network.encoder import LayerNorm
from bertcli.network.module import parameter, part
from bertcli.network.ops import add, add_row, embed
from bertcli.tracing.dispatch import Array


class Embeddings(encoder.Embeddings):
    """X = LayerNorm(E_tok[ids] + E_type[segments] + E_pos[positions] + E_task[0])"""

    norm: LayerNorm = part(features="H")
    task: Array | None = parameter("U H", when="use_task_id")

    def forward(self, batch: Packed) -> Array:
        """Token ids of a batch -> [token, hidden]"""
        x = add(embed(self.token, batch.ids), embed(self.segment, batch.segments))
        x = add(embed(self.position, batch.positions), x)
        return self.norm(x if self.task is None else add_row(x, self.task))


class Ernie(Bert):
    """Token ids to hidden states, with heads to apply to them"""

    embeddings: Embeddings = part()


class ErnieConfig(BertConfig):
    """An ERNIE configuration with config.json's own keys; the defaults are those of ERNIE's code."""

    task_type_vocab_size: int = count(3, "U")
    use_task_id: bool = False
    model_type: str = "ernie"

    title: ClassVar[str] = "ERNIE"


FAMILY = Family(
    types={"ernie": "Ernie"},
    config=ErnieConfig,
    network=Ernie,
    prefixes=("ernie.",),
    names=("embeddings.task    embeddings.task_type_embeddings.weight", *bert.FAMILY.names),
    variants={
        "ernie-2.0-base-en": {"type_vocab_size": 4},
        "ernie-3.0-base-zh": {
            "vocab_size": 40000,
            "max_position_embeddings": 2048,
            "type_vocab_size": 4,
            "use_task_id": True,
        },
    },
)
# The names of these modules' steps in `trace`; analysis/trace/step_names.py reads them by this constant's name.
STEP_NAMES = """
Embeddings
  Embeddings.task add_row | g) the one task's embedding | Embedding sum 3 | E_task
"""
