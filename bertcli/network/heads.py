"""What every family's root is, hidden states from a batch, and the heads that turn them into predictions."""

from collections.abc import Iterator
from typing import Any, ClassVar, NamedTuple

from bertcli.engine.packing import Packed
from bertcli.network.encoder import LayerNorm, Linear
from bertcli.network.module import Module, fixed, optional_parts, parameter, part, setting
from bertcli.network.ops import gather, linear
from bertcli.tracing.dispatch import Array, Integers


class Head(NamedTuple):
    """What is known of a prediction head by its name.

    title      its name in messages
    classes    how the names of transformers' classes with this head end
    of_tokens  it has an output for every token
    exclusive  a checkpoint has one of these heads, whose tensors may have equal names
    command    what only a model with this head can do
    type       shown for it where it has the class of another head
    """

    title: str
    classes: tuple[str, ...]
    of_tokens: bool = False
    exclusive: bool = False
    command: str = ""
    type: str = ""


# A head that a kind or a plugin adds to a family need not be here.
HEADS = {
    "pooler": Head("pooler", ("Model",)),
    "mlm": Head("masked-language-model head (mlm)", ("ForMaskedLM", "ForPreTraining"), of_tokens=True),
    "lm": Head("language-model head (lm)", ("ForCausalLM",), of_tokens=True),
    "rtd": Head("head that finds replaced tokens (rtd)", ("ForPreTraining",), of_tokens=True),
    "nsp": Head("next-sentence head (nsp)", ("ForPreTraining", "ForNextSentencePrediction"), type="NextSentence"),
    "sop": Head("sentence-order head (sop)", ("ForPreTraining",), type="SentenceOrder"),
    "classifier": Head("classifier head", ("ForSequenceClassification",), exclusive=True),
    "token_classifier": Head(
        "head that labels tokens (token_classifier)",
        ("ForTokenClassification",),
        of_tokens=True,
        exclusive=True,
        command="tag",
    ),
    "multiple_choice": Head(
        "multiple-choice head (multiple_choice)",
        ("ForMultipleChoice",),
        exclusive=True,
        command="classify --choices",
        type="MultipleChoice",
    ),
    "qa": Head(
        "head that finds answers (qa)",
        ("ForQuestionAnswering",),
        of_tokens=True,
        exclusive=True,
        command="answer",
        type="QuestionAnswering",
    ),
}
OF_TOKENS = frozenset(name for name, head in HEADS.items() if head.of_tokens)


class Network(Module, abstract=True):
    """Token ids to hidden states, with heads to apply to them.

    A family's root has the parts `embeddings` and `encoder`, and its heads as optional parts.
    """

    embeddings: Any = None
    encoder: Any = None
    pooler: Any = None  # of the heads, a family declares those it has
    mlm: Any = None
    lm: Any = None
    pooled: ClassVar[frozenset[str]] = frozenset()  # heads that read what the pooler makes of the first token

    def forward(self, batch: Packed, rows: Integers | None = None) -> Array:
        """Hidden states [token, hidden] of the last layer; with `rows` (ascending packed rows) only those."""
        hidden: Array = self.encoder(self.embeddings(batch), batch, rows)
        return hidden

    def states(self, batch: Packed) -> Iterator[Array]:
        """Hidden states after the embeddings and after each layer; a layer runs only when its output is asked for."""
        states: Iterator[Array] = self.encoder.states(self.embeddings(batch), batch)
        return states

    def final_norm(self, state: Array) -> Array:
        """What a layer's state goes through before a head reads it."""
        return state

    @property
    def heads(self) -> tuple[str, ...]:
        """The heads there are."""
        return tuple(head for head in optional_parts(type(self)) if getattr(self, head) is not None)

    def input_rows(self, head: str, batch: Packed) -> Integers | None:
        """The packed rows of the hidden states that a head reads; None: it reads all."""
        return None if head in OF_TOKENS else batch.first

    def predict(self, head: str, hidden: Array, batch: Packed) -> Array:
        """A head's logits from the hidden states that it reads.

        mlm and lm [row, vocabulary] for whatever rows are given; token_classifier [token, label]; qa [token, 2], the
        start and the end of an answer; rtd [token, 1]; nsp and sop [batch, 2]; classifier [batch, label];
        multiple_choice [batch, 1]; pooler [batch, hidden], which are not logits.
        """
        if head in self.pooled:
            hidden = self.pooler(hidden)
        logits: Array = getattr(self, head)(hidden)
        return logits


def outputs(network: Network, batch: Packed) -> dict[str, Array]:
    """A whole pass: the encoder, then every head the model has; the pooler runs once for all heads that read it.

    By name: hidden [token, hidden]; pooled [batch, hidden], if there is a pooler; and the logits of each other head.
    """
    hidden = network(batch)
    results: dict[str, Array] = {"hidden": hidden}
    for head in network.heads:
        if head in network.pooled:
            results[head] = getattr(network, head)(results["pooled"])
            continue
        rows = network.input_rows(head, batch)
        logits = network.predict(head, hidden if rows is None else gather(hidden, rows), batch)
        results["pooled" if head == "pooler" else head] = logits
    return results


class Pooler(Module):
    """tanh(X[CLS] W_pᵀ + b_p)"""

    dense: Linear = part(outputs="H", inputs="H")

    def forward(self, first: Array) -> Array:
        """[CLS] rows [batch, hidden] -> [batch, hidden]"""
        return self.dense(first, activation="tanh")


class MaskedLM(Module):
    """LayerNorm(act(x Wᵀ + b)) E_tokᵀ + bias, as wide as the embeddings (features)"""

    transform: Linear = part(outputs="features", inputs="H")
    norm: LayerNorm = part(features="features")
    decoder: Array = parameter("V features", tied="embeddings.token")
    bias: Array = parameter("V")
    activation: str = setting("hidden_act")

    def forward(self, x: Array) -> Array:
        """Hidden states [token, hidden] -> logits [token, vocabulary]"""
        return linear(self.norm(self.transform(x, activation=self.activation)), self.decoder, self.bias)


class LinearPrediction(Module):
    """Logits by one linear layer"""

    output: Linear = part(outputs="C", inputs="H")

    def forward(self, x: Array) -> Array:
        """Pooled vectors or hidden states [row, hidden] -> logits [row, output]"""
        return self.output(x)


class Classifier(LinearPrediction):
    """One logit per label from the pooled vector [batch, label]"""


class TwoLayerPrediction(Module):
    """Logits by two linear layers, with an activation between them"""

    dense: Linear = part(outputs="H", inputs="H")
    output: Linear = part(outputs="C", inputs="H")
    activation: str = fixed("tanh")

    def forward(self, x: Array) -> Array:
        """Hidden states [row, hidden] -> logits [row, output]"""
        return self.output(self.dense(x, activation=self.activation))


class FirstTokenClassifier(TwoLayerPrediction):
    """act(X[first] Wᵀ + b) W_cᵀ + b_c: what other families have instead of BERT's pooler and classifier"""


class TokenClassifier(LinearPrediction):
    """One logit per label from every hidden state [token, label]"""
