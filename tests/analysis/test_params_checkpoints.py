"""The summary of a checkpoint equals what is in its files, but for what the loader says it leaves aside."""

from collections import Counter
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import Made
from helpers.checkpoint_files import narrow, write_safetensors
from helpers.checkpoints import DTYPES, HEADS, NAMINGS, make
from helpers.family_checkpoints import FAMILIES, make_family
from helpers.opened_folders import checkpoint_of

import bertcli
from bertcli.folder.files import Folder
from bertcli.weights.tensors import open_tensors

CASES: list[dict[str, Any]] = [
    *({"head": head} for head in HEADS),
    *({"naming": naming, "head": "pretraining"} for naming in NAMINGS),
    *({"dtype": dtype, "head": "mlm"} for dtype in DTYPES),
    {"head": "mlm", "tied": "stored"},
    {"head": "mlm", "tied": "untied", "config": {"tie_word_embeddings": False}},
    {"head": "pretraining", "decoder_bias": "both", "position_ids_buffer": True},
    {"head": "classifier", "num_labels": 5},
    {"head": "pretraining", "shards": 3},
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_params_checkpoints_rows_add_up_to_the_tensors_that_are_not_ignored(made: Made, case: dict[str, Any]) -> None:
    model = bertcli.load(made(**case))
    summary = bertcli.params(model)
    counted = [use for use in model.tensor_uses if use.use != "ignored"]
    assert summary.total_params == sum(prod(use.shape) for use in counted)
    stored = {"F64": 8, "F32": 4}.get(case.get("dtype", "F32"), 2)
    assert summary.total_bytes == stored * summary.total_params


@pytest.mark.parametrize("family", FAMILIES)
def test_params_checkpoints_config_counts_the_heads_that_it_names(family: str, tmp_path: Path) -> None:
    for head in FAMILIES[family].heads:
        folder = make_family(tmp_path / head, family, head)
        model = bertcli.load(folder)
        counted = bertcli.variant(config=folder / "config.json")
        assert counted.heads == model.heads
        used = [row.params for row in bertcli.params(model).rows if row.type != "not used"]
        assert bertcli.params(counted).total_params == sum(used)


@pytest.mark.parametrize("head", HEADS)
def test_params_checkpoints_config_counts_berts_heads(head: str, made: Made) -> None:
    folder = made(head=head)
    counted = bertcli.params(bertcli.variant(config=folder / "config.json")).total_params
    assert counted == bertcli.params(bertcli.load(folder)).total_params
    bare = bertcli.variant(config=folder, heads="none")  # the folder that holds it will do
    assert bare.heads == ()


def test_params_checkpoints_a_decoder_of_its_own_counts(made: Made) -> None:
    tied = {row.path: row for row in bertcli.params(bertcli.load(made(head="mlm", tied="stored"))).rows}["mlm"]
    untied_folder = made(head="mlm", tied="untied", config={"tie_word_embeddings": False})
    untied = {row.path: row for row in bertcli.params(bertcli.load(untied_folder)).rows}["mlm"]
    assert (tied.formula, tied.tied_to) == ("V", "embeddings.token")
    assert (untied.formula, untied.tied_to) == ("V·H + V", None)
    assert untied.params == tied.params * (1 + bertcli.load(untied_folder).config.hidden_size)
    assert "embeddings" not in untied.connected_to


@pytest.mark.parametrize("dtype", ["F16", "F32"])
def test_params_checkpoints_a_decoder_of_other_values_is_kept_apart(tmp_path: Path, dtype: str) -> None:
    make(tmp_path, head="mlm", tied="stored")  # config.json says nothing of a decoder of its own
    stored = {name: ("F32", tensor.float32().copy()) for name, tensor in open_tensors(Folder(tmp_path)).items()}
    name = "cls.predictions.decoder.weight"
    doubled = 2 * stored[name][1].astype(np.float16)
    write_safetensors(tmp_path / "model.safetensors", {**stored, name: (dtype, narrow(doubled, dtype))})
    model = bertcli.load(tmp_path)
    assert model.network.mlm is not None
    np.testing.assert_array_equal(model.network.mlm.decoder, doubled.astype(np.float32))
    (use,) = (use for use in model.tensor_uses if use.name == name)
    assert use.use == "used"


def test_params_checkpoints_fewer_heads_mean_more_ignored_tensors(made: Made) -> None:
    folder = made(head="pretraining")
    whole, part = bertcli.load(folder), bertcli.load(folder, heads="none")
    assert bertcli.params(part).total_params < bertcli.params(whole).total_params
    assert Counter(use.use for use in part.tensor_uses)["ignored"] > 0


def test_params_checkpoints_every_tensor_of_the_file_is_listed_with_its_use(made: Made) -> None:
    folder = made(head="pretraining", naming="gamma_beta", tied="stored", position_ids_buffer=True)
    opened = checkpoint_of(folder)
    uses = {use.name: use for use in opened.tensor_uses}
    assert len(uses) == len(opened.tensor_uses)
    assert uses["bert.embeddings.LayerNorm.gamma"].use == "renamed"
    assert uses["bert.embeddings.LayerNorm.gamma"].path == "embeddings.norm.weight"
    assert uses["bert.embeddings.word_embeddings.weight"].use == "used"
    assert uses["bert.embeddings.position_ids"].use == uses["cls.predictions.decoder.weight"].use == "ignored"
    assert uses["cls.predictions.decoder.weight"].note == "tied to embeddings.token"


@pytest.mark.parametrize("dtype", ["F32", "BF16"])
@pytest.mark.parametrize("alike", [True, False])
def test_params_checkpoints_a_second_copy_is_one_only_if_its_values_are(
    alike: bool, dtype: str, tmp_path: Path
) -> None:
    folder = make(tmp_path / "model", naming="prefixed", dtype=dtype)
    tensors = {name: (dtype, tensor.array) for name, tensor in open_tensors(Folder(folder)).items()}
    name = "embeddings.position_embeddings.weight"
    tensors[name] = ("F32", open_tensors(Folder(folder))[f"bert.{name}"].float32() + (0 if alike else 1))
    write_safetensors(folder / "model.safetensors", tensors)
    model = bertcli.load(folder)
    (note,) = {use.note for use in model.tensor_uses if use.name.endswith(name)} - {""}
    assert note == f"{'a second copy of' if alike else 'its values differ from those of'} {name}"
    assert model.notes == (() if alike else (f"1 unused tensor in the checkpoint: bert.{name}.",))
