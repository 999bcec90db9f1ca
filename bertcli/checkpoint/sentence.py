"""What a sentence-transformers folder specifies besides the network: pooling, Dense layers, prompts, limits, scores.

`modules.json` lists the modules in order; each has a folder with a config.json. A listed module is applied or refused,
never skipped, and a class that a file names is looked up here, never imported. Source of the files' meaning: the
modules of sentence-transformers 2 to 6.
"""

import logging
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from bertcli.checkpoint.tensors import SINGLE_FILE, open_tensors, weights_file
from bertcli.checkpoint.untrusted import flag, is_plain, positive, read_json, read_object, read_optional, unusable
from bertcli.engine.seam import Array
from bertcli.errors import BertcliError, shown
from bertcli.network.module import Module, parameter, setting
from bertcli.network.ops import linear, norm

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
NETWORKS = ("Transformer", "MLMTransformer", "StaticEmbedding")
MASK = "MultiVectorMask"  # which of a late-interaction model's vectors are scored
MODULES = (*NETWORKS, "Pooling", "SpladePooling", "Dense", "LayerNorm", "Normalize", MASK)
IN_FOLDERS = ("Pooling", "SpladePooling", "Dense", "LayerNorm", MASK)
ORDER = re.compile(
    "Transformer( Pooling( Dense| LayerNorm)*)?( Normalize)*|(MLM)?Transformer SpladePooling"
    "|StaticEmbedding( Dense)*( Normalize)*|Transformer( Dense)*( Normalize)* MultiVectorMask( Normalize)*"
)
PYLATE, STANFORD = "pylate.models.Dense.Dense", "HF_ColBERT"
PROJECTION = "linear.weight"  # of Stanford's models, beside the network's tensors
CROSS_ENCODER_ACTIVATIONS = {"Identity": "identity", "Sigmoid": "sigmoid", "Tanh": "tanh"}  # of its logits
ACTIVATIONS = {"Identity": "identity", "Tanh": "tanh", "ReLU": "relu", "GELU": "gelu", "SiLU": "silu"}

# Where a Transformer module's settings are, by the class that wrote them; the first file that is there counts.
TRANSFORMER_FILES = tuple(
    f"sentence_{kind}_config.json"
    for kind in ("bert", "roberta", "distilbert", "camembert", "albert", "xlm-roberta", "xlnet")
)
MODEL_FILE, ROUTER_FILE = "config_sentence_transformers.json", "router_config.json"
SENTENCE = "sentence_embedding"  # what modules give
SCORES = "scores"  # what those of a cross-encoder give

UNSPECIFIED = "since the checkpoint specifies no pooling"
UNASKED = "but nobody asked the Hub whether the model says otherwise"


class Dense(Module):
    """activation(x · weightᵀ + bias): bias may be None, activation is one of ACTIVATIONS' values."""

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


class SparsePooling(NamedTuple):
    """SPLADE: a text's weight of each vocabulary entry is the `max` or the `sum` over its tokens' logits.

    The logits first go through ln(1 + relu(x)) (`relu`), or through that and once more ln(1 + x) (`log1p_relu`).
    """

    strategy: str = "max"
    activation: str = "relu"
    most: int | None = None  # weights that are kept, the largest


class SentenceConfig(NamedTuple):
    """How token vectors become a sentence vector: pooled (several modes: concatenated), `dense` in turn, normalized.

    `pooling` is empty if the folder does not specify it; `reason` tells the user the choice and where it comes from.
    Only `truncate_dim` numbers of the result are kept; None keeps all. `sparse` is set for a model of sparse vectors.
    `prompt` is prepended to every text unless another of `prompts` is asked for; without `include_prompt` its tokens
    are left out of the pooling.
    A cross-encoder made of modules has `scores` in place of `dense`: the layers from the pooled vector of a pair to its
    logits. `routed`: it is the route for documents of a Router. `late` is set for a late-interaction model, of which
    `dense` and `normalize` are for the vectors of tokens, and `prompt` is that of documents.
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
    routed: bool = False
    late: "LateInteraction | None" = None


class Transformer(NamedTuple):
    """The limit of tokens, which stands in place of the tokenizer's own, and whether texts are lower-cased first.

    `tokenizer` holds settings that stand in place of those in tokenizer_config.json. `task` is what the network is
    opened for, empty where none is named.
    """

    limit: int | None = None
    lower_case: bool = False
    tokenizer: Mapping[str, Any] = {}
    task: str = ""


class _Module(NamedTuple):
    kind: str
    path: str


def read_sentence_config(folder: Path) -> SentenceConfig:
    """What the folder's sentence-transformers files say; the defaults if there are none.

    Errors: BertcliError naming the file, if it is damaged, has a module or mode that bertcli does not support, or sizes
    that do not match.
    """
    prompts, prompt = _read_prompts(folder)
    task, late = read_transformer(folder).task, read_late(folder)
    if late is not None:
        prompts = {**prompts, "query": late.query.prompt, "document": late.document.prompt}
        prompt = late.document.prompt
    sentence = SentenceConfig(
        reason="mean, " + (UNSPECIFIED if modules_known(folder) else UNASKED),
        normalize=late is not None and MASK not in _kinds(folder),
        prompts=prompts,
        prompt=prompt,
        truncate_dim=positive(read_optional(folder / MODEL_FILE), "truncate_dim", folder / MODEL_FILE),
        routed=_routed(folder),
        late=late,
    )
    layers: list[Dense | LayerNorm] = []
    size, output = None, ""
    input_name = SENTENCE if late is None else "token_embeddings"
    for module in _read_modules(folder):
        file = folder / module.path / "config.json"
        if module.kind == "Pooling":
            settings = read_object(file)
            modes, size = _read_pooling(settings, file)
            sentence = sentence._replace(
                pooling=modes,
                include_prompt=flag(settings, "include_prompt", True, file),
                reason=f"{' + '.join(modes)}, from {module.path}/config.json",
            )
        elif module.kind == "StaticEmbedding":
            sentence = sentence._replace(pooling=("mean",), reason="mean of the rows of a static model's table")
        elif module.kind == "SpladePooling":
            sentence = sentence._replace(sparse=_read_sparse(file, folder / MODEL_FILE))
        elif module.kind == "Dense":
            dense, output = _read_dense(file, size, input_name)
            size = len(dense.weight)
            layers.append(dense)
        elif module.kind == "LayerNorm":
            layers.append(_read_norm(file, size))
        elif module.kind == "Normalize":
            _one_of(read_optional(file), "module_input_name", (input_name,), file)
            sentence = sentence._replace(normalize=True)
    if task in ("feature-extraction", "fill-mask") and (task == "fill-mask") != (sentence.sparse is not None):
        raise unusable(folder / "modules.json", f"lists modules that do not go with the transformer_task {shown(task)}")
    if output == SCORES:
        return sentence._replace(scores=tuple(layers))
    if late is not None and not _kinds(folder):
        from bertcli.checkpoint.late import METADATA

        layers = [_projection(folder)]
        if not (folder / METADATA).exists() and not _of_pylate(read_optional(folder / MODEL_FILE)):
            cut = "documents are cut at the model's limit"
            logger.info("%s is absent: queries have %d tokens, as ColBERT's; %s.", METADATA, late.query.length, cut)
    dense_layers = tuple(layer for layer in layers if isinstance(layer, Dense))
    if len(dense_layers) < len(layers):
        raise unusable(folder / "modules.json", "lists a LayerNorm, which only a cross-encoder may have")
    return sentence._replace(dense=dense_layers)


def read_late(folder: Path) -> "LateInteraction | None":
    """How a late-interaction model reads queries and documents; None for any other model."""
    config, kinds = read_optional(folder / MODEL_FILE), _kinds(folder)
    stanford = not kinds and STANFORD in str(read_optional(folder / "config.json").get("architectures"))
    if not stanford and MASK not in kinds and not _of_pylate(config):
        return None
    from bertcli.checkpoint.late import of_modules, of_stanford  # few checkpoints are of that kind

    if stanford:
        return of_stanford(folder)
    files = {module.kind: folder / module.path / "config.json" for module in _read_modules(folder)}
    return of_modules(config, folder / MODEL_FILE, _read_prompts(folder)[0], _transformer_file(folder), files.get(MASK))


def read_limit(folder: Path) -> int | None:
    """The limit that sentence_bert_config.json sets; None if it does not. No other file needs to be valid."""
    return read_transformer(folder).limit


def read_transformer(folder: Path) -> Transformer:
    """What the Transformer module's file says; a static model has none, and without modules.json it does not count."""
    (place, static), file = network_place(folder), _transformer_file(folder)
    if static or file is None or not _entries(folder):
        return Transformer()
    config = read_object(file)
    limit, lower_case = positive(config, "max_seq_length", file), flag(config, "do_lower_case", False, file)
    if config.keys() <= {"max_seq_length", "do_lower_case"}:
        return Transformer(limit, lower_case)
    from bertcli.checkpoint.arguments import read_arguments

    other_limit, tokenizer, task = read_arguments(config, file, read_optional(place / "config.json"))
    return Transformer(other_limit or limit, lower_case, tokenizer, task)


def read_prompt(folder: Path) -> str:
    """The prompt that is prepended to every text."""
    return _read_prompts(folder)[1]


def read_query_prompt(folder: Path) -> str:
    """What a cross-encoder wants before the first text of a pair; nothing for any other model."""
    kind = read_optional(folder / MODEL_FILE).get("model_type")
    return _read_prompts(folder)[1] if kind == "CrossEncoder" else ""


def read_cross_encoder(folder: Path) -> str:
    """What the logit of a cross-encoder with one label goes through: "identity", "sigmoid" or "tanh".

    Named by config_sentence_transformers.json, else by config.json in one of two places; else the sigmoid.
    Errors: BertcliError naming the file, for any other class than these three of torch.nn.
    """
    model_file, config_file = folder / MODEL_FILE, folder / "config.json"
    config = read_object(config_file)
    nested = config.get("sentence_transformers")
    for file, path in (
        (model_file, read_optional(model_file).get("activation_fn")),
        (config_file, nested.get("activation_fn") if isinstance(nested, dict) else None),
        (config_file, config.get("sbert_ce_default_activation_function")),
    ):
        if path is not None:
            return _activation(path, CROSS_ENCODER_ACTIVATIONS, "asks for the activation", file)
    return "sigmoid"


class Place(NamedTuple):
    """Where a network, its configuration and its tokenizer are; `static` if it is nothing but a table of vectors."""

    folder: Path
    static: bool = False


def network_place(folder: Path) -> Place:
    """Where a model's network is: beside modules.json, or in the folder that its first module names."""
    entries = _entries(folder)
    if not entries or _kind(entries[0]) not in NETWORKS:  # whatever else is listed, `read_sentence_config` refuses
        return Place(folder)
    module = _module(entries[0], folder / "modules.json")
    return Place(folder / module.path, module.kind == "StaticEmbedding")


def modules_known(folder: Path) -> bool:
    """Whether it is known that a model has a modules.json, or that it has none.

    transformers does not fetch modules.json. A snapshot in the Hub's cache that lacks it may still have one on the Hub,
    unless the client left the mark that it asked in vain.
    """
    cached = folder.parent.name == "snapshots"
    mark = folder.parents[1] / ".no_exist" / folder.name / "modules.json"
    return not cached or os.path.lexists(folder / "modules.json") or mark.is_file()


def missing_files(folder: Path) -> list[str]:
    """Files of the modules listed in modules.json that the folder lacks, as paths within it."""
    names = []
    for module in _read_modules(folder):
        if module.kind in IN_FOLDERS:
            names.append(f"{module.path}/config.json")
        if module.kind in ("Dense", "LayerNorm") and weights_file(folder / module.path) is None:
            names.append(f"{module.path}/{SINGLE_FILE}")
    return [name for name in names if not (folder / name).is_file()]


# ---------------------------------------------------------------------------------------------------- modules.json


def _entries(folder: Path) -> list[Any]:
    """What modules.json lists; without it, nothing, or what config.json says if it is model2vec's."""
    file = folder / "modules.json"
    if not os.path.lexists(file):  # a link to a file that is gone is an error, as anywhere else
        config_file = folder / "config.json"
        config = read_optional(config_file)
        if config.get("model_type") != "model2vec":
            return []
        normalize = flag(config, "normalize", False, config_file)
        types = ["StaticEmbedding", "Normalize"] if normalize else ["StaticEmbedding"]
        return [{"type": f"sentence_transformers.models.{name}", "path": ""} for name in types]
    modules = read_json(file)
    if not isinstance(modules, list):
        raise BertcliError(f"{file} holds not a list of modules but {shown(modules)}: fetch the model again.")
    return _of_documents(folder, modules) if _routed(folder) else modules


def _routed(folder: Path) -> bool:
    """Whether a model is a Router, which has one network for queries and another for documents."""
    return os.path.lexists(folder / "modules.json") and os.path.lexists(folder / ROUTER_FILE)


def _of_documents(folder: Path, modules: list[Any]) -> list[Any]:
    """The modules of a Router's route for documents, and those that follow it."""
    file = folder / ROUTER_FILE
    config = read_object(file)
    types, structure = config.get("types"), config.get("structure")
    route = structure.get("document") if isinstance(structure, dict) else None
    if not modules or _kind(modules[0]) != "Router" or not isinstance(types, dict) or not isinstance(route, list):
        raise unusable(file, "has no route for documents")
    return [{"type": types.get(name), "path": name} for name in route if isinstance(name, str)] + modules[1:]


def _kinds(folder: Path) -> list[str]:
    """The names of the modules' classes."""
    return [_kind(entry) for entry in _entries(folder)]


def _of_pylate(config: Mapping[str, Any]) -> bool:
    """Whether a model was saved by PyLate, by its config_sentence_transformers.json."""
    return config.get("model_type") == "ColBERT" or "query_prefix" in config


def _read_modules(folder: Path) -> list[_Module]:
    """The modules, in one of the orders of ORDER; empty where none are listed."""
    file, entries = folder / "modules.json", _entries(folder)
    modules = [_module(entry, file) for entry in entries]
    kinds = [module.kind for module in modules]
    masked = MASK in kinds or not _of_pylate(read_optional(folder / MODEL_FILE))
    order = " ".join(kinds if masked else [*kinds, MASK])
    if not ORDER.fullmatch(order) and (kinds or os.path.lexists(file)):
        wanted = "one Transformer, one Pooling, then Dense and Normalize, or one Transformer and SpladePooling"
        raise unusable(file, f"lists the modules {', '.join(kinds)}; bertcli supports {wanted}, in this order")
    return modules


def _module(entry: Any, file: Path) -> _Module:
    kind, path = (entry.get("type"), entry.get("path")) if isinstance(entry, dict) else (None, None)
    if not isinstance(kind, str) or not isinstance(path, str):
        raise BertcliError(f"{file} has an entry without type or path, {shown(entry)}: fetch the model again.")
    name = _kind(entry)
    if name not in MODULES:
        raise unusable(file, f"lists the module {shown(kind)}, which bertcli does not support")
    if path == "." and name in NETWORKS:
        path = ""
    if not is_plain(path):
        raise BertcliError(
            f"{file} has a module in {shown(path)}, which is not a folder next to it: do not use this model."
        )
    if not path and name in IN_FOLDERS:
        raise BertcliError(f"{file} has a {name} without a folder: fetch the model again.")
    return _Module(name, path)


def _kind(entry: Any) -> str:
    """The name of a module's class; empty for a class that is not of sentence-transformers."""
    kind = entry.get("type") if isinstance(entry, dict) else None
    package, _, name = kind.rpartition(".") if isinstance(kind, str) else ("", "", "")
    return name if package.startswith("sentence_transformers.") or kind == PYLATE else ""


def _read_pooling(config: dict[str, Any], file: Path) -> tuple[tuple[str, ...], int | None]:
    """The modes in the order of their concatenation, and the length of the result if the file states it."""
    modes = config.get("pooling_mode")
    if modes is None:
        modes = [mode for key, mode in FLAGS.items() if flag(config, key, False, file)] or ["mean"]
    modes = [modes] if isinstance(modes, str) else modes
    if not isinstance(modes, list) or not modes:
        raise BertcliError(f"{file} has the pooling_mode {shown(modes)}: fetch the model again.")
    modes = ["mean_sqrt_len" if mode == "mean_sqrt_len_tokens" else mode for mode in modes]
    for mode in modes:
        if mode not in MODES:
            raise unusable(file, f"asks for the pooling {shown(mode)}; bertcli supports {', '.join(MODES)}")
    size = positive(config, "embedding_dimension", file) or positive(config, "word_embedding_dimension", file)
    return tuple(modes), size and size * len(modes)


def _read_sparse(file: Path, model_file: Path) -> SparsePooling:
    config = read_object(file)
    return SparsePooling(
        _one_of(config, "pooling_strategy", ("max", "sum"), file),
        _one_of(config, "activation_function", ("relu", "log1p_relu"), file),
        positive(read_optional(model_file), "max_active_dims", model_file),
    )


def _read_dense(file: Path, size: int | None, input_name: str) -> tuple[Dense, str]:
    """The layer stored next to a Dense module's config.json, and what it gives; `size`: of its input, if known.

    input_name: what sentence-transformers calls its input.
    """
    config = read_object(file)
    _one_of(config, "module_input_name", (input_name,), file)
    outputs = (input_name, SCORES) if input_name == SENTENCE else (input_name,)
    output = _one_of(config, "module_output_name", outputs, file)
    name = config.get("activation_function", "torch.nn.modules.activation.Tanh")
    activation = _activation(name, ACTIVATIONS, "has the activation_function", file)
    shape = (config.get("out_features"), config.get("in_features"))
    shapes: dict[str, tuple[Any, ...]] = {"linear.weight": shape}
    if flag(config, "bias", True, file):
        shapes["linear.bias"] = shape[:1]
    residual = flag(config, "use_residual", False, file)
    if residual and activation != "identity":
        raise unusable(file, "has use_residual with an activation_function; bertcli supports it with Identity")
    if residual and shape[0] != shape[1]:
        shapes["residual.weight"] = shape
    arrays = _arrays(file, shapes, size)
    weight = arrays["linear.weight"]
    if residual:  # W x + x, or W x + R x, are one product
        weight = weight + arrays.get("residual.weight", np.eye(len(weight), dtype=np.float32))
    return Dense(weight, arrays.get("linear.bias"), activation), output


def _projection(folder: Path) -> Dense:
    """The layer of one of Stanford's models, whose tensor stands beside those of the network."""
    tensors, width = open_tensors(folder), read_object(folder / "config.json").get("hidden_size", 768)
    if PROJECTION not in tensors:
        raise BertcliError(f"{folder} lacks tensor {PROJECTION}: fetch the model again.")
    tensor = tensors[PROJECTION]
    if len(tensor.shape) != 2 or tensor.shape[1] != width:
        raise BertcliError(
            f"{tensor.file} has tensor {PROJECTION} of shape {tensor.shape}, but hidden_size is {width}."
        )
    return Dense(tensor.float32(), None, "identity")


def _read_norm(file: Path, size: int | None) -> LayerNorm:
    """The layer stored next to a LayerNorm module's config.json."""
    shape = (positive(read_object(file), "dimension", file),)
    arrays = _arrays(file, {"norm.weight": shape, "norm.bias": shape}, size)
    return LayerNorm(arrays["norm.weight"], arrays["norm.bias"])


def _arrays(file: Path, shapes: Mapping[str, tuple[Any, ...]], size: int | None) -> dict[str, Array]:
    """The tensors next to a module's config.json, of the shapes that it gives them.

    The first ends with the length of the input vectors, which the previous module gives as `size`, if it is known.
    """
    tensors = open_tensors(file.parent)
    for name, shape in shapes.items():
        if name not in tensors:
            raise BertcliError(f"{file.parent} lacks tensor {name}: fetch the model again.")
        tensor = tensors[name]
        if tensor.shape != shape:
            raise BertcliError(f"{tensor.file} has tensor {name} of shape {tensor.shape}; {file} says {shown(shape)}.")
    width = next(iter(shapes.values()))[-1]
    if size not in (None, width):
        raise BertcliError(f"{file} takes vectors of length {width}, but the previous module gives {size}.")
    return {name: tensors[name].float32() for name in shapes}


# ------------------------------------------------------------------------------------------------------- other files


def _transformer_file(folder: Path) -> Path | None:
    """The file beside a network that says how sentence-transformers opens it."""
    place = network_place(folder).folder
    return next(filter(os.path.lexists, (place / name for name in TRANSFORMER_FILES)), None)


def _read_prompts(folder: Path) -> tuple[dict[str, str], str]:
    """The prompts by name, and the one that default_prompt_name prepends to every text."""
    file = folder / MODEL_FILE
    config = read_optional(file)
    prompts, name = config.get("prompts") or {}, config.get("default_prompt_name")
    if not isinstance(prompts, dict) or not all(isinstance(prompt, str | None) for prompt in prompts.values()):
        raise BertcliError(f"{file} has the prompts {shown(prompts)}, which are not texts by name: correct it.")
    prompts = {key: prompt or "" for key, prompt in prompts.items()}
    if name is not None and (not isinstance(name, str) or name not in prompts):
        raise BertcliError(f"{file} has the default_prompt_name {shown(name)} but no such prompt: set it to null.")
    return prompts, "" if name is None else prompts[name]


def _activation(path: Any, names: Mapping[str, str], what: str, file: Path) -> str:
    """The name of an activation, from the path of its class in torch.nn."""
    package, _, name = path.rpartition(".") if isinstance(path, str) else ("", "", "")
    if not f"{package}.".startswith("torch.nn.") or name not in names:
        raise unusable(file, f"{what} {shown(path)}; bertcli supports torch's {', '.join(names)}")
    return names[name]


def _one_of(config: dict[str, Any], key: str, values: tuple[str, ...], file: Path) -> Any:
    """A setting that is one of these, the first where it is not there."""
    value = config.get(key)
    if value is not None and value not in values:
        raise unusable(file, f"has the {key} {shown(value)}; bertcli supports {', '.join(values)}")
    return values[0] if value is None else value
