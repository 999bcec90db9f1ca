"""Layers after the pooling of a sentence model, equal to torch.nn's. kinds/layers.py reads them."""

from bertcli.network.module import Module, parameter, setting
from bertcli.network.ops import linear, norm
from bertcli.tracing.dispatch import Array


class Dense(Module):
    """activation(x · weightᵀ + bias): bias may be None.

    activation: identity, or a name of ACTIVATIONS in engine/kernels.py.
    """

    weight: Array = parameter("outputs inputs")
    bias: Array | None = parameter("outputs")
    activation: str = setting("activation_function")

    def forward(self, x: Array) -> Array:
        """Pooled vectors [batch, in] -> [batch, out]"""
        return linear(x, self.weight, self.bias, activation=None if self.activation == "identity" else self.activation)


class LayerNorm(Module):
    """(x - mean) / sqrt(variance + 1e-5) · weight + bias, as torch.nn.LayerNorm has it."""

    weight: Array = parameter("inputs")
    bias: Array = parameter("inputs")

    def forward(self, x: Array) -> Array:
        """Pooled vectors [batch, in] -> the same, normalized"""
        return norm(x, self.weight, self.bias, eps=1e-5)
