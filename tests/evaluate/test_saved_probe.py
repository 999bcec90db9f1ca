"""Saved probes: models that classify as the probe does, in transformers, too (`tests/reference/record_probe.py`)."""

import json
import logging
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import Made
from helpers.adapters import write_lora
from helpers.family_checkpoints import FAMILIES
from helpers.sentence_folders import write_folder
from helpers.static_models import write_static
from helpers.terminal import bertcli
from reference.patch_cases import folder_of
from reference.probe_cases import ASKED, DATA, HOLDING, MODEL, REFUSED, labelled, reviews, saved

import bertcli as library
from bertcli.errors import BertcliError
from bertcli.evaluate import saved_probe
from bertcli.evaluate.logistic import STRENGTHS, fits
from bertcli.evaluate.saved_probe import Head, find_head
from bertcli.folder.files import Folder
from bertcli.models.registry import families
from bertcli.weights.tensors import open_tensors

RECORDED = json.loads((Path(__file__).parents[1] / "reference" / "probe.json").read_text(encoding="utf-8"))["saved"]
LABELS = ["king", "other", "tea"]


def scores(folder: Path, texts: Any, pairs: Any = None) -> Any:
    """The probabilities [text, label] of a classifier, in the order of its labels."""
    model = library.load(folder)
    found = [{one["label"]: one["score"] for one in record["labels"]} for record in model.classify(texts, pairs)]
    return np.array([[one[label] for label in model.config.labels] for one in found])


def save(model: Any, folder: Path, *data: Any, **options: Any) -> Path:
    library.probe(model, *(data or labelled()), folds=3, save=str(folder), **options)
    return folder


@pytest.mark.parametrize("layer", [1, 2])
@pytest.mark.parametrize("family", HOLDING)
def test_a_saved_probe_says_what_transformers_says_of_its_folder(family: str, layer: int, tmp_path: Path) -> None:
    folder = saved(tmp_path, family, layer)
    model = library.load(folder)
    assert (model.config.num_hidden_layers, model.config.labels, model.notes) == (layer, LABELS, ())
    found, expected = scores(folder, ASKED), np.array(RECORDED[f"{family}-{layer}"])
    np.testing.assert_allclose(found, expected, atol=2e-4)
    assert (found.argmax(axis=1) == expected.argmax(axis=1)).all()


def test_a_saved_bundled_model_says_what_the_pipeline_says(tmp_path: Path) -> None:
    folder = tmp_path / "made"
    left = bertcli("probe", "-i", DATA, "-m", MODEL, "--save", folder)
    assert f"Note: {folder} holds the probe of layer 4: bertcli classify -m {folder}." in left.err.splitlines()
    assert "Note: to be saved, probes read what BERT's classification head reads: pooling cls." in left.err
    texts, _ = reviews()
    found = [record["labels"][0] for record in library.load(folder).classify(texts)]
    assert [one["label"] for one in found] == [label for label, _ in RECORDED["pipeline"]]
    np.testing.assert_allclose([one["score"] for one in found], [score for _, score in RECORDED["pipeline"]], atol=2e-4)
    assert len(bertcli("classify", "-m", folder, texts[0], "--format", "json").out) > 0


@pytest.mark.parametrize("family", ["bert", "distilbert", "deberta-v2", "jina_bert"])
def test_a_saved_probe_is_the_regression_on_what_its_head_reads(family: str, tmp_path: Path) -> None:
    """On all texts and to the last digits, whatever stands between the pooled state and the labels."""
    model = library.load(folder_of(tmp_path / family, family, "model"))
    texts, labels = labelled()
    folder = save(model, tmp_path / "saved", texts, labels, layer=1)
    states = model.encode(texts, layer=1, pooling="cls", normalize=False)
    names, y = np.unique(labels, return_inverse=True)
    found = scores(folder, texts)
    distances = [np.abs(found - fit.probabilities(states)).max() for fit in fits(states, y, len(names), STRENGTHS)]
    assert min(distances) < 1e-5


def test_a_saved_probe_of_a_pre_norm_model_reads_normed_states(tmp_path: Path) -> None:
    model = library.load(folder_of(tmp_path / "esm", "esm", "model"))
    texts, labels = labelled()
    folder = save(model, tmp_path / "saved", texts, labels, layer=1)
    _, y = np.unique(labels, return_inverse=True)
    found = scores(folder, texts)
    for normed in (True, False):
        states = model.encode(texts, layer=1, pooling="cls", normalize=False)
        states = np.asarray(model.network.final_norm(states)) if normed else states
        distances = [np.abs(found - fit.probabilities(states)).max() for fit in fits(states, y, 3, STRENGTHS)]
        assert (min(distances) < 1e-5) == normed


@pytest.mark.parametrize(("pooling", "read"), [("bos", "cls"), ("mean", "mean"), ("late", "mean")])
def test_eurobert_pools_what_its_config_says(pooling: str, read: str, tmp_path: Path) -> None:
    folder = folder_of(tmp_path / "eurobert", "eurobert", "model")
    config = json.loads((folder / "config.json").read_text()) | {"classifier_pooling": pooling}
    (folder / "config.json").write_text(json.dumps(config))
    model = library.load(folder)
    assert find_head(model.config) == Head("classifier.dense", "gelu", read)
    texts, labels = labelled()
    made = save(model, tmp_path / "saved", texts, labels, layer=2)
    states = model.encode(texts, pooling=read, normalize=False)  # type: ignore[arg-type]
    _, y = np.unique(labels, return_inverse=True)
    found = scores(made, texts)
    assert min(np.abs(found - fit.probabilities(states)).max() for fit in fits(states, y, 3, STRENGTHS)) < 1e-5


def test_pairs_are_saved_as_pairs(made: Made, tmp_path: Path) -> None:
    texts, labels = labelled()
    folder = save(library.load(made(seed=7, tokenizer="both")), tmp_path / "saved", texts, labels, texts[::-1])
    assert not np.allclose(scores(folder, texts[:5]), scores(folder, texts[:5], texts[:5]), atol=1e-4)


def test_a_saved_folder_holds_the_layers_up_to_its_own_and_a_head(made: Made, tmp_path: Path) -> None:
    source = made(head="classifier", seed=7, tokenizer="both", id2label={0: "a", 1: "b"}, dtype="F16", naming="plain")
    folder = save(library.load(source), tmp_path / "saved", layer=1)
    tensors = open_tensors(Folder(folder))
    assert {name.split(".")[0] for name in tensors} == {"bert", "classifier"}
    assert {name.split(".")[3] for name in tensors if "encoder" in name} == {"0"}
    assert {"bert.pooler.dense.weight", "bert.pooler.dense.bias", "classifier.weight", "classifier.bias"} < {*tensors}
    assert {tensor.dtype for tensor in tensors.values()} == {"F32"}
    config = json.loads((folder / "config.json").read_text())
    assert config["architectures"] == ["BertForSequenceClassification"]
    assert (config["num_hidden_layers"], config["num_labels"]) == (1, 3)
    assert config["id2label"] == {"0": "king", "1": "other", "2": "tea"}
    assert config["label2id"] == {"king": 0, "other": 1, "tea": 2}
    assert (config["problem_type"], config["dtype"]) == ("single_label_classification", "float32")
    assert sorted(file.name for file in tmp_path.iterdir()) == ["saved"]


def test_files_of_older_names_are_saved_under_the_newer_ones(made: Made, tmp_path: Path) -> None:
    folder = save(
        library.load(made(seed=7, tokenizer="vocab", naming="prefixed_gamma_beta")), tmp_path / "saved", layer=2
    )
    names = {*open_tensors(Folder(folder))}
    assert "bert.encoder.layer.1.output.LayerNorm.weight" in names
    assert not any("gamma" in name for name in names)
    assert {"tokenizer.json", "tokenizer_config.json", "vocab.txt"} <= {file.name for file in folder.iterdir()}


def test_a_sentence_model_s_limit_stays_and_its_prompt_does_not_count(made: Made, tmp_path: Path) -> None:
    model = library.load(write_folder(tmp_path / "mpnet", "mpnet"))
    folder = save(model, tmp_path / "saved")
    assert not (folder / "modules.json").exists()
    assert json.loads((folder / "tokenizer_config.json").read_text())["model_max_length"] == 30
    (record,) = library.load(folder).classify(["king " * 60], truncation="silent")
    assert record["truncated"]
    short = save(model, tmp_path / "short", max_length=12)
    assert json.loads((short / "tokenizer_config.json").read_text())["model_max_length"] == 12


def test_families_whose_head_cannot_hold_a_probe_are_refused_by_name(tmp_path: Path) -> None:
    texts, labels = labelled()
    for family in REFUSED:
        model = library.load(folder_of(tmp_path / family, family, "model"))
        with pytest.raises(BertcliError, match="ModernBERT, Gemma 3, Qwen3 and static models") as caught:
            library.probe(model, texts, labels, save=str(tmp_path / "x"))
        assert str(caught.value).startswith(f"{model.config.title} has no classification head")
    static = tmp_path / "static"
    static.mkdir()
    write_static(static, "root")
    with pytest.raises(BertcliError, match="a static model has no classification head"):
        library.probe(library.load(static), texts, labels, save=str(tmp_path / "x"))
    assert not (tmp_path / "x").exists()


def test_the_message_names_every_family_that_cannot() -> None:
    configs = [next(iter(member.variants.values())) for member in families() if member.names and member.variants]
    unable = {config.title for config in configs if find_head(config) is None}
    assert unable == {"ModernBERT", "Gemma 3", "Qwen3"}
    assert {config.model_type for config in configs} >= {*HOLDING} | {*REFUSED} - {"gte"}
    assert len(FAMILIES) > len(HOLDING)


def test_what_cannot_be_saved_is_refused_before_any_work(made: Made, tmp_path: Path, monkeypatch: Any) -> None:
    model, (texts, labels) = library.load(made(seed=7, tokenizer="both")), labelled()
    monkeypatch.setattr("bertcli.evaluate.probe.results", None)
    many = [f"label {i % 17}" for i in range(40)]
    new = str(tmp_path / "new")
    (tmp_path / "file").write_text("x")
    for own, options, message in (
        (labels, {"save": str(tmp_path)}, "is there already: give the name of a new folder"),
        (labels, {"save": str(tmp_path / "file")}, "is there already"),
        (labels, {"save": str(tmp_path / "no" / "where")}, "there is no folder"),
        (labels, {"save": new, "layer": 0}, "save one of 1 to 2"),
        (many, {"save": new}, "room for a probe of 16 labels"),
    ):
        with pytest.raises(BertcliError, match=message):
            library.probe(model, texts, own, **options)
    assert saved_probe.head_of(model, 16).dense == "pooler.dense", "16 have room"
    base, adapter = write_lora(tmp_path / "lora", "bert")
    with pytest.raises(BertcliError, match="a model with an adapter cannot be saved"):
        library.probe(library.load(base, adapter=adapter), texts, labels, save=new)
    assert sorted(file.name for file in tmp_path.iterdir()) == ["file", "lora"]


def test_a_model_that_would_say_something_else_is_not_written(
    made: Made, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = library.load(made(seed=7, tokenizer="both"))
    monkeypatch.setattr(saved_probe, "SCALE", 2.0)  # where tanh is not linear
    with pytest.raises(BertcliError, match="would not say what the probe says"):
        save(model, tmp_path / "saved")
    assert not list(tmp_path.iterdir())


def test_nothing_is_left_where_writing_fails(made: Made, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = library.load(made(seed=7, tokenizer="both"))

    def full(*_: Any) -> None:
        assert not (tmp_path / "saved").exists()
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(BertcliError, match="saved: No space left on device"):
        save(model, tmp_path / "saved")
    assert not list(tmp_path.iterdir())


def test_tanh_is_nearly_linear_and_keeps_the_order() -> None:
    """What the docstring of `saved_probe` promises."""
    z = np.linspace(-10, 10, 2001, dtype=np.float32)
    scaled = np.tanh(np.float32(saved_probe.SCALE) * z)
    again = (scaled - np.tanh(-np.float32(saved_probe.SCALE) * z)) / np.float32(2 * saved_probe.SCALE)
    assert np.abs(again / np.where(z == 0, 1, z) - (z != 0)).max() < 2.5e-6
    assert (np.diff(again) > 0).all()


def test_the_best_layer_that_can_be_saved_is(made: Made, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "bertcli")
    model = library.load(made(seed=7, tokenizer="both"))
    view = library.probe(model, *labelled(), folds=3, save=str(tmp_path / "saved"))
    accuracies = [layer.accuracy.value for layer in view.layers]
    best = max((1, 2), key=lambda layer: accuracies[layer])
    assert library.load(tmp_path / "saved").config.num_hidden_layers == best == view.shown
    assert f"holds the probe of layer {best}" in caplog.messages[-1]
