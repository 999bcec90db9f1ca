"""Folders as other tools wrote them: each runs as transformers reads it, or the message says what is true of it."""

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.checkpoints import make
from helpers.family_checkpoints import make_family
from helpers.json_files import change_json
from helpers.terminal import bertcli as run
from safetensors.numpy import load_file, save_file

import bertcli
from bertcli.folder.hub import sample

IDS = np.array([[5, 17, 30, 42, 9, 77]])
NAMED = {"0": "negative", "1": "positive"}


def change(folder: Path, tensors: dict[str, Any] | None = None, **config: Any) -> Path:
    """Put other tensors into a folder, and keys over those of its config.json."""
    if tensors is not None:
        save_file({name: np.ascontiguousarray(values) for name, values in tensors.items()}, folder / WEIGHTS)
    file = folder / "config.json"
    change_json(file, config)
    return folder


WEIGHTS = "model.safetensors"


@pytest.mark.parametrize("prefix", ["_orig_mod.", "module.", "_orig_mod.module.", "module._orig_mod."])
def test_what_wrappers_of_pytorch_put_before_names_is_taken_out(tmp_path: Path, prefix: str) -> None:
    plain = shutil.copytree(sample("bert-mini-mlm"), tmp_path / "plain")
    tensors = load_file(plain / WEIGHTS)
    wrapped = change(shutil.copytree(plain, tmp_path / "wrapped"), {prefix + name: x for name, x in tensors.items()})
    expected, result = (run("fill-mask", "hot [MASK].", "-m", at, "--format", "json") for at in (plain, wrapped))
    assert result.status == 0, result.err
    assert result.out == expected.out


def test_a_part_of_a_model_that_was_compiled_is_read(tmp_path: Path) -> None:
    folder = make(tmp_path / "model")
    expected = bertcli.load(folder).outputs(IDS)["hidden"]
    tensors = {
        name.replace("encoder.", "encoder._orig_mod."): values for name, values in load_file(folder / WEIGHTS).items()
    }
    np.testing.assert_array_equal(bertcli.load(change(folder, tensors)).outputs(IDS)["hidden"], expected)


@pytest.mark.parametrize("family", ["t5", "mt5", "umt5"])
def test_t5s_table_is_the_encoders_then_the_shared_then_the_decoders(tmp_path: Path, family: str) -> None:
    """The order is that of transformers 5.16. MADLAD's files have the decoder's table and an untied lm_head only."""
    folder = make_family(tmp_path / "model", family)
    expected = bertcli.load(folder).outputs(IDS)["hidden"]
    stored = load_file(folder / WEIGHTS)
    table, other = stored.pop("shared.weight"), stored["encoder.final_layer_norm.weight"] * np.ones((120, 1), "f4")
    names = ("encoder.embed_tokens.weight", "shared.weight", "decoder.embed_tokens.weight")
    for first in range(3):
        tables = {name: table if number == first else other for number, name in enumerate(names) if number >= first}
        change(folder, stored | tables | {"lm_head.weight": other})
        np.testing.assert_array_equal(bertcli.load(folder).outputs(IDS)["hidden"], expected, names[first])
        result = run("info", folder)
        assert result.status == 0, result.err
        assert "unused" not in result.out + result.err


@pytest.mark.parametrize(
    ("rows", "config", "labels"),
    [
        (5, {"num_labels": 5, "id2label": NAMED}, [f"LABEL_{number}" for number in range(5)]),
        (2, {"num_labels": 5, "id2label": NAMED}, [*NAMED.values()]),
        (2, {"num_labels": 2, "id2label": {str(number): f"x{number}" for number in range(5)}}, ["LABEL_0", "LABEL_1"]),
        (2, {"num_labels": None, "id2label": NAMED}, [*NAMED.values()]),
    ],
)
def test_num_labels_counts_where_id2label_has_another_number(
    tmp_path: Path, rows: int, config: dict[str, Any], labels: list[str]
) -> None:
    """As in transformers 5, unless the tensor has as many rows as there are names."""
    folder = shutil.copytree(sample("bert-mini-sentiment"), tmp_path / "model")
    tensors = load_file(folder / WEIGHTS)
    for name in ("classifier.weight", "classifier.bias"):
        tensors[name] = np.concatenate([tensors[name]] * 3)[:rows]
    change(folder, tensors, **config)
    result = run("classify", "a good film", "-m", folder, "--top-k", str(rows), "--format", "json")
    assert result.status == 0, result.err
    assert sorted(label["label"] for label in result.json[0]["labels"]) == sorted(labels)
    for command in ("info", "params"):
        assert run(command, *(["-m"] if command == "params" else []), folder).status == 0


def test_pruned_heads_are_named(tmp_path: Path) -> None:
    folder = shutil.copytree(sample("bert-mini-mlm"), tmp_path / "model")
    tensors = load_file(folder / WEIGHTS)
    for name in ("query", "key", "value"):
        stem = f"bert.encoder.layer.0.attention.self.{name}"
        tensors |= {f"{stem}.weight": tensors[f"{stem}.weight"][:192], f"{stem}.bias": tensors[f"{stem}.bias"][:192]}
    change(folder, tensors, pruned_heads={"0": [1]})
    for arguments in (["fill-mask", "hot [MASK].", "-m"], ["params", "-m"], ["params", "--config"]):
        result = run(*arguments, folder)
        assert result.status == 1
        assert "pruned_heads is {'0': [1]}: these attention heads were cut out" in result.error
    unpruned: list[dict[str, list[int]]] = [{}, {"0": []}]
    for pruned in unpruned:
        change(folder, load_file(sample("bert-mini-mlm") / WEIGHTS), pruned_heads=pruned)
        assert run("fill-mask", "hot [MASK].", "-m", folder).status == 0


def test_what_a_whole_folder_lacks_is_not_to_be_fetched_again(tmp_path: Path) -> None:
    """Files that are missing or damaged may be fetched again; files that do not fit each other are as they are."""
    source = sample("bert-mini-sentence")
    tensors = load_file(source / WEIGHTS)
    name = "encoder.layer.0.output.dense.weight"
    short = {key: values for key, values in tensors.items() if not key.endswith(name)}

    def lacking(folder: Path) -> None:
        change(folder, short)

    def wider(folder: Path) -> None:
        change(folder, intermediate_size=77)

    def fewer(folder: Path) -> None:
        word = next(key for key in tensors if key.endswith("word_embeddings.weight"))
        change(folder, tensors | {word: tensors[word][:50]}, vocab_size=50)

    def modules(folder: Path) -> None:
        (folder / "modules.json").write_text('{"0": "Transformer"}')

    def pooling(folder: Path) -> None:
        (folder / "1_Pooling" / "config.json").write_text('{"pooling_mode": 7}')

    def tokenizer(folder: Path) -> None:
        for file in ("tokenizer.json", "vocab.txt"):
            (folder / file).unlink(missing_ok=True)

    expected = {
        lacking: "the weights are not those of this config.json",
        wider: "the weights are not those of this config.json",
        fewer: "they are not of one model",
        modules: "is not a list of modules",
        pooling: "use another model",
        tokenizer: "put those of the model that it was trained from into the folder",
    }
    for number, (damage, message) in enumerate(expected.items()):
        folder = shutil.copytree(source, tmp_path / str(number))
        damage(folder)
        result = run("encode", "tea", "-m", folder, "--format", "json")
        assert result.status == 1
        assert message in result.error
        assert "fetch" not in result.error
