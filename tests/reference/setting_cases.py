"""Folders whose files hold settings beside the usual ones: what is recorded of the references."""

from pathlib import Path
from typing import Any

from helpers.checkpoints import Sentence, make
from helpers.family_checkpoints import make_family
from helpers.json_files import change_json, write_json
from helpers.tokenizer_kinds import write_kind
from helpers.vocabulary import pieces, write_tokenizer_json

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
    "filled on the left": {"tokenizer_args": {"padding_side": "left"}},
    "called with two limits": {"processing_kwargs": {"text": {"max_length": 7}, "common": {"max_length": 9}}},
    "called with a limit, opened with another": {
        "processing_kwargs": {"text": {"max_length": 7}},
        "tokenizer_args": {"model_max_length": 9},
    },
    "called with a larger limit": {"max_seq_length": 20, "processing_kwargs": {"text": {"max_length": 30}}},
    "lower case first": {"do_lower_case": True, "tokenizer_args": {"do_lower_case": False}},
    "the usual output": {**NAMED, "transformer_task": "feature-extraction", "unpad_inputs": False},
}
NO_MODULES = "without modules.json"  # sentence-transformers then reads no sentence_bert_config.json


def write_sentence_case(folder: Path, name: str) -> Path:
    """A folder of one of SENTENCE_CASES, or NO_MODULES."""
    make(folder, sentence=Sentence(("mean",)), tokenizer="both", model_max_length=TOKENIZER_LIMIT)
    settings = SENTENCE_CASES.get(name, {"max_seq_length": 5, "do_lower_case": True})
    write_json(folder / "sentence_bert_config.json", settings)
    if name == NO_MODULES:
        (folder / "modules.json").unlink()
    return folder


# A kind of tokenizer ("" is BERT's), what its tokenizer_config.json says besides special tokens, what tokenizer.json
# says otherwise, and other files.
LEFT = {"truncation": {"direction": "Left", "max_length": 8, "strategy": "LongestFirst", "stride": 2}}
NEW = {"id": 900, "lstrip": False, "rstrip": False, "single_word": False}
WIDE = {"content": "[MASK]", "lstrip": True, "rstrip": False, "single_word": False, "normalized": False}
GENERIC, MODERN = {"tokenizer_class": "PreTrainedTokenizerFast"}, "modernbert"
Files = tuple[str, dict[str, Any], dict[str, Any], dict[str, Any]]
TOKENIZER_CASES: dict[str, Files] = {
    "cut on the left, says tokenizer.json": ("", {}, LEFT, {}),
    "cut on the right, says tokenizer_config.json": ("", {"truncation_side": "right"}, LEFT, {}),
    "no frame": (MODERN, GENERIC, {"post_processor": None}, {}),
    "no frame of a newer class": (MODERN, {"tokenizer_class": "TokenizersBackend"}, {"post_processor": None}, {}),
    "no frame of a model without a class": (MODERN, {}, {"post_processor": None}, {}),
    "BERT's frame": ("", {"tokenizer_class": "BertTokenizer"}, {"post_processor": None}, {}),
    "tokens without a role": ("", {"additional_special_tokens": ["[DATE]", "<url>", "tea"]}, {}, {}),
    "another mask": (MODERN, {**GENERIC, "mask_token": "[DATE]"}, {}, {}),
    "a token before texts": (MODERN, {**GENERIC, "bos_token": "<url>", "add_bos_token": True}, {}, {}),
    "tokens by id": ("", {"added_tokens_decoder": {
        "901": {**NEW, "content": "[DATE]", "special": True}, "900": {**NEW, "content": "<url>", "special": False},
    }}, {}, {}),
    "added_tokens.json": ("", {"mask_token": "[MASK]"}, {}, {"added_tokens.json": {"[DATE]": 900, "[MASK]": 4}}),
    "special_tokens_map.json": ("", {}, {}, {"special_tokens_map.json": {"pad_token": "[DATE]", "mask_token": WIDE}}),
    "special_tokens_map.json beside tokens by id": ("", {
        "mask_token": "[MASK]", "pad_token": "[PAD]",
        "added_tokens_decoder": {"4": WIDE | {"lstrip": False, "special": True}},
    }, {}, {"special_tokens_map.json": {"pad_token": "[DATE]", "mask_token": WIDE}}),
    "a mask described otherwise": ("", {"mask_token": WIDE | {"__type": "AddedToken"}}, {}, {}),
    "a mask described by id": ("", {"added_tokens_decoder": {"4": WIDE | {"special": True}}}, {}, {}),
    "special tokens split": (MODERN, {**GENERIC, "split_special_tokens": True}, {}, {}),
    "an older name of the limit": ("", {"max_len": 7}, {}, {}),
    "both names of the limit": ("", {"max_len": 7, "model_max_length": 9}, {}, {}),
}  # fmt: skip
SPECIAL_TEXTS = ("The hot Tea, a [MASK] cup", "see [DATE]  <url> [CLS]tea[SEP]", *TEXTS[2:])


def write_tokenizer_case(folder: Path, name: str) -> Path:
    """A folder of one of TOKENIZER_CASES, without weights."""
    kind, config, changes, files = TOKENIZER_CASES[name]
    folder.mkdir()
    if kind:
        write_kind(folder, kind, **config)
    else:
        write_tokenizer_json(folder, pieces())
        write_json(folder / "tokenizer_config.json", {"tokenizer_class": "BertTokenizer", **config})
    change_json(folder / "tokenizer.json", changes)
    write_json(folder / "config.json", {"model_type": kind or "bert"})
    for file, contents in files.items():
        write_json(folder / file, contents)
    return folder


# A family, and what its config.json says otherwise; None takes a key out.
NETWORK_CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "ModernBERT's sliding_window": ("modernbert", {"local_attention": None, "sliding_window": 2}),
    "both names of that, which agree": ("modernbert", {"local_attention": 4, "sliding_window": 2}),
    "DistilBERT's hidden_act": ("distilbert", {"hidden_act": "relu"}),
    "BERT's names of DistilBERT's sizes": (
        "distilbert", {"dim": None, "hidden_size": 32, "n_heads": None, "num_attention_heads": 2},
    ),
    "NomicBERT's older and newer keys": (
        "nomic_bert",
        {"n_layer": 1, "num_hidden_layers": 2, "layer_norm_epsilon": 0.1, "layer_norm_eps": 1e-12,
         "activation_function": "relu", "hidden_act": "silu"},
    ),
    "ESM's default eps": ("esm", {"layer_norm_eps": None}),
    "RoBERTa with segments": ("roberta", {"type_vocab_size": 2}),
    "XLM-RoBERTa with segments": ("xlm-roberta", {"type_vocab_size": 2}),
    "CamemBERT with segments": ("camembert", {"type_vocab_size": 3}),
}  # fmt: skip
IDS, SEGMENTS = [5, 17, 9, 33, 2, 60, 7, 8, 90, 11], [0, 0, 0, 0, 0, 1, 1, 1, 1, 1]


def write_network_case(folder: Path, name: str) -> Path:
    """A folder of one of NETWORK_CASES, without a tokenizer."""
    family, config = NETWORK_CASES[name]
    return make_family(folder, family, config=config, sizes={"T": config.get("type_vocab_size", 1)})
