"""The heads for pre-training and fine-tuning: modules that turn hidden states into predictions."""

from __future__ import annotations

from bertcli.engine.array import Array
from bertcli.network.encoder import LayerNorm, Linear
from bertcli.network.module import Module, fixed, parameter, part, setting
from bertcli.network.ops import linear


class Pooler(Module):
    """tanh(X[CLS] W_pᵀ + b_p)"""

    dense: Linear = part(outputs="H", inputs="H")

    def forward(self, first: Array) -> Array:
        """[CLS] rows [batch, hidden] -> [batch, hidden]"""
        return self.dense(first, activation="tanh")


class MaskedLM(Module):
    """LayerNorm(act(x Wᵀ + b)) E_tokᵀ + bias"""

    transform: Linear = part(outputs="H", inputs="H")
    norm: LayerNorm = part(features="H")
    decoder: Array = parameter("V H", tied="embeddings.token")
    bias: Array = parameter("V")
    activation: str = setting("hidden_act")

    def forward(self, x: Array) -> Array:
        """Hidden states [token, hidden] -> logits [token, vocabulary]"""
        return linear(self.norm(self.transform(x, activation=self.activation)), self.decoder, self.bias)


class LinearPrediction(Module, abstract=True):
    """Logits by one linear layer"""

    output: Linear

    def forward(self, x: Array) -> Array:
        """Pooled vectors or hidden states [row, hidden] -> logits [row, output]"""
        return self.output(x)


class NextSentence(LinearPrediction):
    """Two logits from the pooled vector [batch, 2]: 0 is next, 1 is not next"""

    output: Linear = part(outputs="2", inputs="H")


class Classifier(LinearPrediction):
    """One logit per label from the pooled vector [batch, label]"""

    output: Linear = part(outputs="C", inputs="H")


class FirstTokenClassifier(Module):
    """act(X[first] Wᵀ + b) W_cᵀ + b_c: what other families have instead of BERT's pooler and classifier"""

    dense: Linear = part(outputs="H", inputs="H")
    output: Linear = part(outputs="C", inputs="H")
    activation: str = fixed("tanh")

    def forward(self, first: Array) -> Array:
        """First rows [batch, hidden] -> logits [batch, label]"""
        return self.output(self.dense(first, activation=self.activation))


class TokenClassifier(LinearPrediction):
    """One logit per label from every hidden state [token, label]"""

    output: Linear = part(outputs="C", inputs="H")


class QuestionAnswering(LinearPrediction):
    """Two logits from every hidden state [token, 2]: 0 that an answer starts here, 1 that it ends here"""

    output: Linear = part(outputs="2", inputs="H")


class MultipleChoice(LinearPrediction):
    """One logit from the pooled vector [batch, 1]: how well this choice fits"""

    output: Linear = part(outputs="1", inputs="H")
