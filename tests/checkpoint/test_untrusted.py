"""Damaged and hostile files of a checkpoint: refused in a short message, in little memory."""

import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from helpers.checkpoints import Dense, Sentence, make
from helpers.json_files import change_json, write_json
from helpers.opened_folders import sentence_of, tokenizer_of

from bertcli.errors import BertcliError
from bertcli.folder.files import VOCABULARY_LIMIT
from bertcli.weights.loading import read_config

BERT = {"vocab_size": 9, "hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 8}


@pytest.mark.parametrize("key", ["model_type", "hidden_act", "architectures"])
@pytest.mark.parametrize("value", ["a" * 5000, ["b" * 5000], {"c" * 5000: 1}])
def test_untrusted_values_of_a_config_do_not_flood_the_message(key: str, value: Any, tmp_path: Path) -> None:
    write_json(tmp_path / "config.json", BERT | {key: value})
    with pytest.raises(BertcliError) as caught:
        read_config(tmp_path / "config.json")
    assert len(str(caught.value).replace(str(tmp_path), "")) < 400


def test_untrusted_shape_of_a_dense_layer_does_not_flood_the_message(tmp_path: Path) -> None:
    make(tmp_path, sentence=Sentence(pooling=("mean",), dense=(Dense(4),)))
    change_json(tmp_path / "2_Dense/config.json", {"in_features": ["a" * 5000]})
    with pytest.raises(BertcliError) as caught:
        sentence_of(tmp_path)
    assert len(str(caught.value).replace(str(tmp_path), "")) < 500


def read_small_file(path: Path) -> None:
    if path.name == "config.json":
        read_config(path)
    sentence_of(path.parent)
    tokenizer_of(path.parent)


@pytest.mark.parametrize(
    "name", ["config.json", "tokenizer.json", "vocab.txt", "tokenizer_config.json", "modules.json"]
)
def test_untrusted_terabyte_in_a_small_file_s_place_is_not_read(name: str, tmp_path: Path) -> None:
    with (tmp_path / name).open("wb") as file:
        file.truncate(1 << 40)  # a hole
    tracemalloc.start()
    try:
        with pytest.raises(BertcliError, match=rf"{name} is larger than [0-9,]+ bytes"):
            read_small_file(tmp_path / name)
        assert tracemalloc.get_traced_memory()[1] < 2 * VOCABULARY_LIMIT
    finally:
        tracemalloc.stop()
