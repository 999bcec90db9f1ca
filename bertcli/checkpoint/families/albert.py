"""ALBERT in files: its keys in config.json and the names of its tensors."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import ClassVar

from bertcli.checkpoint.config import MOST_LAYERS, count
from bertcli.checkpoint.families.bert import BUFFERS, EMBEDDINGS, FINE_TUNED, BertConfig
from bertcli.checkpoint.family import Family, Head
from bertcli.errors import BertcliError
from bertcli.network.albert import Albert


@dataclass(frozen=True)
class AlbertConfig(BertConfig):
    """An ALBERT configuration with config.json's own keys; the defaults are those of ALBERT's code."""

    vocab_size: int = count(30000, needed=True)
    hidden_size: int = count(4096, needed=True)
    num_hidden_layers: int = count(12, needed=True, most=MOST_LAYERS)
    num_attention_heads: int = count(64, needed=True)
    intermediate_size: int = count(16384, needed=True)
    hidden_act: str = "gelu_new"
    embedding_size: int = count(128)
    num_hidden_groups: int = count(1)
    inner_group_num: int = count(1)
    model_type: str = field(default="albert", kw_only=True)

    title: ClassVar[str] = "ALBERT"

    def check(self) -> None:
        super().check()
        if self.inner_group_num != 1:
            raise BertcliError(f"inner_group_num is {self.inner_group_num}; bertcli runs ALBERT with 1 only.")
        if self.num_hidden_groups > self.num_hidden_layers:
            raise BertcliError(
                f"num_hidden_groups is {self.num_hidden_groups}; it must be at most num_hidden_layers, "
                f"{self.num_hidden_layers}."
            )

    @property
    def sizes(self) -> dict[str, int]:
        return super().sizes | {"E": self.embedding_size}

    @property
    def groups(self) -> tuple[int, ...]:
        """Of every layer, which of the stored layers it is."""
        together = self.num_hidden_layers / self.num_hidden_groups
        return tuple(int(n / together) for n in range(self.num_hidden_layers))

    def stored_path(self, path: str) -> str:
        return re.sub(r"(?<=^encoder\.layers\.)\d+", lambda number: str(self.groups[int(number[0])]), path)


def _published(layers: int, hidden: int, heads: int) -> AlbertConfig:
    return AlbertConfig(
        hidden_size=hidden, num_hidden_layers=layers, num_attention_heads=heads, intermediate_size=4 * hidden
    )


STORED = r"encoder.albert_layer_groups.\1.albert_layers.0."
FAMILY = Family(
    config=AlbertConfig,
    network=Albert,
    prefix="albert.",
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
    other_names={"predictions.bias": "predictions.decoder.bias"},
    buffers=BUFFERS,
    heads={
        "pooler": Head("pooler."),
        "mlm": Head("predictions.dense."),
        "sop": Head("sop_classifier.", "ForPreTraining"),
        "classifier": Head("classifier.", "ForSequenceClassification"),
        "token_classifier": Head("classifier.", "ForTokenClassification"),
        "multiple_choice": Head("classifier.", "ForMultipleChoice"),
        "qa": Head("qa_outputs.", "ForQuestionAnswering"),
    },
    variants={
        "albert-base": _published(12, 768, 12),
        "albert-large": _published(24, 1024, 16),
        "albert-xlarge": _published(24, 2048, 16),
        "albert-xxlarge": _published(12, 4096, 64),
    },
)
