"""Sentence-transformers folders on families other than BERT, with the file names of older versions."""

import json
from pathlib import Path
from typing import Any

from helpers.checkpoint_files import Dense, Sentence, write_sentence
from helpers.checkpoints import weights
from helpers.family_checkpoints import make_family
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


QWEN_PROMPTS = {"query": "Instruct: Find what answers it\nQuery:", "document": ""}


def write_qwen_folder(folder: Path, pooling: str = "lasttoken", family: str = "qwen3", **keys: Any) -> Path:
    """Qwen3-Embedding in the layout that is published: a causal model without its head, the last token, length 1."""
    folder.mkdir(parents=True, exist_ok=True)
    size = write_qwen(folder)
    config = {"architectures": [f"{family.capitalize()}ForCausalLM"], "tie_word_embeddings": True, **keys}
    make_family(folder, family, sizes={"V": size, "H": WIDTH, "P": 64}, config=config, bare=True)
    write_sentence(folder, Sentence((pooling,), normalize=True, max_seq_length=LIMIT), WIDTH, [])
    settings = {"prompts": QWEN_PROMPTS, "default_prompt_name": None}
    (folder / "config_sentence_transformers.json").write_text(json.dumps(settings), encoding="utf-8")
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
    (folder / "config_sentence_transformers.json").write_text(json.dumps(settings), encoding="utf-8")
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
