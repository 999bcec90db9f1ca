"""Sentence folders whose files hold settings beside the usual ones: what is recorded of sentence-transformers."""

import json
from pathlib import Path
from typing import Any

from helpers.checkpoints import Sentence, make

TEXTS = (
    "The hot Tea",
    "[MASK] tea [SEP] café Paris ΟΔΟΣ",
    "She poured a cup of hot coffee, and he drank it with milk. The cat sat on the mat in Paris, unbelievable coffee",
    "北京tea naïve",
    "",
)
TOKENIZER_LIMIT = 15
NAMED: dict[str, Any] = {"modality_config": {"text": {"method": "forward", "method_output_name": "last_hidden_state"}},
                         "module_output_name": "token_embeddings"}  # fmt: skip

# What sentence_bert_config.json holds.
SENTENCE_CASES: dict[str, dict[str, Any]] = {
    "a limit above the tokenizer's": {"max_seq_length": 28},
    "a limit below the tokenizer's": {"max_seq_length": 5},
    "no limit": {"max_seq_length": None},
    "the tokenizer's limit": {"max_seq_length": 20, "tokenizer_args": {"model_max_length": 9}},
    "cut on the left": {"processor_kwargs": {"model_max_length": 12, "truncation_side": "left"}},
    "not in lower case": {"tokenizer_args": {"do_lower_case": False}},
    "accents": {"tokenizer_args": {"strip_accents": False}},
    "Chinese letters": {"tokenizer_args": {"tokenize_chinese_chars": False}},
    "special tokens split": {"tokenizer_args": {"split_special_tokens": True}},
    "no segments": {"tokenizer_args": {"model_input_names": ["input_ids", "attention_mask"]}},
    "filled on the left": {"tokenizer_args": {"padding_side": "left", "use_fast": True}},
    "called with two limits": {"processing_kwargs": {"text": {"max_length": 7}, "common": {"max_length": 9}}},
    "called with a larger limit": {"max_seq_length": 20, "processing_kwargs": {"text": {"max_length": 30}}},
    "lower case first": {"do_lower_case": True, "tokenizer_args": {"do_lower_case": False}},
    "arguments without effect": {
        "model_args": {"add_pooling_layer": False, "torch_dtype": "float32", "attn_implementation": "eager"},
        "config_args": {"use_cache": True, "hidden_act": "gelu"},
    },
    "the usual output": {**NAMED, "transformer_task": "feature-extraction", "unpad_inputs": False},
}
NO_MODULES = "without modules.json"  # sentence-transformers then reads no sentence_bert_config.json


def write_sentence_case(folder: Path, name: str) -> Path:
    """A folder of one of SENTENCE_CASES, or NO_MODULES."""
    make(folder, sentence=Sentence(("mean",)), tokenizer="both", model_max_length=TOKENIZER_LIMIT)
    settings = SENTENCE_CASES.get(name, {"max_seq_length": 5, "do_lower_case": True})
    (folder / "sentence_bert_config.json").write_text(json.dumps(settings), encoding="utf-8")
    if name == NO_MODULES:
        (folder / "modules.json").unlink()
    return folder
