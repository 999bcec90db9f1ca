"""What fuzzing found, one test each, so that it stays fixed."""

from __future__ import annotations

import json
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from checkpoints import Dense, Sentence, make

from bertcli.config_file import read_config
from bertcli.errors import BertcliError
from bertcli.inputs import from_files
from bertcli.search import open_vectors
from bertcli.sentence import read_sentence_config
from bertcli.tensors import open_tensors
from bertcli.tokens import Tokenizer
from bertcli.tokens.checks import library_errors
from bertcli.untrusted import VOCABULARY_LIMIT

BERT = {"vocab_size": 9, "hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 8}


@pytest.mark.parametrize("key", ["model_type", "position_embedding_type", "hidden_act"])
@pytest.mark.parametrize("value", ["a" * 5000, ["b" * 5000], {"c" * 5000: 1}])
def test_a_long_value_in_a_config_does_not_flood_the_message(key: str, value: Any, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps(BERT | {key: value}), encoding="utf-8")
    with pytest.raises(BertcliError) as caught:
        read_config(tmp_path / "config.json")
    assert len(str(caught.value).replace(str(tmp_path), "")) < 400


def test_a_long_architecture_does_not_flood_the_message(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps(BERT | {"architectures": ["x" * 5000]}), encoding="utf-8")
    with pytest.raises(BertcliError) as caught:
        read_config(tmp_path / "config.json")
    assert len(str(caught.value).replace(str(tmp_path), "")) < 400


def read_small_file(path: Path) -> None:
    if path.name == "config.json":
        read_config(path)
    read_sentence_config(path.parent)
    Tokenizer.open(path.parent)


@pytest.mark.parametrize(
    "name", ["config.json", "tokenizer.json", "vocab.txt", "tokenizer_config.json", "modules.json"]
)
def test_a_terabyte_in_a_small_file_s_place_is_not_read(name: str, tmp_path: Path) -> None:
    with (tmp_path / name).open("wb") as file:
        file.truncate(1 << 40)  # a hole
    tracemalloc.start()
    try:
        with pytest.raises(BertcliError, match=rf"{name} is larger than [0-9,]+ bytes"):
            read_small_file(tmp_path / name)
        assert tracemalloc.get_traced_memory()[1] < 2 * VOCABULARY_LIMIT
    finally:
        tracemalloc.stop()


def test_what_the_tokenizers_library_says_does_not_flood_the_message(tmp_path: Path) -> None:
    (tmp_path / "tokenizer.json").write_text(json.dumps({"version": "1.0", "model": "a" * 5000}), encoding="utf-8")
    with pytest.raises(BertcliError, match="cannot be read as a tokenizer") as caught:
        Tokenizer.open(tmp_path)
    assert len(str(caught.value).replace(str(tmp_path), "")) < 500


@pytest.mark.parametrize(
    ("step", "allowed"),
    [
        ({"type": "Replace", "pattern": {"String": "a"}, "content": "aa"}, 13),
        ({"type": "Replace", "pattern": {"Regex": "x*"}, "content": "y"}, 13),
        ({"type": "Prepend", "prepend": "▁▁▁"}, 6),
        ({"type": "Replace", "pattern": {"String": "``"}, "content": '"'}, 100),
        ({"type": "Lowercase"}, 100),
    ],
)
def test_a_tokenizer_does_not_blow_a_text_up(step: dict[str, Any], allowed: int, tmp_path: Path) -> None:
    make(tmp_path, tokenizer="json")
    document = json.loads((tmp_path / "tokenizer.json").read_text(encoding="utf-8"))
    for count in (allowed, 40):
        document["normalizer"] = {"type": "Sequence", "normalizers": [step] * count}
        (tmp_path / "tokenizer.json").write_text(json.dumps(document), encoding="utf-8")
        if count <= allowed:
            assert Tokenizer.open(tmp_path).encode(["a cat"])[0].ids
        else:
            with pytest.raises(BertcliError, match="makes texts more than 10,000 times as long"):
                Tokenizer.open(tmp_path)


def with_template(folder: Path, change: Callable[[dict[str, Any]], object]) -> Path:
    make(folder, tokenizer="json")
    document = json.loads((folder / "tokenizer.json").read_text(encoding="utf-8"))
    change(document["post_processor"])
    (folder / "tokenizer.json").write_text(json.dumps(document), encoding="utf-8")
    return folder


def test_a_template_without_its_special_tokens_does_not_panic(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(BertcliError, match=r"tokenizer\.json puts '\[SEP\]' around texts but gives it no id"):
        Tokenizer.open(with_template(tmp_path, lambda template: template["special_tokens"].pop("[SEP]")))
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize("place", [1, 3])
def test_a_template_that_leaves_a_text_out_is_refused(place: int, tmp_path: Path) -> None:
    with pytest.raises(BertcliError, match="template omits a text, or has it twice"):
        Tokenizer.open(with_template(tmp_path, lambda template: template["pair"].pop(place)))


def test_a_shape_in_a_dense_layer_s_config_does_not_flood_the_message(tmp_path: Path) -> None:
    make(tmp_path, sentence=Sentence(pooling=("mean",), dense=(Dense(4),)))
    config = json.loads((tmp_path / "2_Dense/config.json").read_text(encoding="utf-8"))
    (tmp_path / "2_Dense/config.json").write_text(json.dumps(config | {"in_features": ["a" * 5000]}), encoding="utf-8")
    with pytest.raises(BertcliError) as caught:
        read_sentence_config(tmp_path)
    assert len(str(caught.value).replace(str(tmp_path), "")) < 500


@pytest.mark.parametrize("place", [40, 60, 200])
def test_a_damaged_array_in_a_zip_is_refused(place: int, tmp_path: Path) -> None:
    np.savez_compressed(tmp_path / "v.npz", embeddings=np.arange(600, dtype=np.float32).reshape(100, 6))
    data = bytearray((tmp_path / "v.npz").read_bytes())
    data[place : place + 8] = bytes(8)
    (tmp_path / "v.npz").write_bytes(data)
    with pytest.raises(BertcliError, match="it is not a usable file of vectors"):
        list(open_vectors(str(tmp_path / "v.npz")).chunks(10))


def test_a_header_that_claims_a_petabyte_costs_nothing(tmp_path: Path) -> None:
    entry = {"dtype": "F32", "shape": [10**15 // 4], "data_offsets": [0, 10**15]}
    header = json.dumps({"a": entry}).encode()
    claims = ((10**15).to_bytes(8, "little") + b"{}", len(header).to_bytes(8, "little") + header + bytes(64))
    for content in claims:
        (tmp_path / "model.safetensors").write_bytes(content)
        tracemalloc.start()
        try:
            with pytest.raises(BertcliError, match=r"claims a header of|has 64 bytes of data but tensor"):
                open_tensors(tmp_path)
            assert tracemalloc.get_traced_memory()[1] < 100_000
        finally:
            tracemalloc.stop()


@pytest.mark.parametrize("options", [{}, {"id_column": "other"}, {"label_column": "other"}])
def test_a_number_beyond_every_float_is_a_number(options: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "t.jsonl").write_text('{"text": ' + "9" * 400 + ', "other": 1}', encoding="utf-8")
    with pytest.raises(BertcliError, match=r"line 1: the field 'text' is 9999.*, which is not a text"):
        list(from_files([str(tmp_path / "t.jsonl")], None, None, None, **options))  # type: ignore[arg-type]
    (tmp_path / "t.jsonl").write_text('{"text": "a", "other": ' + "9" * 400 + "}", encoding="utf-8")
    (row,) = from_files([str(tmp_path / "t.jsonl")], **options)  # type: ignore[arg-type]
    assert [value for value in (row.id, row.label) if value is not None] in ([], [int("9" * 400)], ["9" * 400])


def test_a_panic_of_the_tokenizers_library_is_one_line() -> None:
    panic = type("PanicException", (BaseException,), {})
    with (
        pytest.raises(BertcliError, match=r"The tokenizer failed \(no entry found\)"),
        library_errors("The tokenizer failed"),
    ):
        raise panic("no entry found")
    with pytest.raises(KeyboardInterrupt), library_errors("The tokenizer failed"):
        raise KeyboardInterrupt
