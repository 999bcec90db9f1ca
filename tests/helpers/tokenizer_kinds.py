"""Small tokenizers of every kind that BERT's family has, written as tokenizer.json with a tokenizer_config.json.

Their vocabularies are made here, word by word, and not trained: the same on every machine.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from helpers.json_files import write_json
from helpers.vocabulary import CASED, FOREIGN, WORDS, pieces
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

ROBERTA = {"cls": "<s>", "pad": "<pad>", "sep": "</s>", "unk": "<unk>", "mask": "<mask>"}
BERT = {"pad": "[PAD]", "cls": "[CLS]", "sep": "[SEP]", "unk": "[UNK]", "mask": "[MASK]"}
KNOWN = [*WORDS.split(), *CASED.split(), *FOREIGN.split()]
LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.,!?'\"-"

# A sentencepiece map of characters that changes none: a trie of 256 empty units, and no text to replace anything by.
NO_CHANGES = (4 * 256).to_bytes(4, "little") + bytes(4 * 256) + b"\0"
ONE_SPACE = normalizers.Replace(Regex(" {2,}"), " ")


def unigram(special: Sequence[str], unknown: str) -> Tokenizer:
    """Whole words with the space before them, and single letters, which are less likely."""
    words = [*(f"▁{word}" for word in KNOWN), "▁", *KNOWN, *LETTERS]
    scored = [(word, -5 - 0.01 * i) for i, word in enumerate(dict.fromkeys(words))]
    vocabulary = [*((token, 0.0) for token in special), *scored]
    return Tokenizer(models.Unigram(vocabulary, unk_id=list(special).index(unknown)))


def byte_pairs(special: Sequence[str]) -> Tokenizer:
    """Bytes, merged letter by letter into the words, with and without the space before them."""
    split = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    merges: dict[tuple[str, str], None] = {}
    for word in [*(f" {word}" for word in KNOWN), *KNOWN]:
        letters = split.pre_tokenize_str(word)[0][0]
        merges.update({(letters[:i], letters[i]): None for i in range(1, len(letters))})
    names = [*special, *sorted(pre_tokenizers.ByteLevel.alphabet()), *(left + right for left, right in merges)]
    return Tokenizer(models.BPE({name: i for i, name in enumerate(dict.fromkeys(names))}, list(merges)))


def framed(tokenizer: Tokenizer, single: str, pair: str) -> None:
    names = [name for name in {part.split(":")[0] for part in single.split()} if not name.startswith("$")]
    ids = [(name, tokenizer.token_to_id(name)) for name in sorted(names)]
    tokenizer.post_processor = processors.TemplateProcessing(single=single, pair=pair, special_tokens=ids)


def roberta() -> tuple[Tokenizer, dict[str, str]]:
    made = byte_pairs(["<s>", "<pad>", "</s>", "<unk>"])
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    made.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0), add_prefix_space=False)
    return made, ROBERTA


def modernbert() -> tuple[Tokenizer, dict[str, str]]:
    made = byte_pairs(["[UNK]", "[CLS]", "[SEP]", "[PAD]"])
    made.normalizer, made.pre_tokenizer = normalizers.NFC(), pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    made.add_tokens([AddedToken(" " * count, normalized=True) for count in (4, 3, 2)])
    framed(made, "[CLS]:0 $A:0 [SEP]:0", "[CLS]:0 $A:0 [SEP]:0 $B:1 [SEP]:1")
    return made, BERT


def xlm_roberta() -> tuple[Tokenizer, dict[str, str]]:
    made = unigram(["<s>", "<pad>", "</s>", "<unk>"], "<unk>")
    made.normalizer = normalizers.Sequence([normalizers.Precompiled(NO_CHANGES), ONE_SPACE])
    made.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace()])
    made.decoder = decoders.Metaspace()
    framed(made, "<s> $A </s>", "<s> $A </s> </s> $B </s>")
    return made, ROBERTA


def camembert() -> tuple[Tokenizer, dict[str, str]]:
    made = unigram(["<s>NOTUSED", "<pad>", "</s>NOTUSED", "<unk>", "<unk>NOTUSED", "<s>", "</s>"], "<unk>")
    made.normalizer = normalizers.Sequence([normalizers.NFKC(), ONE_SPACE])
    made.pre_tokenizer, made.decoder = pre_tokenizers.Metaspace(), decoders.Metaspace()
    framed(made, "<s> $A </s>", "<s> $A </s> </s> $B </s>")
    return made, ROBERTA


def deberta_v2() -> tuple[Tokenizer, dict[str, str]]:
    made = unigram(["[PAD]", "[CLS]", "[SEP]", "[UNK]"], "[UNK]")
    steps = [normalizers.Strip(), normalizers.Precompiled(NO_CHANGES), ONE_SPACE]
    made.normalizer = normalizers.Sequence(steps)
    made.pre_tokenizer, made.decoder = pre_tokenizers.Metaspace(), decoders.Metaspace()
    framed(made, "[CLS]:0 $A:0 [SEP]:0", "[CLS]:0 $A:0 [SEP]:0 $B:1 [SEP]:1")
    return made, BERT


def albert() -> tuple[Tokenizer, dict[str, str]]:
    made = unigram(["<pad>", "<unk>", "[CLS]", "[SEP]"], "<unk>")
    quotes = [normalizers.Replace("``", '"'), normalizers.Replace("''", '"')]
    letters = [normalizers.NFKD(), normalizers.StripAccents(), normalizers.Lowercase()]
    made.normalizer = normalizers.Sequence([*quotes, *letters, normalizers.Precompiled(NO_CHANGES), ONE_SPACE])
    made.pre_tokenizer, made.decoder = pre_tokenizers.Metaspace(), decoders.Metaspace()
    framed(made, "[CLS]:0 $A:0 [SEP]:0", "[CLS]:0 $A:0 [SEP]:0 $B:1 [SEP]:1")
    return made, {"pad": "<pad>", "unk": "<unk>", "cls": "[CLS]", "sep": "[SEP]", "mask": "[MASK]"}


def mpnet() -> tuple[Tokenizer, dict[str, str]]:
    names = ["<s>", "<pad>", "</s>", "<unk>", *pieces()]
    made = Tokenizer(models.WordPiece({name: i for i, name in enumerate(names)}, unk_token="[UNK]"))
    made.normalizer, made.pre_tokenizer = normalizers.BertNormalizer(), pre_tokenizers.BertPreTokenizer()
    made.decoder = decoders.WordPiece()
    framed(made, "<s>:0 $A:0 </s>:0", "<s>:0 $A:0 </s>:0 </s>:0 $B:1 </s>:1")
    return made, ROBERTA | {"unk": "[UNK]"}


def t5() -> tuple[Tokenizer, dict[str, str]]:
    made = unigram(["<pad>", "</s>", "<unk>"], "<unk>")
    made.normalizer = normalizers.Sequence([normalizers.Precompiled(NO_CHANGES), ONE_SPACE])
    made.pre_tokenizer, made.decoder = pre_tokenizers.Metaspace(), decoders.Metaspace()
    framed(made, "$A </s>", "$A </s> $B </s>")
    return made, {"pad": "<pad>", "eos": "</s>", "unk": "<unk>"}


def gemma() -> tuple[Tokenizer, dict[str, str]]:
    """Byte-pair encoding of letters, with bytes for those that are unknown; a text is one word."""
    merges: dict[tuple[str, str], None] = {}
    for word in [*(f"▁{word}" for word in KNOWN), *KNOWN]:
        merges.update({(word[:i], word[i]): None for i in range(1, len(word))})
    letters = sorted({*LETTERS, "▁", *"".join(KNOWN)})
    roles = {"pad": "<pad>", "eos": "<eos>", "bos": "<bos>", "unk": "<unk>", "mask": "<mask>"}
    names = [*roles.values(), *(f"<0x{i:02X}>" for i in range(256)), *letters, *(a + b for a, b in merges)]
    ids = {name: i for i, name in enumerate(dict.fromkeys(names))}
    made = Tokenizer(models.BPE(ids, list(merges), unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    made.normalizer, made.pre_tokenizer = (
        normalizers.Replace(" ", "▁"),
        pre_tokenizers.Split(" ", "merged_with_previous"),
    )
    made.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()])
    framed(made, "<bos>:0 $A:0 <eos>:0", "<bos>:0 $A:0 <eos>:0 <bos>:1 $B:1 <eos>:1")
    return made, roles


QWEN_WORDS = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)


def write_qwen(folder: Path, *, closed: bool = True, **config: Any) -> int:
    """Byte-level tokens without a mask; with `closed` a text ends in <|endoftext|>, which is the padding, too."""
    made = byte_pairs(["<|endoftext|>", "<|im_start|>", "<|im_end|>"])
    split = pre_tokenizers.Split(Regex(QWEN_WORDS), "isolated")
    made.normalizer = normalizers.NFC()
    made.pre_tokenizer = pre_tokenizers.Sequence(
        [split, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)]
    )
    made.decoder = decoders.ByteLevel()
    made.add_special_tokens(
        [AddedToken(name, special=True) for name in ("<|endoftext|>", "<|im_start|>", "<|im_end|>")]
    )
    if closed:
        framed(made, "$A:0 <|endoftext|>:0", "$A:0 $B:1 <|endoftext|>:1")
    made.save(str(folder / "tokenizer.json"))
    names = {"tokenizer_class": "Qwen2Tokenizer", "pad_token": "<|endoftext|>", "eos_token": "<|im_end|>"}
    settings = names | {"model_max_length": 131072, "padding_side": "left"} | config
    write_json(folder / "tokenizer_config.json", settings)
    return made.get_vocab_size()


KINDS: dict[str, Callable[[], tuple[Tokenizer, dict[str, str]]]] = {
    "roberta": roberta, "xlm-roberta": xlm_roberta, "camembert": camembert, "mpnet": mpnet, "modernbert": modernbert,
    "deberta-v2": deberta_v2, "albert": albert, "gemma3_text": gemma,
}  # fmt: skip


def write_kind(folder: Path, kind: str, *, told: bool = True, **config: Any) -> int:
    """Write a kind's tokenizer.json, and with `told` its tokenizer_config.json; the number of its tokens."""
    tokenizer, names = (KINDS | {"t5": t5})[kind]()  # T5's has no mask
    tokenizer.add_special_tokens([AddedToken(name, special=True) for role, name in names.items() if role != "mask"])
    if "mask" in names:
        tokenizer.add_special_tokens([AddedToken(names["mask"], lstrip=kind != "deberta-v2", special=True)])
    tokenizer.save(str(folder / "tokenizer.json"))
    settings = {f"{role}_token": name for role, name in names.items()} | config
    if told:
        write_json(folder / "tokenizer_config.json", settings)
    return tokenizer.get_vocab_size()
