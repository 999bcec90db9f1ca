"""ModernBERT (Warner et al. 2024): rotary positions, gated feed-forward layers, norms before them, no biases.

Most layers see only tokens near by: with local_attention 128, those at most 64 tokens away.
"""

from collections.abc import Mapping
from typing import Any, ClassVar

from bertcli.engine.packing import Packed
from bertcli.errors import BertcliError
from bertcli.models.config import activation, choice, count, eps
from bertcli.models.registry import Family
from bertcli.models.rope import GLOBAL, LOCAL, LocalConfig
from bertcli.network import prenorm
from bertcli.network.encoder import Linear
from bertcli.network.module import Module, parameter, part, parts, setting
from bertcli.network.ops import embed, linear
from bertcli.network.prenorm import NetworkOfNormedStates, NormKeepingInput
from bertcli.network.rotary import Attention, Gated
from bertcli.tracing.dispatch import Array


class Embeddings(Module):
    """X = LayerNorm(E_tok[ids])"""

    token: Array = parameter("V H")
    norm: NormKeepingInput = part(features="H", bias=False)

    def forward(self, batch: Packed) -> Array:
        """Token ids [token] -> [token, hidden]"""
        return self.norm(embed(self.token, batch.ids))


class EncoderLayer(prenorm.EncoderLayer):
    """X = X + Attention(LayerNorm(X)), then X = X + FeedForward(LayerNorm(X)); the first layer has no first norm"""

    attention_norm: NormKeepingInput | None = part(when="attention_norms", features="H", bias=False)
    attention: Attention = part(bias=False)
    feed_forward_norm: NormKeepingInput = part(features="H", bias=False)
    feed_forward: Gated = part(bias=False)


class Encoder(prenorm.Encoder):
    """L encoder layers, one after the other, then a norm"""

    layers: tuple[EncoderLayer, ...] = parts("L")
    norm: NormKeepingInput = part(features="H", bias=False)


class Transform(Module):
    """P(x) = LayerNorm(act(x Wᵀ)), with which every head begins"""

    dense: Linear = part(outputs="H", inputs="H", bias=False)
    norm: NormKeepingInput = part(features="H", bias=False)
    activation: str = setting("classifier_activation")

    def forward(self, x: Array) -> Array:
        """[token, hidden] -> [token, hidden]"""
        return self.norm(self.dense(x, activation=self.activation))


class MaskedLM(Module):
    """P(x) E_tokᵀ + bias"""

    transform: Transform = part()
    decoder: Array = parameter("V H", tied="embeddings.token")
    bias: Array = parameter("V")

    def forward(self, x: Array) -> Array:
        """Hidden states [token, hidden] -> logits [token, vocabulary]"""
        return linear(self.transform(x), self.decoder, self.bias)


class TokenClassifier(Module):
    """P(x) W_cᵀ + b_c: one logit per label from every hidden state"""

    transform: Transform = part()
    output: Linear = part(outputs="C", inputs="H")

    def forward(self, x: Array) -> Array:
        """[token, hidden] -> logits [token, label]"""
        return self.output(self.transform(x))


class Classifier(TokenClassifier):
    """P(X[CLS]) W_cᵀ + b_c, or the same of the mean of all tokens: [batch, hidden] -> logits [batch, label]"""

    pooling: str = setting("classifier_pooling")


class ModernBert(NetworkOfNormedStates):
    """Token ids to hidden states, with heads to apply to them"""

    embeddings: Embeddings = part()
    encoder: Encoder = part()
    mlm: MaskedLM | None = part()
    classifier: Classifier | None = part()
    token_classifier: TokenClassifier | None = part()
    qa: TokenClassifier | None = part(C="2")
    multiple_choice: Classifier | None = part(C="1")


class ModernBertConfig(LocalConfig):
    """A ModernBERT configuration with config.json's own keys; the defaults are those of ModernBERT-base."""

    vocab_size: int = count(50368, "V", needed=True)
    layer_norm_eps: float = eps(1e-5)
    local_attention: int = count(128)
    sliding_window: int | None = count(None)  # half of local_attention
    global_attn_every_n_layers: int = count(3)
    classifier_pooling: str = choice("cls", "mean")
    classifier_activation: str = activation()
    norm_bias: bool = choice(False)
    attention_bias: bool = choice(False)
    mlp_bias: bool = choice(False)
    classifier_bias: bool = choice(False)
    decoder_bias: bool = choice(True)
    pad_token_id: int = 50283
    model_type: str = "modernbert"

    title: ClassVar[str] = "ModernBERT"
    names: ClassVar[Mapping[str, str]] = {**LocalConfig.names, "norm_eps": "layer_norm_eps"}
    theta_keys: ClassVar = {GLOBAL: ("global_rope_theta", 160000.0), LOCAL: ("local_rope_theta", 10000.0)}

    @classmethod
    def normalized(cls, data: Mapping[str, Any]) -> Mapping[str, Any]:
        """Read a local_rope_theta of null as the θ of the other layers, not as the default."""
        is_null = "local_rope_theta" in data and data["local_rope_theta"] is None
        if is_null:
            key, default = cls.theta_keys[GLOBAL]
            data = {**data, "local_rope_theta": data.get(key, default)}
        return super().normalized(data)

    def check(self) -> None:
        super().check()
        window = self.sliding_window
        if window is not None and self.local_attention not in (2 * window, 2 * window + 1, type(self).local_attention):
            raise BertcliError(
                f"sliding_window is {window}, and local_attention {self.local_attention}, not twice that: take one out."
            )

    def is_local(self, layer: int) -> bool:
        return layer % self.global_attn_every_n_layers != 0

    @property
    def radius(self) -> int:
        return self.sliding_window or self.local_attention // 2

    @property
    def attention_norms(self) -> tuple[bool, ...]:
        """True for each layer with a norm before its attention."""
        return tuple(n > 0 for n in range(self.num_hidden_layers))


# The names of these modules' steps in `trace`; analysis/trace/step_names.py reads them by this constant's name.
STEP_NAMES = """
Embeddings
  Embeddings.token embed        | token embedding     | Token embeddings  | E_tok
  Embeddings.norm new_norm      | layer normalization | Embedding output
Head
  Transform.dense linear        | linear + {act}      | Transform         | W
  Transform.norm new_norm       | layer normalization | Transform norm
Masked language model
  MaskedLM.decoder linear       | decode              | Vocabulary logits | Decoder
Classifier
  Classifier.output linear      | linear              | Label logits      | W_c
Token classifier
  TokenClassifier.output linear | linear              | Label logits      | W_c
"""

NAMES = """
embeddings.token                                      embeddings.tok_embeddings.weight
embeddings.norm.*                                     embeddings.norm.*
encoder.layers.#.attention_norm.*                     layers.#.attn_norm.*
encoder.layers.#.attention.{query,key,value}.*        layers.#.attn.Wqkv.*[{0,1,2}/3]
encoder.layers.#.attention.output.*                   layers.#.attn.Wo.*
encoder.layers.#.feed_forward_norm.*                  layers.#.mlp_norm.*
encoder.layers.#.feed_forward.{intermediate,gate}.*   layers.#.mlp.Wi.*[{0,1}/2]
encoder.layers.#.feed_forward.output.*                layers.#.mlp.Wo.*
encoder.norm.*                                        final_norm.*
mlm.decoder                                           decoder.weight
mlm.bias                                              decoder.bias
{mlm,classifier,token_classifier,qa,multiple_choice}.transform.dense.*   head.dense.*
{mlm,classifier,token_classifier,qa,multiple_choice}.transform.norm.*    head.norm.*
{classifier,token_classifier,qa,multiple_choice}.output.*                classifier.*
"""
FAMILY = Family(
    types={"modernbert": "ModernBert"},
    config=ModernBertConfig,
    network=ModernBert,
    prefixes=("model.",),
    names=(NAMES,),
    variants={
        "modernbert-base": {"num_hidden_layers": 22, "intermediate_size": 1152},
        "modernbert-large": {
            "hidden_size": 1024,
            "num_hidden_layers": 28,
            "num_attention_heads": 16,
            "intermediate_size": 2624,
        },
    },
)
