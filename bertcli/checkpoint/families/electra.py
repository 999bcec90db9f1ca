"""ELECTRA in files: its keys in config.json and the names of its tensors."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from bertcli.checkpoint.config import MOST_LAYERS, count
from bertcli.checkpoint.families.bert import ATTENTION, BUFFERS, EMBEDDINGS, LAYER, BertConfig
from bertcli.checkpoint.family import Family, Head
from bertcli.errors import BertcliError, shown
from bertcli.network.electra import Electra


@dataclass(frozen=True)
class ElectraConfig(BertConfig):
    """An ELECTRA configuration with config.json's own keys; the defaults are those of ELECTRA's code."""

    hidden_size: int = count(256, needed=True)
    num_hidden_layers: int = count(12, needed=True, most=MOST_LAYERS)
    num_attention_heads: int = count(4, needed=True)
    intermediate_size: int = count(1024, needed=True)
    embedding_size: int = count(128)
    summary_type: str = "first"
    summary_use_proj: bool = True
    summary_activation: str = "gelu"
    model_type: str = field(default="electra", kw_only=True)

    title: ClassVar[str] = "ELECTRA"

    def check(self) -> None:
        super().check()
        for key, value in (("summary_type", "first"), ("summary_use_proj", True), ("summary_activation", "gelu")):
            if getattr(self, key) != value:
                raise BertcliError(f"{key} is {shown(getattr(self, key))}; bertcli runs ELECTRA with {shown(value)}.")

    @property
    def aliases(self) -> dict[str, str]:
        return {} if self.has_projection else {"E": "H"}

    @property
    def has_projection(self) -> bool:
        """Whether embeddings are projected to the width of the layers."""
        return self.embedding_size != self.hidden_size

    @property
    def sizes(self) -> dict[str, int]:
        return super().sizes | {"E": self.embedding_size}


def _published(layers: int, hidden: int, embedding: int, inner: int) -> ElectraConfig:
    return ElectraConfig(
        hidden_size=hidden,
        num_hidden_layers=layers,
        num_attention_heads=hidden // 64,
        intermediate_size=inner,
        embedding_size=embedding,
    )


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
    buffers=BUFFERS,
    hints={"mlm": "Of ELECTRA's two models only the generator fills masks, as in -m google/electra-small-generator."},
    heads={
        "mlm": Head("generator_predictions."),
        "rtd": Head("discriminator_predictions."),
        "classifier": Head("classifier.dense.", "ForSequenceClassification"),
        "multiple_choice": Head("sequence_summary.", "ForMultipleChoice"),
        "token_classifier": Head("classifier.weight", "ForTokenClassification"),
        "qa": Head("qa_outputs.", "ForQuestionAnswering"),
    },
    variants={
        "electra-small": _published(12, 256, 128, 1024),
        "electra-base": _published(12, 768, 768, 3072),
        "electra-large": _published(24, 1024, 1024, 4096),
    },
)
