"""ALBERT (Lan et al. 2020): BERT whose layers are one layer, run again and again, with narrow embeddings."""

import re
from typing import ClassVar

from bertcli.errors import BertcliError
from bertcli.models import electra
from bertcli.models.bert import EMBEDDINGS, FINE_TUNED, BertConfig
from bertcli.models.config import activation, choice, count, layers
from bertcli.models.registry import Family
from bertcli.network import encoder
from bertcli.network.encoder import EncoderLayer, Linear
from bertcli.network.heads import Classifier, MaskedLM, Network, Pooler, TokenClassifier
from bertcli.network.module import part, parts


class Embeddings(electra.Embeddings):
    """BERT's with E numbers a token, projected to H"""

    projection: Linear = part(outputs="H", inputs="E")


class Encoder(encoder.Encoder):
    """L encoder layers, one after the other, most of them the same"""

    layers: tuple[EncoderLayer[None], ...] = parts("L", shared="groups")


class Albert(Network):
    """Token ids to hidden states, with heads to apply to them"""

    embeddings: Embeddings = part()
    encoder: Encoder = part()
    pooler: Pooler | None = part()
    mlm: MaskedLM | None = part(features="E")
    sop: Classifier | None = part(C="2")  # the texts are in order, or swapped
    classifier: Classifier | None = part()
    token_classifier: TokenClassifier | None = part()
    qa: TokenClassifier | None = part(C="2")  # that an answer starts here, and that it ends
    multiple_choice: Classifier | None = part(C="1")  # how well a choice fits

    pooled: ClassVar = frozenset({"sop", "classifier", "multiple_choice"})


class AlbertConfig(BertConfig):
    """An ALBERT configuration with config.json's own keys; the defaults are those of ALBERT's code."""

    vocab_size: int = count(30000, "V", needed=True)
    hidden_size: int = count(4096, "H", needed=True)
    num_hidden_layers: int = layers(12)
    num_attention_heads: int = count(64, "A", needed=True)
    intermediate_size: int = count(16384, "F", needed=True)
    hidden_act: str = activation("gelu_new")
    embedding_size: int = count(128, "E")
    num_hidden_groups: int = count(1)
    inner_group_num: int = choice(1)
    model_type: str = "albert"

    title: ClassVar[str] = "ALBERT"

    def check(self) -> None:
        if self.num_hidden_groups > self.num_hidden_layers:
            raise BertcliError(
                f"num_hidden_groups is {self.num_hidden_groups}; it must be at most num_hidden_layers, "
                f"{self.num_hidden_layers}."
            )

    @property
    def groups(self) -> tuple[int, ...]:
        """The number of the stored layer that each layer shares."""
        together = self.num_hidden_layers / self.num_hidden_groups
        return tuple(int(n / together) for n in range(self.num_hidden_layers))

    def stored_path(self, path: str) -> str:
        return re.sub(r"(?<=^encoder\.layers\.)\d+", lambda number: str(self.groups[int(number[0])]), path)


STORED = r"encoder.albert_layer_groups.\1.albert_layers.0."

FAMILY = Family(
    types={"albert": "Albert"},
    config=AlbertConfig,
    network=Albert,
    prefixes=("albert.",),
    names=(
        (r"embeddings\.projection\.(\w+)", r"encoder.embedding_hidden_mapping_in.\1"),
        *EMBEDDINGS,
        (r"encoder\.layers\.(\d+)\.attention\.(query|key|value)\.(\w+)", STORED + r"attention.\2.\3"),
        (r"encoder\.layers\.(\d+)\.attention\.output\.(\w+)", STORED + r"attention.dense.\2"),
        (r"encoder\.layers\.(\d+)\.attention_norm\.(\w+)", STORED + r"attention.LayerNorm.\2"),
        (r"encoder\.layers\.(\d+)\.feed_forward\.intermediate\.(\w+)", STORED + r"ffn.\2"),
        (r"encoder\.layers\.(\d+)\.feed_forward\.output\.(\w+)", STORED + r"ffn_output.\2"),
        (r"encoder\.layers\.(\d+)\.feed_forward_norm\.(\w+)", STORED + r"full_layer_layer_norm.\2"),
        (r"pooler\.dense\.(\w+)", r"pooler.\1"),
        (r"mlm\.transform\.(\w+)", r"predictions.dense.\1"),
        (r"mlm\.norm\.(\w+)", r"predictions.LayerNorm.\1"),
        (r"mlm\.decoder", "predictions.decoder.weight"),
        (r"mlm\.bias", "predictions.bias"),
        (r"sop\.output\.(\w+)", r"sop_classifier.classifier.\1"),
        *FINE_TUNED,
    ),
    variants={
        "albert-base": AlbertConfig.sized(12, 768),
        "albert-large": AlbertConfig.sized(24, 1024),
        "albert-xlarge": AlbertConfig.sized(24, 2048, num_attention_heads=16),
        "albert-xxlarge": AlbertConfig.sized(12, 4096),
    },
)
