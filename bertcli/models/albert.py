"""ALBERT (Lan et al. 2020): BERT whose layers are one layer, run again and again, with narrow embeddings."""

import re
from typing import ClassVar

from bertcli.errors import BertcliError
from bertcli.models import electra
from bertcli.models.bert import EMBEDDINGS, FINE_TUNED, BertConfig
from bertcli.models.config import activation, choice, count, layers, sized
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


NAMES = """
embeddings.projection.*                          encoder.embedding_hidden_mapping_in.*
encoder.layers.#.attention.{query,key}.*         encoder.albert_layer_groups.#.albert_layers.0.attention.{query,key}.*
encoder.layers.#.attention.value.*               encoder.albert_layer_groups.#.albert_layers.0.attention.value.*
encoder.layers.#.attention.output.*              encoder.albert_layer_groups.#.albert_layers.0.attention.dense.*
encoder.layers.#.attention_norm.*                encoder.albert_layer_groups.#.albert_layers.0.attention.LayerNorm.*
encoder.layers.#.feed_forward.intermediate.*     encoder.albert_layer_groups.#.albert_layers.0.ffn.*
encoder.layers.#.feed_forward.output.*           encoder.albert_layer_groups.#.albert_layers.0.ffn_output.*
encoder.layers.#.feed_forward_norm.*             encoder.albert_layer_groups.#.albert_layers.0.full_layer_layer_norm.*
pooler.dense.*                                   pooler.*
mlm.transform.*                                  predictions.dense.*
mlm.norm.*                                       predictions.LayerNorm.*
mlm.decoder                                      predictions.decoder.weight
mlm.bias                                         predictions.bias
sop.output.*                                     sop_classifier.classifier.*
"""

FAMILY = Family(
    types={"albert": "Albert"},
    config=AlbertConfig,
    network=Albert,
    prefixes=("albert.",),
    names=(NAMES, EMBEDDINGS, FINE_TUNED),
    variants={
        "albert-base": sized(12, 768),
        "albert-large": sized(24, 1024),
        "albert-xlarge": sized(24, 2048, num_attention_heads=16),
        "albert-xxlarge": sized(12, 4096),
    },
)
