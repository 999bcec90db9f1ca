"""BERT (Devlin et al. 2018) in files: its keys in config.json and the names of its tensors."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from bertcli.checkpoint.config import Config, activation, count, eps, layers
from bertcli.checkpoint.families import Family
from bertcli.network.bert import Bert


@dataclass(frozen=True)
class BertConfig(Config):
    """A BERT configuration with config.json's own keys; the defaults are those of BERT-base uncased."""

    hidden_size: int = count(768, "H", needed=True)
    num_hidden_layers: int = layers(12)
    num_attention_heads: int = count(12, "A", needed=True)
    intermediate_size: int = count(3072, "F", needed=True)
    hidden_act: str = activation()
    layer_norm_eps: float = eps(1e-12)
    max_position_embeddings: int = count(512, "P")
    type_vocab_size: int = count(2, "T")
    model_type: str = field(default="bert", kw_only=True)

    title: ClassVar[str] = "BERT"

    @property
    def has_segments(self) -> bool:
        return True


# Our path -> the checkpoint's name. Other families use some of these groups.
EMBEDDINGS = (
    (r"embeddings\.token", "embeddings.word_embeddings.weight"),
    (r"embeddings\.segment", "embeddings.token_type_embeddings.weight"),
    (r"embeddings\.position", "embeddings.position_embeddings.weight"),
    (r"embeddings\.norm\.(\w+)", r"embeddings.LayerNorm.\1"),
)
ATTENTION = (
    (r"encoder\.layers\.(\d+)\.attention\.(query|key|value)\.(\w+)", r"encoder.layer.\1.attention.self.\2.\3"),
)
LAYER = (
    (r"encoder\.layers\.(\d+)\.attention\.output\.(\w+)", r"encoder.layer.\1.attention.output.dense.\2"),
    (r"encoder\.layers\.(\d+)\.attention_norm\.(\w+)", r"encoder.layer.\1.attention.output.LayerNorm.\2"),
    (r"encoder\.layers\.(\d+)\.feed_forward\.(intermediate|output)\.(\w+)", r"encoder.layer.\1.\2.dense.\3"),
    (r"encoder\.layers\.(\d+)\.feed_forward_norm\.(\w+)", r"encoder.layer.\1.output.LayerNorm.\2"),
)
POOLER = ((r"pooler\.dense\.(\w+)", r"pooler.dense.\1"),)
MLM = (
    (r"mlm\.transform\.(\w+)", r"cls.predictions.transform.dense.\1"),
    (r"mlm\.norm\.(\w+)", r"cls.predictions.transform.LayerNorm.\1"),
    (r"mlm\.decoder", "cls.predictions.decoder.weight"),
    (r"mlm\.bias", "cls.predictions.bias"),
)
FINE_TUNED = (
    (r"(?:classifier|token_classifier|multiple_choice)\.output\.(\w+)", r"classifier.\1"),
    (r"qa\.output\.(\w+)", r"qa_outputs.\1"),
)


def sized(layers: int, hidden: int, vocab: int = 30522) -> BertConfig:
    """The configuration of a variant: a head for every 64 numbers, and an inner size of four times the hidden size."""
    return BertConfig(
        vocab_size=vocab,
        hidden_size=hidden,
        num_hidden_layers=layers,
        num_attention_heads=hidden // 64,
        intermediate_size=4 * hidden,
    )


FAMILY = Family(
    config=BertConfig,
    network=Bert,
    prefix="bert.",
    names=(
        *EMBEDDINGS,
        *ATTENTION,
        *LAYER,
        *POOLER,
        *MLM,
        (r"nsp\.output\.(\w+)", r"cls.seq_relationship.\1"),
        *FINE_TUNED,
    ),
    heads={
        "pooler": "pooler.dense.",
        "mlm": "cls.predictions.transform.",
        "nsp": "cls.seq_relationship.",
        "classifier": "classifier.",
        "token_classifier": "classifier.",
        "multiple_choice": "classifier.",
        "qa": "qa_outputs.",
    },
    variants={
        "tiny": sized(2, 128),
        "mini": sized(4, 256),
        "small": sized(4, 512),
        "medium": sized(8, 512),
        "base": sized(12, 768),
        "large": sized(24, 1024),
        "base-cased": sized(12, 768, vocab=28996),
        "large-cased": sized(24, 1024, vocab=28996),
        "base-multilingual-cased": sized(12, 768, vocab=119547),
        "base-chinese": sized(12, 768, vocab=21128),
    },
)
