"""RoBERTa (Liu et al. 2019), XLM-RoBERTa and CamemBERT: BERT with other positions, as published without segments.

Positions count from the id of padding, 1: the first token of a text stands at position 2. Tokens that have this id, and
tokens that a mask leaves out, are not counted.
"""

from typing import Any, ClassVar

from bertcli.engine.packing import Packed
from bertcli.errors import BertcliError
from bertcli.models.bert import ATTENTION, EMBEDDINGS, LAYER, POOLER, BertConfig
from bertcli.models.config import count, sized
from bertcli.models.registry import Family
from bertcli.network import encoder, heads
from bertcli.network.encoder import Encoder
from bertcli.network.heads import Classifier, FirstTokenClassifier, Network, Pooler, TokenClassifier
from bertcli.network.module import fixed, part, setting
from bertcli.network.ops import add, add_row, embed
from bertcli.network.position_ops import embed_counted
from bertcli.tracing.dispatch import Array


class Embeddings(encoder.Embeddings):
    """X = LayerNorm(E_tok[ids] + E_type[segments] + E_pos[positions]); E_type may have one row"""

    padding: int = setting("pad_token_id")

    def forward(self, batch: Packed) -> Array:
        """Token ids [token] -> [token, hidden]"""
        x = embed(self.token, batch.ids)
        one = len(self.segment) == 1
        x = add_row(x, self.segment) if one else add(x, embed(self.segment, batch.segments))
        return self.norm(add(embed_counted(self.position, batch.ids, batch.offsets, padding=self.padding), x))


class MaskedLM(heads.MaskedLM):
    """BERT's head, with the exact GELU for any hidden_act of the configuration"""

    activation: str = fixed("gelu")


class Roberta(Network):
    """Token ids to hidden states, with heads to apply to them"""

    embeddings: Embeddings = part()
    encoder: Encoder = part()
    pooler: Pooler | None = part()
    mlm: MaskedLM | None = part(features="H")
    classifier: FirstTokenClassifier | None = part()
    token_classifier: TokenClassifier | None = part()
    qa: TokenClassifier | None = part(C="2")  # that an answer starts here, and that it ends
    multiple_choice: Classifier | None = part(C="1")  # how well a choice fits

    pooled: ClassVar = frozenset({"multiple_choice"})


LM_HEAD = """
mlm.transform.*   lm_head.dense.*
mlm.norm.*        lm_head.layer_norm.*
mlm.decoder       lm_head.decoder.weight
mlm.bias          lm_head.bias
"""
FINE_TUNED = """
classifier.dense.*                            classifier.dense.*
classifier.output.*                           classifier.out_proj.*
{token_classifier,multiple_choice}.output.*   classifier.*
qa.output.*                                   qa_outputs.*
"""


class RobertaConfig(BertConfig):
    """A RoBERTa configuration with config.json's own keys; the defaults are those of RoBERTa's code."""

    vocab_size: int = count(50265, "V", needed=True)
    pad_token_id: int = 1
    model_type: str = "roberta"

    title: ClassVar[str] = "RoBERTa"

    def check(self) -> None:
        if not 0 <= self.pad_token_id < self.vocab_size:
            raise BertcliError(f"pad_token_id is {self.pad_token_id}; it must be 0 to {self.vocab_size - 1}.")
        if self.max_tokens < 1:
            raise BertcliError(
                f"max_position_embeddings is {self.max_position_embeddings}, and pad_token_id {self.pad_token_id}: "
                "that leaves no position for a token."
            )

    @property
    def max_tokens(self) -> int:
        return self.max_position_embeddings - self.pad_token_id - 1

    @property
    def has_segments(self) -> bool:
        return self.type_vocab_size > 1


PUBLISHED: dict[str, Any] = {"layer_norm_eps": 1e-5, "max_position_embeddings": 514, "type_vocab_size": 1}
XLM: dict[str, Any] = {**PUBLISHED, "vocab_size": 250002, "model_type": "xlm-roberta"}

# The names of these modules' steps in `trace`; analysis/trace/step_names.py reads them by this constant's name.
STEP_NAMES = """
Embeddings
  Embeddings.segment embed          | b) segment embedding           | Segment embeddings  | E_type
  Embeddings.segment add            | b) sum                         | Embedding sum
  Embeddings.segment add_row        | b) the one segment's embedding | Embedding sum       | E_type
  Embeddings.position embed_counted | c) position embedding          | Position embeddings | E_pos
  Embeddings.position add           | d) sum                         | Embedding sum 2
"""

FAMILY = Family(
    types={"roberta": "Roberta", "xlm-roberta": "XLMRoberta", "camembert": "Camembert"},
    config=RobertaConfig,
    network=Roberta,
    prefixes=("roberta.",),
    names=(EMBEDDINGS, ATTENTION, LAYER, POOLER, LM_HEAD, FINE_TUNED),
    variants={
        "roberta-base": sized(12, 768, **PUBLISHED),
        "roberta-large": sized(24, 1024, **PUBLISHED),
        "xlm-roberta-base": sized(12, 768, **XLM),
        "xlm-roberta-large": sized(24, 1024, **XLM),
        "camembert-base": sized(12, 768, vocab_size=32005, model_type="camembert", **PUBLISHED),
    },
)
