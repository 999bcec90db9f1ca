"""The reduced model of tutorials: it has sizes, but no files."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from bertcli.checkpoint.config import activation, eps
from bertcli.checkpoint.families import Family
from bertcli.checkpoint.families.bert import BertConfig
from bertcli.network.textbook import Textbook


@dataclass(frozen=True)
class TextbookConfig(BertConfig):
    """BERT's keys; a model without segments, whose activation and eps are fixed."""

    hidden_act: str = activation("relu")
    layer_norm_eps: float = eps(1e-5)
    model_type: str = field(default="textbook", kw_only=True)

    title: ClassVar[str] = "the textbook model"


FAMILY = Family(
    config=TextbookConfig,
    network=Textbook,
    prefix="",
    names=(),
    variants={"textbook": TextbookConfig()},
)
