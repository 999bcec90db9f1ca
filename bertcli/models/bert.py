"""The whole BERT: embeddings, encoder and the heads that a checkpoint has."""

from typing import ClassVar

from bertcli.models.config import Config, count
from bertcli.models.registry import Family
from bertcli.network.encoder import Embeddings, Encoder
from bertcli.network.heads import Classifier, MaskedLM, Network, Pooler, TokenClassifier
from bertcli.network.module import part


class Bert(Network):
    """Token ids to hidden states, with heads to apply to them"""

    embeddings: Embeddings = part()
    encoder: Encoder = part()
    pooler: Pooler | None = part()
    mlm: MaskedLM | None = part(features="H")
    nsp: Classifier | None = part(C="2")  # the second text is next, or not
    classifier: Classifier | None = part()
    token_classifier: TokenClassifier | None = part()
    qa: TokenClassifier | None = part(C="2")  # that an answer starts here, and that it ends
    multiple_choice: Classifier | None = part(C="1")  # how well a choice fits

    pooled: ClassVar = frozenset({"nsp", "classifier", "multiple_choice"})


class BertConfig(Config):
    """A BERT configuration with config.json's own keys; the defaults are those of BERT-base uncased."""

    type_vocab_size: int = count(2, "T")
    model_type: str = "bert"

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


FAMILY = Family(
    types={"bert": "Bert"},
    config=BertConfig,
    network=Bert,
    prefixes=("bert.",),
    names=(
        *EMBEDDINGS,
        *ATTENTION,
        *LAYER,
        *POOLER,
        *MLM,
        (r"nsp\.output\.(\w+)", r"cls.seq_relationship.\1"),
        *FINE_TUNED,
    ),
    variants={
        "tiny": BertConfig.sized(2, 128),
        "mini": BertConfig.sized(4, 256),
        "small": BertConfig.sized(4, 512),
        "medium": BertConfig.sized(8, 512),
        "base": BertConfig.sized(12, 768),
        "large": BertConfig.sized(24, 1024),
        "base-cased": BertConfig.sized(12, 768, vocab_size=28996),
        "large-cased": BertConfig.sized(24, 1024, vocab_size=28996),
        "base-multilingual-cased": BertConfig.sized(12, 768, vocab_size=119547),
        "base-chinese": BertConfig.sized(12, 768, vocab_size=21128),
    },
)
