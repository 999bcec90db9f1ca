"""Names of layers and attention heads for people: both count from 1, and layer 0 is the embeddings.

`--layer 3` and `--layer 3.2` (layer 3, head 2) are read here for every command. Only the paths of modules count from
0, as checkpoints do: layer 3 is `encoder.layers.2`.
"""

import re
from typing import NamedTuple

from bertcli.errors import BertcliError
from bertcli.models.config import Config

# Stands for the number of every layer in a path: `encoder.layers.*.attention`.
EVERY_LAYER = "*"
LAYER_AND_HEAD = re.compile(r"(-?\d{1,9})(?:\.(\d{1,9}))?", re.ASCII)


class LayerAndHead(NamedTuple):
    """A layer (from 1; 0 is the embeddings), and one of its attention heads (from 1), or None for no head."""

    layer: int
    head: int | None = None

    @property
    def name(self) -> str:
        """`layer 3, head 2`"""
        return layer_name(self.layer) + ("" if self.head is None else f", head {self.head}")


def layer_name(layer: int) -> str:
    """The name of a layer: `layer 3`, or `embeddings` for layer 0."""
    return f"layer {layer}" if layer else "embeddings"


def state_name(number: int) -> str:
    """The name of a hidden state: `after layer N`, or `embeddings` for state 0, the embeddings' output."""
    return f"after layer {number}" if number else "embeddings"


def parse_layer(text: str, config: Config, *, least: int = 1) -> LayerAndHead:
    """Parse `LAYER` or `LAYER.HEAD`; a negative layer counts from the last one, -1.

    `least`: 0 where the embeddings can be meant. Errors: BertcliError for any other text, and for a layer or a head
    that the model does not have.
    """
    layers, heads = config.num_hidden_layers, config.num_attention_heads
    if not layers and least:
        raise BertcliError("This model has no layers, so it has no attention heads.")
    match = LAYER_AND_HEAD.fullmatch(text)
    if match is None:
        raise BertcliError(f"'{text}' is no LAYER or LAYER.HEAD: give a layer, as in 1, or a head of it, as in 1.2.")
    layer, head = int(match[1]), None if match[2] is None else int(match[2])
    if layer < 0:
        layer += layers + 1
    if layer == 0 == least and head is not None:
        raise BertcliError("The embeddings (layer 0) have no attention heads: give a layer from 1, or 0 alone.")
    if not least <= layer <= layers:
        known = f"layers 1 to {layers}" + ("" if least else "; 0 is the embeddings")
        raise BertcliError(f"There is no layer {text.partition('.')[0]}: this model has {known}.")
    if head is not None and not 1 <= head <= heads:
        raise BertcliError(f"There is no head {head}: a layer of this model has heads 1 to {heads}.")
    return LayerAndHead(layer, head)
