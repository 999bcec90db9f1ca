"""A WordPiece vocabulary of a few hundred real-looking pieces, and the tokenizer files that go with it."""

import json
import string
from collections.abc import Sequence
from pathlib import Path
from typing import Any

SPECIAL = ("[UNK]", "[CLS]", "[SEP]", "[MASK]")
WORDS = """the a an of and to in is it that was for on with as at by she he they we you my your his her not but or from
 had have has were be been this which one two three all no so when what who there can will would could about out up down
 into over then time day night man woman child king queen house home tea coffee hot cold cup water milk bread river city
 paris france berlin london capital country world good bad great small big old new movie film bank money bought sold
 poured drank said went came saw made loves likes walk play run token transform dog cat mat sat red blue green sky sun
 moon happy sad un hello best worst ever very strasse cafe resume naive uber"""
CASED = "The She He It Paris France Berlin London Hello I BERT USA"
FOREIGN = "é ü ñ ç ö ß café über naïve 中 国 人 你 好 世 界 北 京 м мир ש שלום م مرحبا α λογος ツ 한 ı i̇ ° ™ € 😀 … — ’"
ENDINGS = """##believ ##able ##ed ##ing ##s ##ly ##er ##est ##ness ##ning ##ize ##ization ##former ##ment ##tion ##al
 ##ies ##é ##ü ##ß ##国 ##人 ##界 ##и ##р ##ל ##ו ##😀 ##̈ ##ñ"""


def pieces() -> list[str]:
    """The vocabulary in id order: `[PAD]` is 0, four unused rows, then the other special tokens and the rest."""
    letters = list(string.digits + string.ascii_lowercase + string.ascii_uppercase)
    continued = ["##" + letter for letter in string.digits + string.ascii_lowercase]
    found = ["[PAD]", *(f"[unused{i}]" for i in range(4)), *SPECIAL, *string.punctuation, *letters, *continued]
    for words in (WORDS, CASED, FOREIGN, ENDINGS):
        found += words.split()
    return list(dict.fromkeys(found))


def write_vocabulary(folder: Path, vocabulary: Sequence[str]) -> None:
    """vocab.txt: one piece a line; its id is the line number."""
    (folder / "vocab.txt").write_text("".join(piece + "\n" for piece in vocabulary), encoding="utf-8", newline="\n")


def write_tokenizer_json(
    folder: Path,
    vocabulary: Sequence[str],
    *,
    lower_case: bool = True,
    strip_accents: bool | None = None,
    chinese: bool = True,
    mask_token: str = "[MASK]",
    baked: int | None = None,
) -> None:
    """tokenizer.json as `tokenizers` writes it; `baked` puts a truncation and a padding of that length into it."""
    ids = {piece: i for i, piece in enumerate(vocabulary)}
    special = ("[PAD]", *(mask_token if token == "[MASK]" else token for token in SPECIAL))

    def sequence(name: str, type_id: int) -> dict[str, Any]:
        return {"Sequence": {"id": name, "type_id": type_id}}

    def token(name: str, type_id: int) -> dict[str, Any]:
        return {"SpecialToken": {"id": name, "type_id": type_id}}

    single = [token("[CLS]", 0), sequence("A", 0), token("[SEP]", 0)]
    padding = {"strategy": {"Fixed": baked}, "direction": "Right", "pad_to_multiple_of": None,
               "pad_id": ids["[PAD]"], "pad_type_id": 0, "pad_token": "[PAD]"}  # fmt: skip
    truncation = {"direction": "Right", "max_length": baked, "strategy": "LongestFirst", "stride": 0}
    flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    document = {
        "version": "1.0",
        "truncation": truncation if baked else None,
        "padding": padding if baked else None,
        "added_tokens": [{"id": ids[name], "content": name} | flags for name in special],
        "normalizer": {"type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": chinese,
                       "strip_accents": strip_accents, "lowercase": lower_case},
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "post_processor": {
            "type": "TemplateProcessing",
            "single": single,
            "pair": [*single, sequence("B", 1), token("[SEP]", 1)],
            "special_tokens": {n: {"id": n, "ids": [ids[n]], "tokens": [n]} for n in ("[CLS]", "[SEP]")},
        },
        "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": True},
        "model": {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##",
                  "max_input_chars_per_word": 100, "vocab": ids},
    }  # fmt: skip
    (folder / "tokenizer.json").write_text(json.dumps(document, ensure_ascii=False), encoding="utf-8")
