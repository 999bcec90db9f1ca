"""Folders whose tokenizer lies in its family's own files, or in a tokenizer.json that tokenizer_config.json overrules.

Their `.model` files were trained by the sentencepiece package, see record_vocabularies.py.
"""

import shutil
from pathlib import Path
from typing import Any, NamedTuple

from helpers.json_files import write_json
from helpers.tokenizer_kinds import byte_pairs, write_kind
from helpers.vocabulary import pieces, write_tokenizer_json, write_vocabulary

MODELS = Path(__file__).parent / "vocabularies"
LETTERS = ["<cls>", "<pad>", "<eos>", "<unk>", *"LAGVSERTIDPKQNFYMHWCXBUZO", ".", "-", "<null_1>", "<mask>"]
MASK = {"content": "<mask>", "lstrip": True, "rstrip": False, "normalized": False, "single_word": False}


QWEN_SIZE = len(byte_pairs(["<|endoftext|>"]).get_vocab())
QWEN_TOKENS = {
    "added_tokens_decoder": {
        "0": {"content": "<|endoftext|>", "special": True},
        str(QWEN_SIZE): {"content": "<|im_start|>", "special": True},
        str(QWEN_SIZE + 1): {"content": "<tool>", "special": False},
    }
}


class Folder(NamedTuple):
    """config.json, the other small files by name, and what holds the vocabulary: a `.model` or how it is made."""

    config: dict[str, Any]
    small: dict[str, Any]
    vocabulary: str


FOLDERS = {
    "xlm-roberta": Folder({"model_type": "xlm-roberta"}, {}, "sentencepiece.bpe.model"),
    "xlm-roberta of BERT": Folder(
        {"model_type": "bert", "tokenizer_class": "XLMRobertaTokenizer"},
        {"added_tokens.json": {"<url>": 122}, "special_tokens_map.json": {"additional_special_tokens": ["<url>"]}},
        "sentencepiece.bpe.model",
    ),
    "camembert": Folder(
        {"model_type": "camembert"}, {"tokenizer_config.json": {"model_max_length": 512}}, "sentencepiece.bpe.model"
    ),
    "albert": Folder({"model_type": "albert"}, {}, "spiece.model"),
    "albert, cased": Folder(
        {"model_type": "albert"},
        {"tokenizer_config.json": {"do_lower_case": False, "keep_accents": True}},
        "spiece.model",
    ),
    "deberta-v2": Folder({"model_type": "deberta-v2"}, {"tokenizer_config.json": {"vocab_type": "spm"}}, "spm.model"),
    "deberta-v2, split": Folder(
        {"model_type": "deberta-v2"},
        {
            "tokenizer_config.json": {
                "tokenizer_class": "DebertaV2Tokenizer",
                "do_lower_case": True,
                "split_by_punct": True,
            },
            "added_tokens.json": {"[MASK]": 120},
        },
        "spm.model",
    ),
    "t5": Folder({"model_type": "t5"}, {}, "t5/spiece.model"),
    "mt5, few marks": Folder(
        {"model_type": "mt5"},
        {
            "tokenizer_config.json": {"tokenizer_class": "T5Tokenizer", "extra_ids": 3, "eos_token": "</s>"},
            "special_tokens_map.json": {
                "additional_special_tokens": ["<extra_id_0>", "<extra_id_1>", "<extra_id_2>"],
                "pad_token": "<pad>",
                "unk_token": "<unk>",
            },
        },
        "t5/spiece.model",
    ),
    "roberta": Folder({"model_type": "roberta"}, {}, "byte pairs"),
    "roberta, prefixed": Folder(
        {"model_type": "roberta"},
        {
            "tokenizer_config.json": {"add_prefix_space": True, "trim_offsets": False},
            "special_tokens_map.json": {"cls_token": "<s>", "mask_token": MASK},
        },
        "byte pairs",
    ),
    "esm": Folder(
        {"model_type": "esm"},
        {"tokenizer_config.json": {"tokenizer_class": "EsmTokenizer", "eos_token": "<eos>"}},
        "letters",
    ),
    "mpnet": Folder({"model_type": "mpnet"}, {}, "word pieces"),
    "qwen2": Folder({"model_type": "qwen2"}, {"tokenizer_config.json": {"tokenizer_class": "Qwen2Tokenizer"}}, "qwen"),
    "qwen3, described": Folder(
        {"model_type": "qwen3"},
        {"tokenizer_config.json": {"tokenizer_class": "Qwen2Tokenizer", "pad_token": "<|endoftext|>", **QWEN_TOKENS}},
        "qwen",
    ),
    "bert, overruled": Folder(
        {"model_type": "bert"}, {"tokenizer_config.json": {"tokenize_chinese_chars": False}}, "cased json"
    ),
    "distilbert, overruled": Folder(
        {"model_type": "distilbert"}, {"tokenizer_config.json": {"strip_accents": False}}, "cased json"
    ),
    "bert, not overruled": Folder(
        {"model_type": "bert"}, {"tokenizer_config.json": {"tokenizer_class": "PreTrainedTokenizerFast"}}, "cased json"
    ),
    "roberta, overruled": Folder(
        {"model_type": "roberta"}, {"tokenizer_config.json": {"add_prefix_space": True, "trim_offsets": True}}, "kind"
    ),
}

TEXTS = [
    "The hot tea, the cold water.", "", " ", "  outer  and  double  spaces ", "a\ttab\u00a0nbsp\nline",
    "ﬁne ﬂour café naïve", "e\u0301 \u0301 STRASSE straße ΣΑΣ", "👨\u200d👩\u200d👧 zero\u200dwidth",
    "北京 中国人、tea", "1, 2, 3,000,", "``tea'' \"x\" (y)-z", "the [MASK] tea", "the <mask> tea",
    "the  <mask>[MASK]  tea", "<s> </s> <unk> <pad> [CLS] [SEP] [UNK]", "[cls] [unk] [mask]", "▁under ▁▁ x▁y Ġ",
    "<s>NOTUSED <url> x<url>", "MKT AY x jL<mask>QR<null_1>.-", "tea" * 9,
    "I'LL don't 2024<|im_start|><tool> x<|endoftext|>\n\n",
    "\x00\x01 \u3000 \u2028 end ", "hot <extra_id_0> tea<extra_id_2>x </s> y",
]  # fmt: skip
PAIRS = [(TEXTS[0], TEXTS[9]), (TEXTS[3], TEXTS[12]), ("", TEXTS[10]), (TEXTS[18], TEXTS[11])]


def write_folder(folder: Path, name: str) -> Path:
    """Write config.json, the small files and the vocabulary of a case."""
    config, small, vocabulary = FOLDERS[name]
    if vocabulary.endswith(".model"):
        shutil.copyfile(MODELS / vocabulary, folder / Path(vocabulary).name)
    elif vocabulary == "byte pairs":
        byte_pairs(["<s>", "<pad>", "</s>", "<unk>", "<mask>"]).model.save(str(folder))
    elif vocabulary == "qwen":
        byte_pairs(["<|endoftext|>"]).model.save(str(folder))
    elif vocabulary == "cased json":
        write_tokenizer_json(folder, pieces(), lower_case=False)
    elif vocabulary == "kind":
        write_kind(folder, "roberta")
    else:
        write_vocabulary(
            folder, LETTERS if vocabulary == "letters" else ["<s>", "<pad>", "</s>", "<unk>", *pieces(), "<mask>"]
        )
    for file, content in ({"config.json": config} | small).items():
        write_json(folder / file, content)
    return folder
