"""Models made of modules, as sentence-transformers 5.4 and later save them: a cross-encoder, and a Router."""

import shutil
from pathlib import Path
from typing import Any

import numpy as np
from helpers.checkpoint_files import write_modules, write_safetensors
from helpers.checkpoints import bell, make
from helpers.json_files import read_json, write_json
from numpy.typing import NDArray

BASE = "sentence_transformers.base.modules."
HIDDEN = 32
QUERIES = ("a tea shop", "tea, tea and hot tea", "unbelievable [SEP] rain [MASK]", "")
QUERY, DOCUMENTS = "a tea shop", ("we sell tea", "it rained on the mat", "")


def _write(folder: Path, config: dict[str, Any], **tensors: Any) -> None:
    folder.mkdir(exist_ok=True)
    write_json(folder / "config.json", config)
    if tensors:
        stored = {name.replace("_", "."): ("F32", values.astype(np.float32)) for name, values in tensors.items()}
        write_safetensors(folder / "model.safetensors", stored)


def write_cross_encoder(folder: Path) -> Path:
    """BERT, [CLS], Dense with GELU, LayerNorm, Dense to one number; no activation."""
    make(folder, tokenizer="json")
    kinds = {"": BASE + "transformer.Transformer", "1_Pooling": "sentence_transformers.models.Pooling",
             "2_Dense": BASE + "dense.Dense", "3_LayerNorm": "sentence_transformers.models.LayerNorm",
             "4_Dense": BASE + "dense.Dense"}  # fmt: skip
    write_modules(folder, kinds)
    settings = {"model_type": "CrossEncoder", "activation_fn": "torch.nn.modules.linear.Identity", "prompts": {}}
    write_json(folder / "config_sentence_transformers.json", settings)
    task = {"transformer_task": "feature-extraction", "module_output_name": "token_embeddings"}
    method = {"text": {"method": "forward", "method_output_name": "last_hidden_state"}}
    write_json(folder / "sentence_bert_config.json", task | {"modality_config": method})
    _write(folder / "1_Pooling", {"embedding_dimension": HIDDEN, "pooling_mode": "cls", "include_prompt": True})
    dense = {"in_features": HIDDEN, "module_input_name": "sentence_embedding"}
    gelu, none = "torch.nn.modules.activation.GELU", "torch.nn.modules.linear.Identity"
    config = {"out_features": HIDDEN, "bias": False, "activation_function": gelu}
    _write(folder / "2_Dense", dense | config, linear_weight=bell("2", (HIDDEN, HIDDEN)) / 4)
    norm = {"norm_weight": 1 + bell("w", (HIDDEN,)) / 5, "norm_bias": bell("b", (HIDDEN,)) / 5}
    _write(folder / "3_LayerNorm", {"dimension": HIDDEN}, **norm)
    last = {"linear_weight": bell("4", (1, HIDDEN)) / 4, "linear_bias": np.array([0.25])}
    config = {"out_features": 1, "bias": True, "activation_function": none, "module_output_name": "scores"}
    _write(folder / "4_Dense", dense | config, **last)
    return folder


def query_weights(vocabulary: int) -> NDArray[np.float64]:
    """What a query's pieces weigh; every fifth nothing."""
    return np.where(np.arange(vocabulary) % 5, bell("idf", (vocabulary,)), 0.0)


def write_router(folder: Path, path: str = "document_0_Transformer") -> Path:
    """A Router whose documents go through a masked language model and SpladePooling; `path` is where that model is."""
    make(folder / path, head="mlm", tokenizer="json")
    task = {"transformer_task": "fill-mask", "module_output_name": "token_embeddings"}
    method = {"text": {"method": "forward", "method_output_name": "logits"}}
    write_json(folder / path / "sentence_bert_config.json", task | {"modality_config": method})
    _write(folder / "document_1_SpladePooling", {"pooling_strategy": "max", "activation_function": "log1p_relu"})
    vocabulary = len(read_json(folder / path / "tokenizer.json")["model"]["vocab"])
    static = folder / "query_0_SparseStaticEmbedding"
    _write(static, {"frozen": False}, weight=query_weights(vocabulary))
    for name in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copy(folder / path / name, static / name)
    write_modules(folder, {"": BASE + "router.Router"})
    sparse = "sentence_transformers.sparse_encoder.modules."
    router = {
        "types": {
            static.name: sparse + "sparse_static_embedding.SparseStaticEmbedding",
            path: BASE + "transformer.Transformer",
            "document_1_SpladePooling": sparse + "splade_pooling.SpladePooling",
        },
        "structure": {"query": [static.name], "document": [path, "document_1_SpladePooling"]},
        "parameters": {"default_route": "document", "allow_empty_key": True, "route_mappings": {}},
    }
    write_json(folder / "router_config.json", router)
    settings = {"model_type": "SparseEncoder", "prompts": {"query": "", "document": ""}, "similarity_fn_name": "dot"}
    write_json(folder / "config_sentence_transformers.json", settings)
    return folder


def write_asymmetric(folder: Path) -> Path:
    """A Router whose queries have a smaller network, another pooling and a Dense layer; then length 1 for both."""
    task = {"transformer_task": "feature-extraction", "module_output_name": "token_embeddings"}
    method = {"text": {"method": "forward", "method_output_name": "last_hidden_state"}}
    routes = {"query": {"hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": 1}, "document": {}}
    for number, (route, sizes) in enumerate(routes.items()):
        network = make(folder / f"{route}_0_Transformer", tokenizer="json", sizes=sizes, seed=number)
        write_json(network / "sentence_bert_config.json", task | {"modality_config": method})
    pooling = {"embedding_dimension": HIDDEN, "include_prompt": True}
    _write(folder / "query_1_Pooling", pooling | {"embedding_dimension": 16, "pooling_mode": "cls"})
    _write(folder / "document_1_Pooling", pooling | {"pooling_mode": "mean"})
    dense = {"in_features": 16, "out_features": HIDDEN, "bias": False, "module_input_name": "sentence_embedding",
             "activation_function": "torch.nn.modules.linear.Identity"}  # fmt: skip
    _write(folder / "query_2_Dense", dense, linear_weight=bell("q", (HIDDEN, 16)))
    (folder / "1_Normalize").mkdir()
    kinds = {"": BASE + "router.Router", "1_Normalize": "sentence_transformers.sentence_transformer.modules.Normalize"}
    write_modules(folder, kinds)
    structure = {
        "query": ["query_0_Transformer", "query_1_Pooling", "query_2_Dense"],
        "document": ["document_0_Transformer", "document_1_Pooling"],
    }
    classes = {
        "Transformer": BASE + "transformer.Transformer",
        "Pooling": "sentence_transformers.sentence_transformer.modules.pooling.Pooling",
        "Dense": BASE + "dense.Dense",
    }
    types = {path: classes[path.rpartition("_")[2]] for paths in structure.values() for path in paths}
    parameters = {"default_route": "document", "allow_empty_key": True, "route_mappings": {}}
    router = {"types": types, "structure": structure, "parameters": parameters}
    write_json(folder / "router_config.json", router)
    settings = {"model_type": "SentenceTransformer", "prompts": {"query": "tea: ", "document": ""}}
    write_json(folder / "config_sentence_transformers.json", settings)
    return folder
