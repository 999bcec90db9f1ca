"""Sentence-transformers folders on families other than BERT, with the file names of older versions."""

from pathlib import Path
from typing import Any

import numpy as np
from helpers.checkpoint_files import Dense, Sentence, write_safetensors, write_sentence
from helpers.checkpoints import bell, make, weights
from helpers.family_checkpoints import make_family
from helpers.json_files import write_json
from helpers.tokenizer_kinds import write_kind, write_qwen
from helpers.vocabulary import pieces, write_tokenizer_json

# Family -> its tokenizer, and the file that says how long a text may be.
FOLDERS = {
    "roberta": ("roberta", "sentence_roberta_config.json"),
    "xlm-roberta": ("xlm-roberta", "sentence_xlm-roberta_config.json"),
    "distilbert": ("", "sentence_distilbert_config.json"),
    "mpnet": ("mpnet", "sentence_bert_config.json"),
    "modernbert": ("modernbert", "sentence_bert_config.json"),
    "nomic_bert": ("", "sentence_bert_config.json"),
}
WIDTH, LIMIT = 32, 30


def write_folder(folder: Path, family: str) -> Path:
    """A checkpoint, its tokenizer and what sentence-transformers stores: mean pooling, vectors of length 1."""
    kind, file = FOLDERS[family]
    folder.mkdir(parents=True, exist_ok=True)
    size = write_kind(folder, kind, model_max_length=40) if kind else len(pieces())
    if not kind:
        write_tokenizer_json(folder, pieces())
    make_family(folder, family, sizes={"V": size, "H": WIDTH, "P": 64})
    write_sentence(folder, Sentence(("mean",), normalize=True, max_seq_length=LIMIT), WIDTH, [])
    (folder / "sentence_bert_config.json").rename(folder / file)
    return folder


# What config_sentence_transformers.json says: prompts by name, and the default one's name.
ROLES: dict[str, tuple[dict[str, str | None], str | None]] = {
    "query and passage": ({"query": "the cat ", "passage": "a river "}, None),
    "with a default": ({"query": "the cat ", "passage": "a river ", "sts": "bread "}, "sts"),
    "a default alone": ({"sts": "bread "}, "sts"),
    "documents by default": ({"query": "the cat ", "document": "a river "}, "document"),
    "document before passage": ({"passage": "a river ", "document": "hot ", "corpus": "bread "}, "passage"),
    "null": ({"query": None, "document": None, "sts": "bread "}, "sts"),
}


def write_roles(folder: Path, name: str) -> Path:
    """A folder with these prompts; each text of a role has a vector of its own."""
    make(folder, sentence=Sentence(("mean",), normalize=True), tokenizer="json")
    prompts, default = ROLES[name]
    settings = {"model_type": "SentenceTransformer", "prompts": prompts, "default_prompt_name": default}
    write_json(folder / "config_sentence_transformers.json", settings)
    return folder


QWEN_PROMPTS = {"query": "Instruct: Find what answers it\nQuery:", "document": ""}


def write_qwen_folder(folder: Path, pooling: str = "lasttoken", family: str = "qwen3", **keys: Any) -> Path:
    """Qwen3-Embedding in the layout that is published: a causal model without its head, the last token, length 1."""
    folder.mkdir(parents=True, exist_ok=True)
    size = write_qwen(folder)
    config = {"architectures": [f"{family.capitalize()}ForCausalLM"], "tie_word_embeddings": True, **keys}
    make_family(folder, family, sizes={"V": size, "H": WIDTH, "P": 64}, config=config, bare=True)
    write_sentence(folder, Sentence((pooling,), normalize=True, max_seq_length=LIMIT), WIDTH, [])
    settings = {"prompts": QWEN_PROMPTS, "default_prompt_name": None}
    write_json(folder / "config_sentence_transformers.json", settings)
    return folder


GEMMA_PROMPTS = {
    "query": "task: search result | query: ",
    "document": "title: none | text: ",
    "Clustering": "task: clustering | query: ",
}


def write_gemma(folder: Path) -> Path:
    """EmbeddingGemma in the layout that is published: the mean, two Dense layers without biases, prompts by name."""
    size = write_kind(folder, "gemma3_text", tokenizer_class="GemmaTokenizer", add_bos_token=True, add_eos_token=True)
    make_family(
        folder, "gemma3_text", sizes={"V": size, "H": WIDTH, "P": 64}, config={"architectures": ["Gemma3TextModel"]}
    )
    layers = [
        Dense(48, False, "torch.nn.modules.linear.Identity"),
        Dense(WIDTH, False, "torch.nn.modules.linear.Identity"),
    ]
    inputs, stored = WIDTH, []
    for number, layer in enumerate(layers):
        name = "linear.weight"
        stored.append({name: weights({name: (layer.out_features, inputs)}, seed=number)[name]})
        inputs = layer.out_features
    described = Sentence(("mean",), "legacy", normalize=True, max_seq_length=50, dense=tuple(layers))
    write_sentence(folder, described, WIDTH, stored)
    settings = {"model_type": "SentenceTransformer", "prompts": GEMMA_PROMPTS, "default_prompt_name": None}
    write_json(folder / "config_sentence_transformers.json", settings)
    return folder


def write_t5(folder: Path, family: str) -> Path:
    """sentence-t5 and gtr-t5 in the layout that is published: the mean, a Dense layer without bias, length 1."""
    folder.mkdir(parents=True, exist_ok=True)
    size = write_kind(folder, "t5", tokenizer_class="T5Tokenizer", model_max_length=40)
    make_family(folder, family, sizes={"V": size, "H": WIDTH})
    layer = Dense(24, False, "torch.nn.modules.linear.Identity")
    stored = [weights({"linear.weight": (24, WIDTH)}, seed=5)]
    write_sentence(folder, Sentence(("mean",), normalize=True, max_seq_length=LIMIT, dense=(layer,)), WIDTH, stored)
    return folder


JINA_TASKS = ("retrieval", "text-matching")
JINA_PROMPTS = {"query": "Query: ", "document": "Document: "}
JINA_KEYS = {"qwen3": {"use_sliding_window": False}, "eurobert": {"is_decoder": False}}


def write_jina(folder: Path, family: str) -> Path:
    """jina-embeddings-v5-text-small (Qwen3) and -nano (EuroBERT) in the layout that is published."""
    folder.mkdir(parents=True, exist_ok=True)
    size = write_qwen(folder)
    config = {
        "model_type": "jina_embeddings_v5", "architectures": ["JinaEmbeddingsV5Model"], "task_names": [*JINA_TASKS],
        "auto_map": {"AutoModel": "modeling_jina_embeddings_v5.JinaEmbeddingsV5Model"}, **JINA_KEYS[family],
    }  # fmt: skip
    make_family(folder, family, sizes={"V": size, "H": WIDTH, "P": 64}, config=config, bare=True)
    module = {"idx": 0, "name": "transformer", "path": "", "type": "custom_st.Transformer", "kwargs": ["task"]}
    write_json(folder / "modules.json", [module])
    settings = {"prompts": JINA_PROMPTS, "default_prompt_name": "document", "similarity_fn_name": "cosine"}
    write_json(folder / "config_sentence_transformers.json", settings)
    shapes = {"self_attn.q_proj": (32, 32), "self_attn.v_proj": (32, 32), "mlp.down_proj": (32, 64)}
    for task in JINA_TASKS:
        at = folder / "adapters" / task
        at.mkdir(parents=True)
        stored = {}
        for layer in (0, 1):
            for name, (out, inputs) in shapes.items():
                stem = f"base_model.model.layers.{layer}.{name}"
                for half, shape in (("A", (4, inputs)), ("B", (out, 4))):
                    values = bell(task + stem + half, shape) * 0.3
                    stored[f"{stem}.lora_{half}.weight"] = ("F32", values.astype(np.float32))
        write_safetensors(at / "adapter_model.safetensors", stored)
        told = {"peft_type": "LORA", "task_type": "FEATURE_EXTRACTION", "r": 4, "lora_alpha": 4, "bias": "none",
                "base_model_name_or_path": f"jinaai/jina-embeddings-v5-text-{family}", "lora_dropout": 0.1,
                "target_modules": [name.rpartition(".")[2] for name in shapes], "inference_mode": True}  # fmt: skip
        write_json(at / "adapter_config.json", told)
    return folder
