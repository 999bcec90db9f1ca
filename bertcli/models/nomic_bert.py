"""NomicBERT (Nussbaum et al. 2024; nomic-embed-text): BERT with rotary positions and gated feed-forward layers, whose
layers have no biases.

nomic-embed-text-v2-moe (Nussbaum & Duderstadt 2025) has biases, plain feed-forward layers, and experts in every second
layer, of which a token goes to two.
"""

from collections.abc import Mapping
from functools import cached_property
from typing import Any, ClassVar

from bertcli.engine.packing import Packed
from bertcli.engine.rope import Rope
from bertcli.errors import BertcliError
from bertcli.models.bert import EMBEDDINGS, MLM, POOLER
from bertcli.models.config import activation, choice, count, renamed
from bertcli.models.registry import Family
from bertcli.models.rope import GLOBAL, RotaryConfig
from bertcli.network import encoder, rotary
from bertcli.network.encoder import LayerNorm, Linear
from bertcli.network.heads import Classifier, MaskedLM, Network, Pooler, TokenClassifier
from bertcli.network.module import Module, parameter, part, parts, setting
from bertcli.network.ops import add, embed, experts, softmax
from bertcli.network.rotary import Attention, Gated, Positions
from bertcli.tracing.dispatch import Array


class Embeddings(Module):
    """X = LayerNorm(E_tok[ids] + E_type[segments]); there may be no E_type"""

    token: Array = parameter("V H")
    segment: Array | None = parameter("T H", when="type_vocab_size")
    norm: LayerNorm = part(features="H")

    def forward(self, batch: Packed) -> Array:
        """Token ids [token] -> [token, hidden]"""
        x = embed(self.token, batch.ids)
        return self.norm(x if self.segment is None else add(embed(self.segment, batch.segments), x))


class EncoderLayer(encoder.EncoderLayer[Positions]):
    """X = LayerNorm(X + Attention(X)), then X = LayerNorm(X + FeedForward(X)); norms always have biases"""

    attention: Attention = part()
    attention_norm: LayerNorm = part(features="H", bias=True)
    feed_forward: Gated = part()
    feed_forward_norm: LayerNorm = part(features="H", bias=True)


class Encoder(rotary.Layers):
    """L encoder layers, one after the other"""

    layers: tuple[EncoderLayer, ...] = parts("L")


class Plain(encoder.FeedForward):
    """act(x W_1ᵀ + b_1) W_2ᵀ + b_2"""

    intermediate: Linear = part(outputs="F", inputs="H", bias="mlp_fc1_bias")
    output: Linear = part(outputs="H", inputs="F", bias="mlp_fc2_bias")


class Experts(Module):
    """Σ_e share_e act(x W_eᵀ) V_e + b over the few experts with the largest shares, which softmax(x Rᵀ) gives"""

    router: Linear = part(outputs="X", inputs="H", bias=False)
    inner: Array = parameter("I H")
    outer: Array = parameter("I H")
    bias: Array = parameter("H")
    top: int = setting("moe_top_k")
    activation: str = setting("hidden_act")

    def forward(self, x: Array) -> Array:
        """[token, hidden] -> [token, hidden]"""
        shares = softmax(self.router(x))
        return experts(x, shares, self.inner, self.outer, self.bias, top=self.top, activation=self.activation)


class NomicLayer(Module):
    """EncoderLayer, whose feed-forward layer is gated, plain, or one of experts"""

    attention: Attention = part(bias="qkv_proj_bias")
    attention_norm: LayerNorm = part(features="H", bias=True)
    feed_forward: Gated | None = part(when="gated_layers", bias="mlp_fc2_bias")
    plain: Plain | None = part(when="plain_layers")
    experts: Experts | None = part(when="expert_layers")
    feed_forward_norm: LayerNorm = part(features="H", bias=True)

    def forward(self, x: Array, context: Array, batch: Packed, positions: Positions) -> Array:
        """x [query, hidden], context [key, hidden], both at these positions -> [query, hidden]"""
        x = self.attention_norm(add(x, self.attention(x, context, batch, positions)))
        feed_forward: Any = self.experts or self.plain or self.feed_forward
        return self.feed_forward_norm(add(x, feed_forward(x)))


class NomicEncoder(rotary.Layers):
    """L encoder layers, one after the other"""

    layers: tuple[NomicLayer, ...] = parts("L")


class NomicBert(Network):
    """Token ids to hidden states, with heads to apply to them"""

    embeddings: Embeddings = part()
    encoder: NomicEncoder = part()
    pooler: Pooler | None = part()
    mlm: MaskedLM | None = part(features="H")
    classifier: Classifier | None = part()
    token_classifier: TokenClassifier | None = part()

    pooled: ClassVar = frozenset({"classifier"})


TRAINED = 2048  # tokens of a text in training; on longer ones implementations disagree


class NomicBertConfig(RotaryConfig):
    """A NomicBERT configuration with config.json's own keys; the defaults are those of nomic-embed-text."""

    vocab_size: int = count(30528, "V", needed=True)
    hidden_act: str = activation("silu")
    max_position_embeddings: int = count(2048, "P")
    type_vocab_size: int = count(2, "T", least=0)
    head_dim: int | None = count(None)
    rotary_emb_fraction: float = choice(1.0)
    rotary_emb_interleaved: bool = choice(False)
    prenorm: bool = choice(False)
    parallel_block: bool = choice(False)
    use_rms_norm: bool = choice(False)
    causal: bool = choice(False)
    qkv_proj_bias: bool = False
    mlp_fc1_bias: bool = False
    mlp_fc2_bias: bool = False
    is_gated: bool = True
    moe_every_n_layers: int = count(0, least=0)  # of so many layers the second has experts
    num_experts: int = count(8, "X")
    moe_top_k: int = count(1)
    moe_normalize_expert_weights: bool = choice(False)
    expert_choice_router: bool = choice(False)
    num_shared_experts: int = choice(0)
    ffn_div: int = choice(1)
    model_type: str = "nomic_bert"

    names: ClassVar[Mapping[str, str]] = {  # of older files
        "n_embd": "hidden_size", "n_layer": "num_hidden_layers", "n_head": "num_attention_heads",
        "n_inner": "intermediate_size", "n_positions": "max_position_embeddings", "activation_function": "hidden_act",
        "layer_norm_epsilon": "layer_norm_eps", "rotary_emb_base": "rope_theta",
    }  # fmt: skip
    title: ClassVar[str] = "NomicBERT"
    theta_keys: ClassVar = {GLOBAL: ("rope_theta", 1000.0)}

    @classmethod
    def key(cls, name: str) -> str:
        return name

    @classmethod
    def normalized(cls, data: Mapping[str, Any]) -> Mapping[str, Any]:
        """Read older files' keys under their newer names; an activation that is no gate's is that of plain layers."""
        values = renamed(data, cls.names)
        activation = values.get("hidden_act")
        # Older files say by the activation's name whether layers are gated. Files with the newer key have gated layers
        # only, whatever an older key beside it says.
        is_older = data.get("activation_function") is not None and data.get("hidden_act") is None
        activation_of_gate = {"swiglu": "silu", "geglu": "gelu"}
        values["is_gated"] = activation in activation_of_gate if is_older else True
        values["hidden_act"] = activation_of_gate.get(str(activation), activation)
        return super().normalized(values)

    def check(self) -> None:
        super().check()
        if self.is_gated and self.mlp_fc1_bias:
            raise BertcliError("mlp_fc1_bias is true; bertcli runs NomicBERT's gated layers without it.")
        if self.moe_every_n_layers and self.moe_top_k > self.num_experts:
            raise BertcliError(f"moe_top_k is {self.moe_top_k}; there are {self.num_experts} experts.")

    @cached_property
    def sizes(self) -> dict[str, int]:
        sizes = super().sizes
        return sizes | {"I": sizes["X"] * sizes["F"]}

    @property
    def expert_layers(self) -> tuple[bool, ...]:
        """True for each layer with experts."""
        every = self.moe_every_n_layers
        return tuple(every > 0 and n % every == 1 for n in range(self.num_hidden_layers))

    @property
    def gated_layers(self) -> tuple[bool, ...]:
        """True for each layer with a gated feed-forward layer."""
        return tuple(self.is_gated and not has_experts for has_experts in self.expert_layers)

    @property
    def plain_layers(self) -> tuple[bool, ...]:
        """True for each layer with BERT's feed-forward layer."""
        return tuple(not (self.is_gated or has_experts) for has_experts in self.expert_layers)

    @property
    def idle_parameters(self) -> int:
        idle = (self.num_experts - self.moe_top_k) * 2 * self.intermediate_size * self.hidden_size
        return sum(self.expert_layers) * idle

    @property
    def max_tokens(self) -> int:
        return min(super().max_tokens, TRAINED) if self.ropes[0].rope_type == "default" else super().max_tokens

    @property
    def has_segments(self) -> bool:
        return self.type_vocab_size > 1


# Our path in a layer, and what newer and older files call it.
# In newer and in older files.
NAMES = """
embeddings.norm.*                                     embeddings.LayerNorm.*
                                                      emb_ln.*
encoder.layers.#.attention.{query,key,value}.*        layers.#.self_attn.{q,k,v}_proj.*
                                                      encoder.layers.#.attn.Wqkv.*[{0,1,2}/3]
encoder.layers.#.attention.output.*                   layers.#.self_attn.o_proj.*
                                                      encoder.layers.#.attn.out_proj.*
encoder.layers.#.attention_norm.*                     layers.#.post_attention_layernorm.*
                                                      encoder.layers.#.norm1.*
encoder.layers.#.feed_forward.{gate,intermediate}.*   layers.#.mlp.{up,gate}_proj.*
                                                      encoder.layers.#.mlp.{fc11,fc12}.*
encoder.layers.#.feed_forward.output.*                layers.#.mlp.down_proj.*
                                                      encoder.layers.#.mlp.fc2.*
encoder.layers.#.feed_forward_norm.*                  layers.#.post_mlp_layernorm.*
                                                      encoder.layers.#.norm2.*
encoder.layers.#.plain.{intermediate,output}.*        layers.#.mlp.{fc1,fc2}.*
                                                      encoder.layers.#.mlp.{fc1,fc2}.*
encoder.layers.#.experts.router.*                     layers.#.mlp.router.layer.*
                                                      encoder.layers.#.mlp.router.layer.*
encoder.layers.#.experts.{inner,outer}                encoder.layers.#.mlp.experts.mlp.{w1,w2}
encoder.layers.#.experts.bias                         encoder.layers.#.mlp.experts.bias
mlm.norm.*                                            cls.predictions.transform.layer_norm.*
{classifier,token_classifier}.output.*                classifier.*
"""
FAMILY = Family(
    types={"nomic_bert": "NomicBert"},
    config=NomicBertConfig,
    network=NomicBert,
    prefixes=("nomic_bert.",),
    names=(NAMES, EMBEDDINGS, POOLER, MLM),
    base_pooler=False,
    custom_code=True,
    variants={
        "nomic-embed-text": {},
        "nomic-embed-text-v2-moe": {
            "vocab_size": 250048,
            "type_vocab_size": 1,
            "layer_norm_eps": 1e-5,
            "hidden_act": "gelu",
            "qkv_proj_bias": True,
            "mlp_fc1_bias": True,
            "mlp_fc2_bias": True,
            "is_gated": False,
            "moe_every_n_layers": 2,
            "moe_top_k": 2,
            "pad_token_id": 1,
            "rope_parameters": {GLOBAL: Rope(rope_theta=10000.0)},
        },
    },
    prompts=("search_query: ", "search_document: "),
)
# The names of these modules' steps in `trace`; analysis/trace/step_names.py reads them by this constant's name.
STEP_NAMES = """
Embeddings
  Embeddings.token embed   | a) token embedding     | Token embeddings   | E_tok
  Embeddings.segment embed | b) segment embedding   | Segment embeddings | E_type
  Embeddings.segment add   | c) sum                 | Embedding sum
  Embeddings.norm norm     | d) layer normalization | Embedding output
2 Add & norm
  NomicLayer.attention add          | a) residual            | Sub-layer sum
  NomicLayer.attention_norm norm    | b) layer normalization | Norm 1 output
3 Feed-forward
  Plain.intermediate linear         | a) linear 1 + {act}    | Intermediate        | W_1
  Plain.output linear               | b) linear 2            | FFN output          | W_2
3 Experts
  Experts.router linear             | a) router              | Router logits       | R
  Experts.router softmax            | b) softmax             | Shares
  Experts.inner experts             | c) experts + {act}     | FFN output          | W, V
4 Add & norm
  NomicLayer.feed_forward add       | a) residual            | Sub-layer sum 2
  NomicLayer.plain add              | a) residual            | Sub-layer sum 2
  NomicLayer.experts add            | a) residual            | Sub-layer sum 2
  NomicLayer.feed_forward_norm norm | b) layer normalization | Encoder layer output
"""
