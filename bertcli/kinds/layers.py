"""Read rare modules of sentence-transformers folders: Dense, LayerNorm, a cross-encoder's activation.

network/after_pooling.py computes Dense and LayerNorm. folder/modules.py checks their order.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from bertcli.errors import BertcliError, quoted
from bertcli.folder.files import Folder, unusable
from bertcli.folder.layout import Layout
from bertcli.folder.modules import SCORES, SENTENCE
from bertcli.folder.prompts import MODEL_FILE
from bertcli.network.after_pooling import Dense, LayerNorm
from bertcli.tracing.dispatch import Array
from bertcli.weights.tensors import open_tensors

# Class in torch.nn -> name here; for the logits of a cross-encoder, and for a Dense layer.
CROSS_ENCODER_ACTIVATIONS = {"Identity": "identity", "Sigmoid": "sigmoid", "Tanh": "tanh"}
MODULE_ACTIVATIONS = {"Identity": "identity", "Tanh": "tanh", "Sigmoid": "sigmoid", "ReLU": "relu", "GELU": "gelu",
               "SiLU": "silu"}  # fmt: skip


def read_dense(at: Folder, size: int | None, input_name: str) -> tuple[Dense, str]:
    """Read a Dense module: the layer, and its module_output_name.

    size: the width of its input, if known. input_name: the module_input_name that it must have.
    """
    config = at.object("config.json")
    config.one_of("module_input_name", (input_name,))
    output = config.one_of("module_output_name", (input_name, SCORES) if input_name == SENTENCE else (input_name,))
    name = config.get("activation_function", "torch.nn.modules.activation.Tanh")
    activation = _activation(name, MODULE_ACTIVATIONS, "has the activation_function", config.file)
    shape = (config.get("out_features"), config.get("in_features"))
    shapes: dict[str, tuple[Any, ...]] = {"linear.weight": shape}
    if config.flag("bias", True):
        shapes["linear.bias"] = shape[:1]
    residual = config.flag("use_residual", False)
    if residual and activation != "identity":
        raise unusable(config.file, "has use_residual with an activation_function; bertcli supports it with Identity")
    if residual and shape[0] != shape[1]:
        shapes["residual.weight"] = shape
    arrays = _arrays(at, shapes, size)
    weight = arrays["linear.weight"]
    if residual:  # W x + x, or W x + R x, are one product
        weight = weight + arrays.get("residual.weight", np.eye(len(weight), dtype=np.float32))
    return Dense(weight, arrays.get("linear.bias"), activation), output


def read_norm(at: Folder, size: int | None) -> LayerNorm:
    """Read a LayerNorm module; `size` is the width of its input, if known."""
    shape = (at.object("config.json").positive("dimension"),)
    arrays = _arrays(at, {"norm.weight": shape, "norm.bias": shape}, size)
    return LayerNorm(arrays["norm.weight"], arrays["norm.bias"])


def _arrays(at: Folder, shapes: Mapping[str, tuple[Any, ...]], size: int | None) -> dict[str, Array]:
    """Read a module's tensors, and check that they have the shapes that its config.json requires.

    The last axis of the first is the width of the input, which must be `size`, the previous module's, if known.
    """
    tensors, file = open_tensors(at), at.file("config.json")
    for name, shape in shapes.items():
        if name not in tensors:
            raise BertcliError(
                f"{at.path} lacks tensor {name}, which {file} requires: they are not of one model, so take both from "
                "the same one."
            )
        tensor = tensors[name]
        if tensor.shape != shape:
            raise BertcliError(
                f"{tensor.file} has tensor {name} of shape {tensor.shape}, but {file} requires {quoted(shape)}: "
                "they are not of one model, so take both from the same one."
            )
    width = next(iter(shapes.values()))[-1]
    if size not in (None, width):
        raise BertcliError(
            f"{file} takes vectors of length {width}, but the module before it gives {size}: use another model."
        )
    return {name: tensors[name].float32() for name in shapes}


def _activation(path: Any, names: Mapping[str, str], what: str, file: Path) -> str:
    """Look up an activation by the path of its class in torch.nn."""
    package, _, name = path.rpartition(".") if isinstance(path, str) else ("", "", "")
    if not f"{package}.".startswith("torch.nn.") or name not in names:
        raise unusable(file, f"{what} {quoted(path)}; bertcli supports torch's {', '.join(names)}")
    return names[name]


def read_pair_activation(layout: Layout | None) -> str:
    """Read the activation for the logit of a cross-encoder with one label: "identity", "sigmoid" or "tanh".

    It is in config_sentence_transformers.json, else under one of two keys of config.json; the default is the sigmoid,
    also of a model without a folder.
    Errors: BertcliError naming the file, for any other class than these three of torch.nn.
    """
    if layout is None:
        return "sigmoid"
    folder = layout.folder
    config = folder.object("config.json")
    nested = config.get("sentence_transformers")
    for name, path in (
        (MODEL_FILE, layout.settings.get("activation_fn")),
        ("config.json", nested.get("activation_fn") if isinstance(nested, dict) else None),
        ("config.json", config.get("sbert_ce_default_activation_function")),
    ):
        if path is not None:
            return _activation(path, CROSS_ENCODER_ACTIVATIONS, "asks for the activation", folder.file(name))
    return "sigmoid"
