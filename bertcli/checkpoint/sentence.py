"""What a sentence-transformers folder specifies besides the network: pooling, what follows it, prompts, scores.

Source of the files' meaning: the modules of sentence-transformers 2 to 6.
"""

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from bertcli.checkpoint.folder import Folder
from bertcli.checkpoint.modules import (
    MASK,
    MODEL_FILE,
    MODULES_FILE,
    PROJECTION,
    is_late,
    is_routed,
    kinds_of,
    modules_known,
    of_pylate,
    read_modules,
)
from bertcli.checkpoint.prompts import read_prompts
from bertcli.checkpoint.tensors import open_tensors
from bertcli.checkpoint.transformer import read_transformer
from bertcli.checkpoint.untrusted import JsonSettings, unusable
from bertcli.engine.seam import Array
from bertcli.errors import BertcliError, check_choice, shown
from bertcli.network.after_pooling import Dense, LayerNorm

if TYPE_CHECKING:
    from bertcli.checkpoint.late import LateInteraction

logger = logging.getLogger("bertcli")

# In the order in which the modes flagged in older folders are concatenated.
FLAGS = {
    "pooling_mode_cls_token": "cls", "pooling_mode_max_tokens": "max", "pooling_mode_mean_tokens": "mean",
    "pooling_mode_mean_sqrt_len_tokens": "mean_sqrt_len", "pooling_mode_weightedmean_tokens": "weightedmean",
    "pooling_mode_lasttoken": "lasttoken",
}  # fmt: skip
MODES = tuple(FLAGS.values())
CROSS_ENCODER_ACTIVATIONS = {"Identity": "identity", "Sigmoid": "sigmoid", "Tanh": "tanh"}  # of its logits
ACTIVATIONS = {"Identity": "identity", "Tanh": "tanh", "ReLU": "relu", "GELU": "gelu", "SiLU": "silu"}

Similarity = Literal["cosine", "dot", "euclidean", "manhattan"]
SENTENCE = "sentence_embedding"  # what modules give
SCORES = "scores"  # what those of a cross-encoder give

UNSPECIFIED = "since the checkpoint specifies no pooling"
UNASKED = "but nobody asked the Hub whether the model says otherwise"


class SparsePooling(NamedTuple):
    """SPLADE: a text's weight of each vocabulary entry is the `max` or the `sum` over its tokens' logits.

    The logits first go through ln(1 + relu(x)) (`relu`), or through that and once more ln(1 + x) (`log1p_relu`).
    """

    strategy: str = "max"
    activation: str = "relu"
    most: int | None = None  # weights that are kept, the largest


class LogitScore(NamedTuple):
    """A pair's logit: that of the next token being `true`, less that of its being `false`, if one is named."""

    true: int
    false: int | None


class SentenceConfig(NamedTuple):
    """How token vectors become a sentence vector: pooled (several modes: concatenated), `dense` in turn, normalized.

    `pooling` is empty if the folder does not specify it; `reason` tells the user the choice and where it comes from.
    Only `truncate_dim` numbers of the result are kept; None keeps all. `sparse` is set for a model of sparse vectors.
    `prompt` is prepended to every text unless another of `prompts` is asked for; without `include_prompt` its tokens
    are left out of the pooling.
    A cross-encoder made of modules has `scores` in place of `dense`: the layers from the pooled vector of a pair to its
    logits; or `next_token`, which takes them from those of the next token. `routed`: it is the route for documents of a
    Router. `similarity` is what compares vectors. `late` is set for a late-interaction model, of which `dense`
    and `normalize` are for the vectors of tokens, and `prompt` is that of documents.
    """

    pooling: tuple[str, ...] = ()
    normalize: bool = False
    dense: tuple[Dense, ...] = ()
    reason: str = f"mean, {UNSPECIFIED}"
    prompts: Mapping[str, str] = {}
    prompt: str = ""
    include_prompt: bool = True
    truncate_dim: int | None = None
    sparse: SparsePooling | None = None
    scores: tuple[Dense | LayerNorm, ...] = ()
    next_token: LogitScore | None = None
    routed: bool = False
    similarity: str = "cosine"
    late: "LateInteraction | None" = None

    @property
    def compared(self) -> str:
        """What compares vectors of whole texts; BertcliError for what sentence-transformers does not have."""
        how = "cosine" if self.sparse or self.late else self.similarity
        check_choice("similarity", how, Similarity)
        return how

    @property
    def ranks(self) -> bool:
        """Whether modules give the scores of pairs, and not a classifier of the network."""
        return bool(self.scores) or self.next_token is not None


def read_sentence_config(folder: Folder) -> SentenceConfig:
    """What the folder's sentence-transformers files say; the defaults if there are none.

    Errors: BertcliError naming the file, if it is damaged, has a module or mode that bertcli does not support, or sizes
    that do not match.
    """
    prompts, prompt = read_prompts(folder)
    task, late = read_transformer(folder).task, read_late(folder)
    if late is not None:
        prompts = {**prompts, "query": late.query.prompt, "document": late.document.prompt}
        prompt = late.document.prompt
    sentence = SentenceConfig(
        reason="mean, " + (UNSPECIFIED if modules_known(folder) else UNASKED),
        normalize=late is not None and MASK not in kinds_of(folder),
        prompts=prompts,
        prompt=prompt,
        truncate_dim=folder.optional(MODEL_FILE).positive("truncate_dim"),
        routed=is_routed(folder),
        late=late,
    )
    layers: list[Dense | LayerNorm] = []
    size, output = None, ""
    input_name = SENTENCE if late is None else "token_embeddings"
    for module in read_modules(folder):
        at = folder.within(module.path)
        if module.kind == "Pooling":
            settings = at.object("config.json")
            modes, size = _read_pooling(settings)
            sentence = sentence._replace(
                pooling=modes,
                include_prompt=settings.flag("include_prompt", True),
                reason=f"{' + '.join(modes)}, from {module.path}/config.json",
            )
        elif module.kind == "StaticEmbedding":
            sentence = sentence._replace(pooling=("mean",), reason="mean of the rows of a static model's table")
        elif module.kind == "SpladePooling":
            sentence = sentence._replace(sparse=_read_sparse(at, folder))
        elif module.kind == "LogitScore":
            sentence = sentence._replace(next_token=_read_logit_score(at))
        elif module.kind == "Dense":
            dense, output = _read_dense(at, size, input_name)
            size = len(dense.weight)
            layers.append(dense)
        elif module.kind == "LayerNorm":
            layers.append(_read_norm(at, size))
        elif module.kind == "Normalize":
            at.optional("config.json").one_of("module_input_name", (input_name,))
            sentence = sentence._replace(normalize=True)
    similarity = folder.optional(MODEL_FILE).get("similarity_fn_name")
    if similarity is not None:
        sentence = sentence._replace(similarity=shown(similarity).strip("'"))
    elif sentence.sparse is not None:
        sentence = sentence._replace(similarity="dot")
    tasks = {"text-generation": sentence.next_token is not None}  # whose logits no other module reads
    if task:
        tasks["fill-mask"] = sentence.sparse is not None
    if any((task == name) != wanted for name, wanted in tasks.items()):
        raise unusable(
            folder.file(MODULES_FILE), f"lists modules that do not go with the transformer_task {shown(task)}"
        )
    if output == SCORES:
        return sentence._replace(scores=tuple(layers))
    if late is not None and not kinds_of(folder):
        from bertcli.checkpoint.late import METADATA

        layers = [_projection(folder)]
        if not folder.file(METADATA).exists() and not of_pylate(folder.optional(MODEL_FILE)):
            cut = "documents are cut at the model's limit"
            logger.info("%s is absent: queries have %d tokens, as ColBERT's; %s.", METADATA, late.query.length, cut)
    dense_layers = tuple(layer for layer in layers if isinstance(layer, Dense))
    if len(dense_layers) < len(layers):
        raise unusable(folder.file(MODULES_FILE), "lists a LayerNorm, which only a cross-encoder may have")
    return sentence._replace(dense=dense_layers)


def read_late(folder: Folder) -> "LateInteraction | None":
    """How a late-interaction model reads queries and documents; None for any other model."""
    if not is_late(folder):
        return None
    from bertcli.checkpoint.late import late_interaction  # few checkpoints are of that kind

    return late_interaction(folder)


def read_cross_encoder(folder: Folder) -> str:
    """What the logit of a cross-encoder with one label goes through: "identity", "sigmoid" or "tanh".

    Named by config_sentence_transformers.json, else by config.json in one of two places; else the sigmoid.
    Errors: BertcliError naming the file, for any other class than these three of torch.nn.
    """
    config = folder.object("config.json")
    nested = config.get("sentence_transformers")
    for name, path in (
        (MODEL_FILE, folder.optional(MODEL_FILE).get("activation_fn")),
        ("config.json", nested.get("activation_fn") if isinstance(nested, dict) else None),
        ("config.json", config.get("sbert_ce_default_activation_function")),
    ):
        if path is not None:
            return _activation(path, CROSS_ENCODER_ACTIVATIONS, "asks for the activation", folder.file(name))
    return "sigmoid"


def _read_pooling(config: JsonSettings) -> tuple[tuple[str, ...], int | None]:
    """The modes in the order of their concatenation, and the length of the result if the file states it."""
    modes = config.get("pooling_mode")
    if modes is None:
        modes = [mode for key, mode in FLAGS.items() if config.flag(key, False)] or ["mean"]
    modes = [modes] if isinstance(modes, str) else modes
    if not isinstance(modes, list) or not modes:
        raise BertcliError(f"{config.file} has the pooling_mode {shown(modes)}: fetch the model again.")
    modes = ["mean_sqrt_len" if mode == "mean_sqrt_len_tokens" else mode for mode in modes]
    for mode in modes:
        if mode not in MODES:
            raise unusable(config.file, f"asks for the pooling {shown(mode)}; bertcli supports {', '.join(MODES)}")
    size = config.positive("embedding_dimension") or config.positive("word_embedding_dimension")
    return tuple(modes), size and size * len(modes)


def _read_sparse(at: Folder, folder: Folder) -> SparsePooling:
    config = at.object("config.json")
    return SparsePooling(
        config.one_of("pooling_strategy", ("max", "sum")),
        config.one_of("activation_function", ("relu", "log1p_relu")),
        folder.optional(MODEL_FILE).positive("max_active_dims"),
    )


def _read_logit_score(at: Folder) -> LogitScore:
    config = at.object("config.json")
    config.one_of("module_input_name", ("causal_logits",))
    true, false = (config.get(name) for name in ("true_token_id", "false_token_id"))
    if type(true) is not int or not (false is None or type(false) is int) or min(true, false or 0) < 0:
        raise config.refused("true_token_id", f" and the false_token_id {shown(false)}, not two ids")
    return LogitScore(true, false)


def _read_dense(at: Folder, size: int | None, input_name: str) -> tuple[Dense, str]:
    """The layer in a Dense module's folder, and what it gives; `size`: of its input, if known.

    input_name: what sentence-transformers calls its input.
    """
    config = at.object("config.json")
    config.one_of("module_input_name", (input_name,))
    output = config.one_of("module_output_name", (input_name, SCORES) if input_name == SENTENCE else (input_name,))
    name = config.get("activation_function", "torch.nn.modules.activation.Tanh")
    activation = _activation(name, ACTIVATIONS, "has the activation_function", config.file)
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


def _projection(folder: Folder) -> Dense:
    """The layer of one of Stanford's models, whose tensor stands beside those of the network."""
    tensors, width = open_tensors(folder), folder.object("config.json").get("hidden_size", 768)
    if PROJECTION not in tensors:
        raise BertcliError(f"{folder.path} lacks tensor {PROJECTION}: fetch the model again.")
    tensor = tensors[PROJECTION]
    if len(tensor.shape) != 2 or tensor.shape[1] != width:
        raise BertcliError(
            f"{tensor.file} has tensor {PROJECTION} of shape {tensor.shape}, but hidden_size is {width}."
        )
    return Dense(tensor.float32(), None, "identity")


def _read_norm(at: Folder, size: int | None) -> LayerNorm:
    """The layer in a LayerNorm module's folder."""
    shape = (at.object("config.json").positive("dimension"),)
    arrays = _arrays(at, {"norm.weight": shape, "norm.bias": shape}, size)
    return LayerNorm(arrays["norm.weight"], arrays["norm.bias"])


def _arrays(at: Folder, shapes: Mapping[str, tuple[Any, ...]], size: int | None) -> dict[str, Array]:
    """The tensors in a module's folder, of the shapes that its config.json gives them.

    The first ends with the length of the input vectors, which the previous module gives as `size`, if it is known.
    """
    tensors, file = open_tensors(at), at.file("config.json")
    for name, shape in shapes.items():
        if name not in tensors:
            raise BertcliError(f"{at.path} lacks tensor {name}: fetch the model again.")
        tensor = tensors[name]
        if tensor.shape != shape:
            raise BertcliError(f"{tensor.file} has tensor {name} of shape {tensor.shape}; {file} says {shown(shape)}.")
    width = next(iter(shapes.values()))[-1]
    if size not in (None, width):
        raise BertcliError(f"{file} takes vectors of length {width}, but the previous module gives {size}.")
    return {name: tensors[name].float32() for name in shapes}


def _activation(path: Any, names: Mapping[str, str], what: str, file: Path) -> str:
    """The name of an activation, from the path of its class in torch.nn."""
    package, _, name = path.rpartition(".") if isinstance(path, str) else ("", "", "")
    if not f"{package}.".startswith("torch.nn.") or name not in names:
        raise unusable(file, f"{what} {shown(path)}; bertcli supports torch's {', '.join(names)}")
    return names[name]
