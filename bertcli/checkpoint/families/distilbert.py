"""DistilBERT in files: its keys in config.json and the names of its tensors."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from bertcli.checkpoint.config import Config, activation, count, layers
from bertcli.checkpoint.families import Family
from bertcli.checkpoint.families.bert import EMBEDDINGS
from bertcli.network.distilbert import DistilBert


@dataclass(frozen=True)
class DistilBertConfig(Config):
    """A DistilBERT configuration with config.json's own keys; the defaults are those of distilbert-base-uncased."""

    dim: int = count(768, "H", needed=True)
    n_layers: int = layers(6)
    n_heads: int = count(12, "A", needed=True)
    hidden_dim: int = count(3072, "F", needed=True)
    activation: str = activation()
    max_position_embeddings: int = count(512, "P")
    model_type: str = field(default="distilbert", kw_only=True)

    title: ClassVar[str] = "DistilBERT"
    layer_norm_eps: ClassVar[float] = 1e-12  # not in config.json: the code has no other

    @property
    def hidden_act(self) -> str:
        """What BERT calls `activation`."""
        return self.activation


FAMILY = Family(
    config=DistilBertConfig,
    network=DistilBert,
    prefix="distilbert.",
    names=(
        *EMBEDDINGS,
        (r"encoder\.layers\.(\d+)\.attention\.query\.(\w+)", r"transformer.layer.\1.attention.q_lin.\2"),
        (r"encoder\.layers\.(\d+)\.attention\.key\.(\w+)", r"transformer.layer.\1.attention.k_lin.\2"),
        (r"encoder\.layers\.(\d+)\.attention\.value\.(\w+)", r"transformer.layer.\1.attention.v_lin.\2"),
        (r"encoder\.layers\.(\d+)\.attention\.output\.(\w+)", r"transformer.layer.\1.attention.out_lin.\2"),
        (r"encoder\.layers\.(\d+)\.attention_norm\.(\w+)", r"transformer.layer.\1.sa_layer_norm.\2"),
        (r"encoder\.layers\.(\d+)\.feed_forward\.intermediate\.(\w+)", r"transformer.layer.\1.ffn.lin1.\2"),
        (r"encoder\.layers\.(\d+)\.feed_forward\.output\.(\w+)", r"transformer.layer.\1.ffn.lin2.\2"),
        (r"encoder\.layers\.(\d+)\.feed_forward_norm\.(\w+)", r"transformer.layer.\1.output_layer_norm.\2"),
        (r"mlm\.transform\.(\w+)", r"vocab_transform.\1"),
        (r"mlm\.norm\.(\w+)", r"vocab_layer_norm.\1"),
        (r"mlm\.decoder", "vocab_projector.weight"),
        (r"mlm\.bias", "vocab_projector.bias"),
        (r"(?:classifier|multiple_choice)\.dense\.(\w+)", r"pre_classifier.\1"),
        (r"(?:classifier|token_classifier|multiple_choice)\.output\.(\w+)", r"classifier.\1"),
        (r"qa\.output\.(\w+)", r"qa_outputs.\1"),
    ),
    variants={
        "distilbert-base": DistilBertConfig(),
        "distilbert-base-cased": DistilBertConfig(vocab_size=28996),
        "distilbert-base-multilingual-cased": DistilBertConfig(vocab_size=119547),
    },
)
