"""Tokenizers from their families' own files: equal to transformers'; damaged ones are refused in one line."""

import logging
from pathlib import Path
from typing import Any

import pytest
from helpers.json_files import read_json, write_json
from helpers.opened_folders import tokenizer_of
from helpers.recorded import recorded
from helpers.tokenizer_kinds import byte_pairs
from helpers.vocabulary import pieces, write_vocabulary
from reference.vocabulary_cases import FOLDERS, MODELS, PAIRS, TEXTS, write_folder
from tokenizers import pre_tokenizers

from bertcli.errors import BertcliError
from bertcli.models.bert import BertConfig
from bertcli.tokens import Tokenizer, Tokens
from bertcli.tokens.slow import VocabularyPiece, parse_model

GOLDEN = recorded("vocabularies.json")
MADE = [name for name, folder in FOLDERS.items() if folder.vocabulary not in ("cased json", "kind")]


def encoded(tokenizer: Tokenizer) -> list[Tokens]:
    return [*tokenizer.encode(TEXTS), *tokenizer.encode([text for text, _ in PAIRS], [pair for _, pair in PAIRS])]


@pytest.mark.parametrize("name", FOLDERS)
def test_vocabularies_equal_transformers(name: str, tmp_path: Path) -> None:
    for tokens, (ids, segments, starts, ends) in zip(
        encoded(tokenizer_of(write_folder(tmp_path, name))), GOLDEN[name], strict=True
    ):
        assert tokens.ids == ids
        if name != "esm":
            assert tokens.offsets == [*zip(starts, ends, strict=True)]
        if name not in ("esm", "mpnet"):  # whose models have no segments
            assert tokens.segments == segments


def test_vocabularies_of_letters_have_offsets(tmp_path: Path) -> None:
    (tokens,) = tokenizer_of(write_folder(tmp_path, "esm")).encode(["MKT x<mask>"])
    assert tokens.pieces == ["<cls>", "M", "K", "T", "<unk>", "<mask>", "<eos>"]
    assert tokens.offsets == [(0, 0), (0, 1), (1, 2), (2, 3), (4, 5), (5, 11), (0, 0)]


@pytest.mark.parametrize("name", MADE)
def test_vocabularies_saved_as_tokenizer_json_are_the_same(name: str, tmp_path: Path) -> None:
    first = tokenizer_of(write_folder(tmp_path, name))
    first.save(tmp_path)
    saved = read_json(tmp_path / "tokenizer_config.json")
    assert saved["tokenizer_class"] == FOLDERS[name].small.get("tokenizer_config.json", {}).get(
        "tokenizer_class", FOLDERS[name].config.get("tokenizer_class", "PreTrainedTokenizerFast")
    )
    second = tokenizer_of(tmp_path)
    assert (tmp_path / "tokenizer.json").exists()
    for one, other in zip(encoded(first), encoded(second), strict=True):
        assert (one.ids, one.offsets, one.segments) == (other.ids, other.offsets, other.segments)


@pytest.mark.parametrize("name", [name for name in MADE if "qwen" not in name and "t5" not in name])  # which lack most
def test_vocabularies_have_special_tokens_by_role(name: str, tmp_path: Path) -> None:
    tokenizer = tokenizer_of(write_folder(tmp_path, name))
    (tokens,) = tokenizer.encode([f"tea {tokenizer.mask_token}"])
    assert [tokens.ids[0], *tokens.ids[-2:]] == [tokenizer.special_id(role) for role in ("cls", "mask", "sep")]
    assert None not in (tokenizer.special_id("pad"), tokenizer.special_id("unk"))


def test_vocabularies_that_do_not_fit_the_embedding(tmp_path: Path) -> None:
    write_folder(tmp_path, "xlm-roberta")
    with pytest.raises(BertcliError, match="vocabulary has 122 pieces, but the model has 121 embeddings"):
        tokenizer_of(tmp_path, BertConfig(vocab_size=121))
    assert tokenizer_of(tmp_path, BertConfig(vocab_size=122)).vocab_size == 122


# ------------------------------------------------------------------------------------- which class, and what is missing


@pytest.mark.parametrize("kind", ["BertJapaneseTokenizer", "PhobertTokenizer", "PreTrainedTokenizerFast"])
@pytest.mark.parametrize("file", ["tokenizer_config.json", "config.json"])
def test_vocabularies_of_classes_that_need_tokenizer_json(tmp_path: Path, kind: str, file: str) -> None:
    write_vocabulary(tmp_path, pieces())
    write_json(tmp_path / file, {"tokenizer_class": kind})
    with pytest.raises(BertcliError, match=rf"has a '{kind}' without a tokenizer\.json, from"):
        tokenizer_of(tmp_path)


def test_vocabularies_of_a_type_that_has_others_are_read_by_the_class_that_is_named(tmp_path: Path) -> None:
    """As in rxnmapper's folder: ALBERT with vocab.txt, and `{}` as tokenizer_config.json."""
    write_vocabulary(tmp_path, pieces())
    (tmp_path / "config.json").write_text('{"model_type": "albert"}')
    (tmp_path / "tokenizer_config.json").write_text("{}")
    with pytest.raises(BertcliError, match="BertTokenizer"):
        tokenizer_of(tmp_path)
    (tmp_path / "tokenizer_config.json").write_text('{"tokenizer_class": "BertTokenizer"}')
    assert tokenizer_of(tmp_path).encode(["hot tea"])[0].pieces == ["[CLS]", "hot", "tea", "[SEP]"]


def test_vocabularies_of_another_model_type_are_word_pieces(tmp_path: Path) -> None:
    write_vocabulary(tmp_path, pieces())
    (tmp_path / "config.json").write_text('{"model_type": "ernie"}')
    assert tokenizer_of(tmp_path).encode(["hot tea"])[0].pieces == ["[CLS]", "hot", "tea", "[SEP]"]


@pytest.mark.parametrize(
    ("config", "files", "message"),
    [
        (
            {"model_type": "xlm-roberta"},
            ("vocab.txt",),
            r"has vocab\.txt, and no sentencepiece\.bpe\.model, which a model of its type has: if these are a "
            r'BertTokenizer\'s files, write \{"tokenizer_class": "BertTokenizer"\} into tokenizer_config\.json\.',
        ),
        (
            {"model_type": "albert"},
            ("vocab.json", "merges.txt"),
            r'has vocab\.json with merges\.txt, and no spiece\.model, .* write \{"tokenizer_class": "RobertaTokenizer"',
        ),
        (
            {"model_type": "roberta"},
            ("vocab.json",),
            r"neither tokenizer\.json nor vocab\.json with merges\.txt: put",
        ),
        ({"tokenizer_class": "DebertaV2TokenizerFast"}, (), r"neither tokenizer\.json nor spm\.model: put"),
        ({"model_type": "roberta"}, ("vocab.txt", "bpe.codes"), r"bpe\.codes \(BERTweet, PhoBERT\)"),
        ({}, (), r"neither tokenizer\.json nor vocab\.txt: put"),
    ],
)
def test_vocabularies_that_are_not_there(
    config: dict[str, Any], files: tuple[str, ...], message: str, tmp_path: Path
) -> None:
    write_json(tmp_path / "config.json", config)
    for name in files:
        (tmp_path / name).write_text("{}")
    with pytest.raises(BertcliError, match=message) as caught:
        tokenizer_of(tmp_path)
    assert "\n" not in str(caught.value)


# --------------------------------------------------------------------------------------------------------- the `.model`


def field(number: int, value: bytes | int) -> bytes:
    """A field of a protocol buffer: a short number, or bytes."""
    tag = number << 3 | (0 if isinstance(value, int) else 2)
    begin = bytes([tag] if tag < 128 else [tag & 127 | 128, tag >> 7])
    return begin + (bytes([value]) if isinstance(value, int) else bytes([len(value)]) + value)


A_PIECE = field(1, field(1, "▁é".encode()) + b"\x15\x00\x00\x20\xc1")  # of the score -10


def test_vocabularies_model_is_read_as_it_stands() -> None:
    found = parse_model((MODELS / "spm.model").read_bytes())
    assert found.pieces[:4] == [
        VocabularyPiece("[PAD]", 0, 3),
        VocabularyPiece("[CLS]", 0, 3),
        VocabularyPiece("[SEP]", 0, 3),
        VocabularyPiece("[UNK]", 0, 2),
    ]
    assert (found.unk_id, len(found.pieces), found.charsmap[:4]) == (3, 120, b"\0\4\0\0")
    unknown = field(99, b"x") + field(98, 7) + b"\x2d" + bytes(4)  # fields that it does not know
    made = parse_model(unknown + A_PIECE + A_PIECE + field(2, field(40, 1) + unknown))
    assert made == ([VocabularyPiece("▁é", -10, 1)] * 2, 1, b"")


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "its unknown piece is number 0 of 0"),
        (A_PIECE[:-1], "ends within a field"),
        (A_PIECE + b"\x80", "ends within a number"),
        (A_PIECE + b"\xff" * 11, "ends within a number"),
        (A_PIECE + b"\x0b", "no field ends with byte"),
        (A_PIECE + field(1, 5), "a number stands where bytes belong"),
        (A_PIECE + field(1, field(1, b"")), "a piece is ''"),
        (A_PIECE + field(1, field(1, b"\xff")), "invalid start byte"),
        (A_PIECE + field(1, field(1, b"a") + b"\x15\x00\x00\xc0\x7f"), "a piece is 'a' with the score nan"),
        (A_PIECE + field(1, field(1, b"a") + field(2, b"abcd")), "with the score b'abcd'"),
        (A_PIECE + field(2, field(3, 2)), "not a Unigram model, but one of byte pairs"),
        (A_PIECE + field(2, field(3, 4)), "not a Unigram model"),
        (A_PIECE + field(2, field(40, 1)), "its unknown piece is number 1 of 1"),
        (A_PIECE + field(2, field(40, b"")), "its unknown piece is number b'' of 1"),
        (b"<!DOCTYPE html>", "no field ends"),
        (b"version https://git-lfs.github.com/spec/v1\n", "is a Git LFS pointer, not the file"),
    ],
)
def test_vocabularies_model_that_is_damaged(data: bytes, message: str, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"model_type": "albert"}')
    (tmp_path / "spiece.model").write_bytes(data)
    with pytest.raises(BertcliError, match=message) as caught:
        tokenizer_of(tmp_path)
    assert "spiece.model" in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("vocabulary", "merges", "message"),
    [
        (b'{"<s>": 0, "</s>": 1, "a": 2}', b"#version: 0.2\na b\n", "out of vocabulary"),
        (b'{"<s>": 0, "</s>": 1, "a": 2, "b": 3}', b"#version: 0.2\na b c\n", "cannot be made of its files"),
        (b'{"a": 0}', b"#version: 0.2\n", "lacks <s> or </s>"),
        (b"[1, 2]", b"#version: 0.2\n", "cannot be made of its files"),
        (b'{"<s>": 0, "</s>": -1}', b"", "cannot be made of its files"),
        (b"\xff", b"", "cannot be made of its files"),
    ],
)
def test_vocabularies_of_byte_pairs_that_are_damaged(
    vocabulary: bytes, merges: bytes, message: str, tmp_path: Path
) -> None:
    (tmp_path / "config.json").write_text('{"model_type": "roberta"}')
    (tmp_path / "vocab.json").write_bytes(vocabulary)
    (tmp_path / "merges.txt").write_bytes(merges)
    with pytest.raises(BertcliError, match=message) as caught:
        tokenizer_of(tmp_path)
    assert "\n" not in str(caught.value)


# ------------------------------------------------------------------- tokenizer_config.json, and who wrote a folder


def test_vocabularies_overruled_by_tokenizer_config_say_so(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "bertcli")
    tokenizer_of(write_folder(tmp_path, "distilbert, overruled"))
    assert [message.partition("tokenizer.json ")[2] for message in caplog.messages] == [
        "is read with lowercase true, as transformers does (tokenizer_config.json)."
    ]


@pytest.mark.parametrize(
    ("tokenizer_class", "version", "segment"),
    [
        ("PreTrainedTokenizerFast", "4.57.6", 1),
        ("PreTrainedTokenizerFast", "5.2.0", 0),
        ("PreTrainedTokenizerFast", None, 1),
        ("TokenizersBackend", None, 0),
        ("AlbertTokenizer", "4.1.0", 1),
        ("AlbertTokenizer", "5.0.0", 0),
        ("BertTokenizer", "5.0.0", None),
    ],
)
def test_vocabularies_give_segments_as_the_version_that_wrote_them(
    tokenizer_class: str, version: str | None, segment: int | None, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    write_folder(tmp_path, "bert, not overruled")
    write_json(tmp_path / "tokenizer_config.json", {"tokenizer_class": tokenizer_class})
    write_json(tmp_path / "config.json", {"model_type": "bert", "transformers_version": version})
    caplog.set_level(logging.INFO, "bertcli")
    tokenizer = tokenizer_of(tmp_path, BertConfig(vocab_size=1000))
    caplog.clear()
    tokenizer.encode(["tea"])
    assert not caplog.messages
    for _ in range(2):
        (tokens,) = tokenizer.encode(["tea"], ["hot"])
        assert tokens.segments == [0, 0, 0, *[1 if segment is None else segment] * 2]
    said = [f"The second text of a pair has segment {segment}" in message for message in caplog.messages]
    assert said == ([] if segment is None else [True])
    for second, inputs in enumerate((["input_ids"], ["input_ids", "token_type_ids"])):
        said_so = {"tokenizer_class": tokenizer_class, "model_input_names": inputs}
        write_json(tmp_path / "tokenizer_config.json", said_so)
        assert tokenizer_of(tmp_path).encode(["tea"], ["hot"])[0].segments == [0, 0, 0, second, second]


def test_vocabularies_of_deberta_are_byte_pairs_in_berts_frame(tmp_path: Path) -> None:
    made = byte_pairs(["[CLS]", "[PAD]", "[SEP]", "[UNK]", "[MASK]"])
    made.model.save(str(tmp_path))
    (tmp_path / "config.json").write_text('{"model_type": "deberta"}', encoding="utf-8")
    tokenizer = tokenizer_of(tmp_path)
    alone, pair, masked = (
        tokenizer.encode([text], [other])[0] for text, other in (("hot tea", None), ("hot", "tea"), ("a [MASK]", None))
    )
    assert alone.pieces == ["[CLS]", "hot", "Ġtea", "[SEP]"]
    assert (pair.pieces, pair.segments) == (["[CLS]", "hot", "[SEP]", "tea", "[SEP]"], [0, 0, 0, 1, 1])
    assert masked.pieces == ["[CLS]", "a", "[MASK]", "[SEP]"]  # the mask takes the space before it
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    for text in TEXTS[:11]:
        assert tokenizer.encode([text])[0].ids[1:-1] == made.encode(text).ids
