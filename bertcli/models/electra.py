"""ELECTRA (Clark et al. 2020): BERT whose embeddings may be narrower than its layers, without a pooler.

Two models come out of its training: a generator, which fills masks, and a discriminator, which finds replaced tokens.

Two things are RoBERTa's, not BERT's: MaskedLM, the generator's head, and FINE_TUNED, the names of heads' tensors.

This file is the example of a family. All that one says is written in five small languages:

    axes         the letters of shapes: V, E, H, …                              network/axes.py
    fields       which arrays and modules a module has: parameter, part, …      network/module.py
    keys         which keys of config.json are read, with which values          models/config.py
    names        which tensor of a file a parameter is                          models/tensor_names.py
    step names   what `trace` calls the ops of these modules                    analysis/trace/step_names.py

A family computes as soon as it has axes, fields, keys and names, with no head but those that its files have. Without
STEP_NAMES its steps are called as their ops; `variants` may be empty, `hints` is left out by most.
"""

from typing import ClassVar

from bertcli.engine.packing import Packed
from bertcli.models.bert import ATTENTION, EMBEDDINGS, LAYER, BertConfig
from bertcli.models.config import choice, count, layers, sized
from bertcli.models.registry import Family
from bertcli.models.roberta import FINE_TUNED, MaskedLM
from bertcli.network import encoder, heads
from bertcli.network.encoder import Encoder, LayerNorm, Linear
from bertcli.network.heads import Network, TokenClassifier
from bertcli.network.module import fixed, parameter, part, setting
from bertcli.tracing.dispatch import Array


# Axes and fields: a module is what it consists of, and `forward`. A letter is the size of an axis, which a key of the
# configuration says below. LayerNorm calls the axis that it norms "features": `features="E"` says that here it is E. A
# name that BERT's module has keeps its meaning, so that most of a family is inherited.
class Embeddings(encoder.Embeddings):
    """BERT's with E numbers a token, then projected to H where that is another number"""

    token: Array = parameter("V E")
    segment: Array = parameter("T E")
    position: Array = parameter("P E")
    norm: LayerNorm = part(features="E")
    # There only if this property of the configuration is true.
    projection: Linear | None = part(when="has_projection", outputs="H", inputs="E")

    def forward(self, batch: Packed) -> Array:
        """Token ids [token] -> [token, hidden]"""
        x = super().forward(batch)
        return x if self.projection is None else self.projection(x)


# The layers are those of the classifier below; the discriminator applies them to every token.
class ReplacedTokens(heads.TwoLayerPrediction):
    """act(X Wᵀ + b) W_rᵀ + b_r: a logit for every token; above 0, it takes the token for a replaced one"""

    activation: str = setting("hidden_act")


class Classifier(heads.FirstTokenClassifier):
    """gelu(X[CLS] Wᵀ + b) W_cᵀ + b_c"""

    activation: str = fixed("gelu")


# The root: embeddings, encoder, and every head that a file of this family may have. A field `X | None` without `when`
# is a head, built if a checkpoint has it: models/registry.py tells which, by the names of classes and tensors.
class Electra(Network):
    """Token ids to hidden states, with heads to apply to them"""

    embeddings: Embeddings = part()
    encoder: Encoder = part()
    mlm: MaskedLM | None = part(features="E")  # the generator's
    rtd: ReplacedTokens | None = part(C="1")  # the discriminator's
    classifier: Classifier | None = part()
    token_classifier: TokenClassifier | None = part()
    qa: TokenClassifier | None = part(C="2")  # that an answer starts here, and that it ends
    multiple_choice: Classifier | None = part(C="1")


# Keys: the fields have config.json's own names and the defaults of the family's code (transformers'). `count` gives a
# letter its size; `choice` lists what runs, and all else is refused by name, for all models or for one head's.
class ElectraConfig(BertConfig):
    """An ELECTRA configuration with config.json's own keys; the defaults are those of ELECTRA's code."""

    hidden_size: int = count(256, "H", needed=True)
    num_hidden_layers: int = layers(12)
    num_attention_heads: int = count(4, "A", needed=True)
    intermediate_size: int = count(1024, "F", needed=True)
    embedding_size: int = count(128, "E")
    summary_type: str = choice("first", heads=("multiple_choice",))
    summary_use_proj: bool = choice(True, heads=("multiple_choice",))
    summary_activation: str = choice("gelu", heads=("multiple_choice",))
    model_type: str = "electra"

    title: ClassVar[str] = "ELECTRA"


# Step names: `Class.field op | operation | result | weight`, below the name of a group. Only for classes of this file:
# inherited ones have names. analysis/trace/step_names.py reads them by this constant's name.
STEP_NAMES = """
Embeddings
  Embeddings.projection linear | g) projection     | Encoder input        | W_e
Replaced tokens
  ReplacedTokens.dense linear  | a) linear + {act} | Transform            | W
  ReplacedTokens.output linear | b) linear         | Replaced-token logit | W_r
"""

# Names: our path, then the tensor's name in files, without the family's prefix. Only what differs from BERT's tables,
# which FAMILY lists beside this one.
NAMES = """
embeddings.projection.*   embeddings_project.*
mlm.transform.*           generator_predictions.dense.*
mlm.norm.*                generator_predictions.LayerNorm.*
mlm.decoder               generator_lm_head.weight
mlm.bias                  generator_lm_head.bias
rtd.dense.*               discriminator_predictions.dense.*
rtd.output.*              discriminator_predictions.dense_prediction.*
multiple_choice.dense.*   sequence_summary.summary.*
"""
# What the registry finds this file by. `types`: each model_type, and what transformers' classes for it begin with.
FAMILY = Family(
    types={"electra": "Electra"},
    config=ElectraConfig,
    network=Electra,
    prefixes=("electra.",),
    names=(EMBEDDINGS, ATTENTION, LAYER, NAMES, FINE_TUNED),
    hints={"mlm": "Of ELECTRA's two models only the generator fills masks, as in -m google/electra-small-generator."},
    variants={
        "electra-small": sized(12, 256),
        "electra-base": sized(12, 768, embedding_size=768),
        "electra-large": sized(24, 1024, embedding_size=1024),
    },
)
