"""ESM-2 (Lin et al. 2023): BERT for proteins, a token a residue, with rotary positions and norms before its layers.

Its masks are 0, and what is left is scaled as if as many tokens had been masked as in training ("token dropout").
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar, Self

from bertcli.engine.packing import Packed
from bertcli.errors import BertcliError
from bertcli.models.bert import ATTENTION, LAYER, POOLER
from bertcli.models.config import choice, count, eps, renamed, sized
from bertcli.models.registry import Family
from bertcli.models.roberta import FINE_TUNED, LM_HEAD, MaskedLM
from bertcli.models.rope import RotaryConfig
from bertcli.network import prenorm
from bertcli.network.encoder import FeedForward
from bertcli.network.heads import FirstTokenClassifier, Pooler, TokenClassifier
from bertcli.network.module import Module, parameter, part, parts, setting
from bertcli.network.ops import drop_masks, embed
from bertcli.network.prenorm import NetworkOfNormedStates, NormKeepingInput
from bertcli.network.rotary import Attention
from bertcli.tracing.dispatch import Array

MASKED = 0.15 * 0.8  # the share of tokens that were masked in training


class Embeddings(Module):
    """X = E_tok[ids], or with token dropout 0 for masks and E_tok[ids] · (1 - 0.12) / (1 - masks / tokens)"""

    token: Array = parameter("V H")
    mask: int = setting("mask_token_id")
    dropout: bool = setting("token_dropout")

    def forward(self, batch: Packed) -> Array:
        """Token ids of a batch -> [token, hidden]"""
        x = embed(self.token, batch.ids)
        return drop_masks(x, batch.ids, batch.first, mask=self.mask, trained=MASKED) if self.dropout else x


class EncoderLayer(prenorm.EncoderLayer):
    """X = X + Attention(LayerNorm(X)), then X = X + FeedForward(LayerNorm(X))"""

    attention_norm: NormKeepingInput = part(features="H")
    attention: Attention = part()
    feed_forward_norm: NormKeepingInput = part(features="H")
    feed_forward: FeedForward = part()


class Encoder(prenorm.Encoder):
    """L encoder layers, one after the other, then a norm"""

    layers: tuple[EncoderLayer, ...] = parts("L")
    norm: NormKeepingInput = part(features="H")


class Esm(NetworkOfNormedStates):
    """Token ids to hidden states, with heads to apply to them"""

    embeddings: Embeddings = part()
    encoder: Encoder = part()
    pooler: Pooler | None = part()
    mlm: MaskedLM | None = part(features="H")
    classifier: FirstTokenClassifier | None = part()
    token_classifier: TokenClassifier | None = part()


class EsmConfig(RotaryConfig):
    """An ESM configuration with config.json's own keys."""

    vocab_size: int = count(33, "V", needed=True)
    layer_norm_eps: float = eps(1e-5)
    max_position_embeddings: int = count(1026, "P")
    position_embedding_type: str = choice("rotary")
    emb_layer_norm_before: bool = choice(False)
    token_dropout: bool = True
    mask_token_id: int = 32
    is_folding_model: bool = choice(False)
    stored_frequencies: tuple[float, ...] = ()  # of a head's pairs, where the file has them
    pad_token_id: int = 1
    model_type: str = "esm"

    title: ClassVar[str] = "ESM-2"
    rope_types: ClassVar = {"default": ()}

    @classmethod
    def normalized(cls, data: Mapping[str, Any]) -> Mapping[str, Any]:
        """Add the defaults of ESM's code, which are ESM-1b's. The code has the exact GELU for any value of the key."""
        older = {"position_embedding_type": "absolute", "token_dropout": False, "layer_norm_eps": 1e-12}
        return super().normalized(older | renamed(data, {}) | {"hidden_act": "gelu", "stored_frequencies": ()})

    def with_stored(self, stored: Mapping[str, Any]) -> Self:
        """With the inverse frequencies of the file's first layer: some were rounded when the model was trained."""
        name = min((name for name in stored if name.endswith("rotary_embeddings.inv_freq")), default=None)
        if name is None:
            return self
        if stored[name].shape != (self.sizes["D"] // 2,):
            raise BertcliError(f"The tensor '{name}' has shape {stored[name].shape}, not ({self.sizes['D'] // 2},).")
        return replace(self, stored_frequencies=tuple(stored[name].float32().tolist()))

    @property
    def inverse_frequencies(self) -> tuple[tuple[float, ...], ...]:
        """Rotary inverse frequencies of each layer's heads."""
        if not self.stored_frequencies:
            return super().inverse_frequencies
        return (self.stored_frequencies,) * self.num_hidden_layers


NAMES = """
embeddings.token                       embeddings.word_embeddings.weight
encoder.layers.#.attention_norm.*      encoder.layer.#.attention.LayerNorm.*
encoder.layers.#.feed_forward_norm.*   encoder.layer.#.LayerNorm.*
encoder.norm.*                         encoder.emb_layer_norm_after.*
"""
FAMILY = Family(
    types={"esm": "Esm"},
    config=EsmConfig,
    network=Esm,
    prefixes=("esm.",),
    names=(NAMES, ATTENTION, LAYER, POOLER, LM_HEAD, FINE_TUNED),
    ignored_prefixes=("contact_head.",),
    variants={
        "esm2-8m": sized(6, 320, num_attention_heads=20),
        "esm2-35m": sized(12, 480, num_attention_heads=20),
        "esm2-150m": sized(30, 640, num_attention_heads=20),
        "esm2-650m": sized(33, 1280, num_attention_heads=20),
        "esm2-3b": sized(36, 2560, num_attention_heads=40),
        "esm2-15b": sized(48, 5120, num_attention_heads=40),
    },
)
# The names of these modules' steps in `trace`; analysis/trace/step_names.py reads them by this constant's name.
STEP_NAMES = """
Embeddings
  Embeddings.token embed      | a) token embedding | Token embeddings | E_tok
  Embeddings.token drop_masks | b) token dropout   | Embedding output
3 Feed-forward
  EncoderLayer.feed_forward_norm new_norm | layer normalization | Feed-forward input
"""
