"""The Dense layers that some sentence-transformers models apply after pooling."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bertcli.errors import BertcliError
from bertcli.ops import linear
from bertcli.parts import Array, Module
from bertcli.tensors import open_tensors
from bertcli.tree import parameter, setting
from bertcli.untrusted import read_object, shown

ACTIVATIONS = {"Identity": "identity", "Tanh": "tanh", "ReLU": "relu", "GELU": "gelu", "SiLU": "silu"}


@dataclass(frozen=True, eq=False)
class Dense(Module):
    """activation(x · weightᵀ + bias): bias may be None, activation is one of ACTIVATIONS' values."""

    weight: Array = parameter("outputs inputs")
    bias: Array | None = parameter("outputs")
    activation: str = setting("activation_function")

    def forward(self, x: Array) -> Array:
        """Pooled vectors [batch, in] -> [batch, out]"""
        return linear(x, self.weight, self.bias, activation=None if self.activation == "identity" else self.activation)


def read_dense(file: Path, size: int | None) -> Dense:
    """The layer stored next to a Dense module's config.json; `size` is the length of its input, if known."""
    config = read_object(file)
    if read_flag(config, "use_residual", False, file):
        raise unusable(file, "asks for use_residual, which bertcli does not support")
    for key in ("module_input_name", "module_output_name"):
        if config.get(key) not in (None, "sentence_embedding"):
            raise unusable(file, f"has the {key} {shown(config[key])}; bertcli only supports sentence_embedding")
    name = config.get("activation_function", "torch.nn.modules.activation.Tanh")
    package, _, activation = name.rpartition(".") if isinstance(name, str) else ("", "", "")
    if not package.startswith("torch.nn.") or activation not in ACTIVATIONS:
        known = ", ".join(ACTIVATIONS)
        raise unusable(file, f"has the activation_function {shown(name)}; bertcli supports torch's {known}")
    tensors = open_tensors(file.parent)
    shape = (config.get("out_features"), config.get("in_features"))
    wanted: dict[str, tuple[Any, ...]] = {"linear.weight": shape}
    if read_flag(config, "bias", True, file):
        wanted["linear.bias"] = shape[:1]
    for tensor, expected in wanted.items():
        if tensor not in tensors:
            raise BertcliError(f"{file.parent} lacks tensor {tensor}: fetch the model again.")
        if tensors[tensor].shape != expected:
            found = tensors[tensor]
            raise BertcliError(
                f"{found.file} has tensor {tensor} of shape {found.shape}; {file} says {shown(expected)}."
            )
    if size not in (None, shape[1]):
        raise BertcliError(f"{file} takes vectors of length {shape[1]}, but the previous module gives {size}.")
    bias = tensors["linear.bias"].float32() if "linear.bias" in wanted else None
    return Dense(tensors["linear.weight"].float32(), bias, ACTIVATIONS[activation])


def unusable(file: Path, what: str) -> BertcliError:
    """What to raise for a module that cannot be applied."""
    return BertcliError(f"{file} {what}: use another model.")


def read_flag(config: dict[str, Any], key: str, default: bool, file: Path) -> bool:
    """A setting that is true or false."""
    value = config.get(key, default)
    if not isinstance(value, bool):
        raise BertcliError(f"{file} has the {key} {shown(value)}: set it to true or false.")
    return value
