"""ELECTRA in files: its keys in config.json and the names of its tensors."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from bertcli.checkpoint.config import choice, count, layers
from bertcli.checkpoint.families import Family
from bertcli.checkpoint.families.bert import ATTENTION, EMBEDDINGS, LAYER, BertConfig
from bertcli.network.electra import Electra


@dataclass(frozen=True)
class ElectraConfig(BertConfig):
    """An ELECTRA configuration with config.json's own keys; the defaults are those of ELECTRA's code."""

    hidden_size: int = count(256, "H", needed=True)
    num_hidden_layers: int = layers(12)
    num_attention_heads: int = count(4, "A", needed=True)
    intermediate_size: int = count(1024, "F", needed=True)
    embedding_size: int = count(128, "E")
    summary_type: str = choice("first")
    summary_use_proj: bool = choice(True)
    summary_activation: str = choice("gelu")
    model_type: str = field(default="electra", kw_only=True)

    title: ClassVar[str] = "ELECTRA"


FAMILY = Family(
    config=ElectraConfig,
    network=Electra,
    prefix="electra.",
    names=(
        *EMBEDDINGS,
        (r"embeddings\.projection\.(\w+)", r"embeddings_project.\1"),
        *ATTENTION,
        *LAYER,
        (r"mlm\.transform\.(\w+)", r"generator_predictions.dense.\1"),
        (r"mlm\.norm\.(\w+)", r"generator_predictions.LayerNorm.\1"),
        (r"mlm\.decoder", "generator_lm_head.weight"),
        (r"mlm\.bias", "generator_lm_head.bias"),
        (r"rtd\.dense\.(\w+)", r"discriminator_predictions.dense.\1"),
        (r"rtd\.output\.(\w+)", r"discriminator_predictions.dense_prediction.\1"),
        (r"classifier\.dense\.(\w+)", r"classifier.dense.\1"),
        (r"classifier\.output\.(\w+)", r"classifier.out_proj.\1"),
        (r"multiple_choice\.dense\.(\w+)", r"sequence_summary.summary.\1"),
        (r"(?:token_classifier|multiple_choice)\.output\.(\w+)", r"classifier.\1"),
        (r"qa\.output\.(\w+)", r"qa_outputs.\1"),
    ),
    hints={"mlm": "Of ELECTRA's two models only the generator fills masks, as in -m google/electra-small-generator."},
    variants={
        "electra-small": ElectraConfig.sized(12, 256),
        "electra-base": ElectraConfig.sized(12, 768, embedding_size=768),
        "electra-large": ElectraConfig.sized(24, 1024, embedding_size=1024),
    },
)
