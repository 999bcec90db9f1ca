"""What is recorded and compared: checkpoints and inputs, shared by record.py and the tests. NumPy only."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from helpers.checkpoints import ACTIVATIONS, DTYPES, HEADS, NAMINGS, Dense, Sentence
from numpy.typing import NDArray

Integers = NDArray[np.int64]
Checkpoint = dict[str, Any]  # keywords of checkpoints.make

ODD = {"hidden_size": 36, "num_attention_heads": 3, "intermediate_size": 50, "num_hidden_layers": 3}
NARROW = {"hidden_size": 20, "num_attention_heads": 4, "intermediate_size": 44, "type_vocab_size": 3}
MLM_COLUMNS = slice(3, None, 11)  # of the vocabulary: a log-probability holds the whole row in its normalizer


class Batch(NamedTuple):
    """Token ids, segments and mask, all [batch, token]."""

    ids: Integers
    segments: Integers
    mask: Integers


def network_cases() -> Iterator[tuple[str, Checkpoint]]:
    """35 checkpoints in which every two of head, activation, dtype and naming style meet (7 · 5 · gcd arguments).

    Sizes, decoders, biases, buffers and shards go round with other periods.
    """
    for k in range(35):
        habit: Checkpoint = {
            "head": HEADS[k % 5],
            "hidden_act": ACTIVATIONS[k % 7],
            "dtype": DTYPES[k % 4],
            "naming": NAMINGS[(k + k // 4) % 4],
            "tied": ("absent", "stored", "untied")[k % 3],
            "decoder_bias": ("predictions", "decoder", "both", "differ")[(k // 5) % 4],
            "position_ids_buffer": k % 2 == 1,
            "shards": (0, 0, 3)[k % 3],
            "num_labels": 2 + k % 3,
            "sizes": ({}, ODD, NARROW)[k % 3],
            "config": {"layer_norm_eps": (1e-12, 1e-3)[k // 7 % 2]},
            "seed": k,
        }
        yield "-".join((f"{k:02d}", habit["head"], habit["hidden_act"], habit["dtype"], habit["naming"])), habit


def bare_cases() -> dict[str, Checkpoint]:
    """Habits that lie across the others: no pooler, heads beside it, an old config, spare rows of embeddings."""
    untied = {"tied": "untied", "decoder_bias": "both", "config": {"tie_word_embeddings": False}}
    old = {"model_type": None, "architectures": None, "pad_token_id": None, "layer_norm_eps": None}
    return {
        "no-pooler": {"head": "model", "pooler": False},
        "old-config": {"head": "pretraining", "naming": "gamma_beta", "config": old, "tied": "stored"},
        "spare-rows": {"head": "mlm", "sizes": {"vocab_size": 400}},
        "untied-by-config": {"head": "mlm", **untied},
        "one-layer": {"head": "pretraining", "sizes": {"num_hidden_layers": 1, "num_attention_heads": 1}},
        "one-segment": {"head": "nsp", "sizes": {"type_vocab_size": 1}},
    }


def ids_of(length: int, vocab: int, salt: int) -> list[int]:
    """Token ids that repeat little: an affine walk through the vocabulary."""
    return [(salt * 7919 + position * 101 + position * position * 13) % vocab for position in range(length)]


def mixed_batch(vocab: int, segments: int, salt: int, lengths: tuple[int, ...] = (7, 2, 12)) -> Batch:
    """Sentences of these lengths, padded on the right; the later half of each is the last segment."""
    shape = (len(lengths), max(lengths))
    batch = Batch(np.zeros(shape, np.int64), np.zeros(shape, np.int64), np.zeros(shape, np.int64))
    for row, length in enumerate(lengths):
        batch.ids[row, :length] = ids_of(length, vocab, salt + row)
        batch.segments[row, (length + 1) // 2 : length] = (segments - 1) * (row != 1)
        batch.mask[row, :length] = 1
    return batch


def masked_batch(vocab: int) -> Batch:
    """One sentence a habit of masking: none, right, left, both sides, holes, one token only."""
    masks = ("1111111111", "1111110000", "0001111111", "0011111000", "1011001101", "0000100000")
    mask = np.array([[int(bit) for bit in row] for row in masks], dtype=np.int64)
    ids = np.array([ids_of(10, vocab, 50 + row) for row in range(len(masks))], dtype=np.int64)
    segments = np.tile(np.arange(10) // 6, (len(masks), 1))
    return Batch(ids, segments, mask)


MASKS: Checkpoint = {"head": "model", "sizes": ODD, "seed": 101}
ATTENTION: Checkpoint = {"head": "model", "seed": 102}
LENGTHS: dict[str, tuple[Checkpoint, tuple[int, ...]]] = {
    "short": ({"head": "model", "seed": 103}, (2, 3, 5, 16, 31, 47, 48)),
    "long": ({"head": "model", "seed": 104, "sizes": {"max_position_embeddings": 512}}, (255, 300, 511, 512)),
}


def length_rows(length: int) -> list[int]:
    """The tokens of a sentence that are recorded."""
    return sorted({0, length // 2, length - 1})


TEXTS = (
    "The cat sat on the mat.",
    "unbelievable",
    "",
    "Paris is the capital of France, and Berlin?",
    "She poured a cup of hot tea; he drank café milk and 7 drops of 中国 water, " * 3,
    "hello 😀 zzz ☃",
    "I love this movie!",
)
PAIRS = (
    ("The king went home.", "The queen was not there."),
    ("tea", "She sold the house by the river and bought bread at the market for all of her children " * 2),
    ("", "hot milk"),
    ("all day and all night " * 12, "blue sky and red sun and green moon " * 12),
)

MULTI_LABEL, REGRESSION = {"problem_type": "multi_label_classification"}, {"problem_type": "regression"}
CLASSIFIERS: dict[str, Checkpoint] = {
    "labels": {"head": "classifier", "id2label": {0: "bad", 1: "good", 2: "so-so"}, "seed": 201},
    "unnamed": {"head": "classifier", "num_labels": 4, "seed": 202},
    "multi": {"head": "classifier", "num_labels": 3, "config": MULTI_LABEL, "seed": 203},
    "single": {"head": "classifier", "num_labels": 1, "seed": 204},
    "regression": {"head": "classifier", "num_labels": 1, "config": REGRESSION, "seed": 205},
    "regressions": {"head": "classifier", "num_labels": 2, "config": REGRESSION, "seed": 206},
}
NEXT_SENTENCE: Checkpoint = {"head": "nsp", "seed": 207}

MASKED_LM: Checkpoint = {"head": "pretraining", "seed": 208, "tokenizer": "both"}
MASKED_TEXTS = (
    "She poured a cup of hot [MASK].",
    "The [MASK] of France is [MASK]",
    "[MASK]",
    "Hello,[MASK]!un[MASK]able",
)
TARGETS = ("tea", "coffee", "un", "##able")
SCORED_TEXTS = ("The cat sat on the mat.", "", "unbelievable 中国 zzz ☃?", "She said hello to the king and the queen")

IDENTITY = "torch.nn.modules.linear.Identity"
SENTENCES: dict[str, Checkpoint] = {
    "mean": {"sentence": Sentence()},
    "cls": {"sentence": Sentence(pooling=("cls",))},
    "max": {"sentence": Sentence(pooling=("max",))},
    "mean-sqrt-len": {"sentence": Sentence(pooling=("mean_sqrt_len",))},
    "legacy-several": {"sentence": Sentence(pooling=("mean_sqrt_len", "mean", "max", "cls"))},
    "new-one": {"sentence": Sentence(pooling=("cls",), style="new")},
    "new-several": {"sentence": Sentence(pooling=("mean", "mean_sqrt_len", "cls", "max"), style="new", normalize=True)},
    "nothing-on": {"sentence": Sentence(pooling=())},
    "normalize": {"sentence": Sentence(normalize=True)},
    "normalize-folder": {"sentence": Sentence(pooling=("max",), normalize=True, normalize_folder=True)},
    "limit": {"sentence": Sentence(max_seq_length=9), "model_max_length": 40},
    "baked": {"sentence": Sentence(max_seq_length=20), "tokenizer": "json", "baked": 12},
    "lower": {"sentence": Sentence(do_lower_case=True), "lower_case": False},
    "cased": {"sentence": Sentence(), "lower_case": False, "tokenizer": "both"},
    "dense": {"sentence": Sentence(dense=(Dense(12),))},
    "dense-identity": {"sentence": Sentence(dense=(Dense(9, False, IDENTITY),), normalize=True)},
    "dense-two": {"sentence": Sentence(pooling=("cls", "mean"), dense=(Dense(10), Dense(6)))},
}

ODD_TEXTS = (
    "", " ", " \t\n\r ", "unbelievable", "Unbelievable UNBELIEVABLE", "The queen's tea-cup... isn't HERE?!",
    "café CAFÉ naïve Über", "cafe\u0301 u\u0308ber A\u030aring", "\u0301\u0308", "中国人 你好,世界", "The中国人cat",
    "北京 is big", "日本語 한국어 \u1112\u1161\u11ab", "a\x00b\x01c\x7fd\ufffde", "\x00",
    "tab\tnew\nline\rreturn\x0bvertical\x0cform",
    "no\u00a0break\u3000wide\u2009thin\u200bzero\u200djoin\ufeffbom", "😀 cat😀 👩\u200d👩\u200d👧 🇫🇷 ☃", "x" * 100,
    "x" * 101, "é" * 100, "a" * 60 + " " + "b" * 200, "שלום עולם שָׁלוֹם", "مرحبا بالعالم \u202bRTL\u202c",
    "[MASK]", "a [MASK] b", "a[MASK]b", "[mask] [Mask]", "[CLS] a [SEP] b [PAD] [UNK]", "[unused1] ##ing ##",
    "un##able", "İstanbul I ı ß ẞ SS ﬁ ŉ", "мир Мир МИР", "λόγος ΛΟΓΟΣ ς", "１２３ ½ ² ₃ Ⅷ ㎏",
    "1,234.56 $5 50% #1 @you a_b a/b", "“quotes” ‘single’ — dash … ellipsis • ™ € °",
    "\ue000 private \U0001f9ff", "e\u0323\u0302 ệ", "ปลา ไทย हिन्दी தமிழ்", "𝓬𝓪𝓽 𝟙𝟚",
    "\u2028line\u2029paragraph", "~`^|<>=+", "ａｂｃ", "!!!", "A" * 30,
)  # fmt: skip
TOKENIZERS: dict[str, Checkpoint] = {
    "lower": {"tokenizer": "vocab"},
    "cased": {"tokenizer": "vocab", "lower_case": False},
    "lower-keep-accents": {"tokenizer": "vocab", "strip_accents": False},
    "cased-strip-accents": {"tokenizer": "vocab", "lower_case": False, "strip_accents": True},
    "lower-no-chinese": {"tokenizer": "vocab", "tokenize_chinese_chars": False},
    "json-lower": {"tokenizer": "json", "baked": 6},
    "json-cased": {"tokenizer": "json", "lower_case": False, "strip_accents": False, "tokenize_chinese_chars": False},
}
TRUNCATIONS = (  # words of the first text, words of the second, limit
    (6, 6, 9), (6, 6, 10), (6, 6, 11), (6, 3, 9), (3, 6, 9), (6, 5, 10), (5, 6, 10), (6, 5, 9), (5, 6, 9),
    (8, 2, 9), (2, 8, 9), (8, 4, 12), (4, 8, 12), (4, 8, 10), (8, 8, 4), (8, 1, 5), (0, 8, 6), (1, 1, 4),
    (6, 6, 5), (6, 6, 3), (8, 7, 3), (5, 5, 13), (5, 5, 12),
)  # fmt: skip
TRUNCATED_WORDS = ("the", "cat", "sat", "on", "the", "mat", "and", "he")


def truncated_pair(first: int, second: int) -> tuple[str, str]:
    """Two texts of so many one-piece words."""
    return " ".join(TRUNCATED_WORDS[:first]), " ".join(TRUNCATED_WORDS[::-1][:second])
