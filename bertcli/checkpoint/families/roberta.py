"""RoBERTa, XLM-RoBERTa and CamemBERT in files: their keys in config.json and the names of their tensors."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

from bertcli.checkpoint.config import count
from bertcli.checkpoint.families import Family
from bertcli.checkpoint.families.bert import ATTENTION, EMBEDDINGS, LAYER, POOLER, BertConfig
from bertcli.errors import BertcliError
from bertcli.network.roberta import Roberta

LM_HEAD = (
    (r"mlm\.transform\.(\w+)", r"lm_head.dense.\1"),
    (r"mlm\.norm\.(\w+)", r"lm_head.layer_norm.\1"),
    (r"mlm\.decoder", "lm_head.decoder.weight"),
    (r"mlm\.bias", "lm_head.bias"),
)
FINE_TUNED = (
    (r"classifier\.dense\.(\w+)", r"classifier.dense.\1"),
    (r"classifier\.output\.(\w+)", r"classifier.out_proj.\1"),
    (r"(?:token_classifier|multiple_choice)\.output\.(\w+)", r"classifier.\1"),
    (r"qa\.output\.(\w+)", r"qa_outputs.\1"),
)


@dataclass(frozen=True)
class RobertaConfig(BertConfig):
    """A RoBERTa configuration with config.json's own keys; the defaults are those of RoBERTa's code."""

    vocab_size: int = count(50265, "V", needed=True)
    pad_token_id: int = field(default=1, kw_only=True)
    model_type: str = field(default="roberta", kw_only=True)

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
        return False


PUBLISHED: dict[str, Any] = {"layer_norm_eps": 1e-5, "max_position_embeddings": 514, "type_vocab_size": 1}
XLM: dict[str, Any] = {**PUBLISHED, "vocab_size": 250002, "model_type": "xlm-roberta"}

FAMILY = Family(
    config=RobertaConfig,
    network=Roberta,
    prefix="roberta.",
    names=(*EMBEDDINGS, *ATTENTION, *LAYER, *POOLER, *LM_HEAD, *FINE_TUNED),
    variants={
        "roberta-base": RobertaConfig.sized(12, 768, **PUBLISHED),
        "roberta-large": RobertaConfig.sized(24, 1024, **PUBLISHED),
        "xlm-roberta-base": RobertaConfig.sized(12, 768, **XLM),
        "xlm-roberta-large": RobertaConfig.sized(24, 1024, **XLM),
        "camembert-base": RobertaConfig.sized(12, 768, vocab_size=32005, model_type="camembert", **PUBLISHED),
    },
)
