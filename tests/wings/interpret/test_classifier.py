"""Classifiers of your own: files that `probe -o` writes, and every command that takes them."""

import json
import logging
import pickle
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import Made
from helpers.checkpoint_files import Sentence
from helpers.checkpoints import make
from helpers.crashes import break_off
from helpers.json_files import read_json, write_json
from helpers.late_folders import write_late
from helpers.lines import write_lines
from helpers.near import assert_near
from helpers.recorded import recorded
from helpers.static_models import write_static
from helpers.terminal import bertcli, continued
from reference.probe_cases import DATA, HELD, HELD_MODEL, labelled, reviews, saved_classifier

import bertcli as library
from bertcli.errors import BertcliError
from bertcli.files.arrays import FileArray
from bertcli.files.write.save import save_stored
from bertcli.kinds.classifier.file import Classifier, read_classifier
from bertcli.wings.interpret.compute.logistic import Features

RECORDED = recorded("probe.json")["classifiers"]
LABELS = ["king", "other", "tea"]
pytestmark = pytest.mark.usefixtures("few_draws")


def scores(model: Any, texts: Any, pairs: Any = None) -> Any:
    """The probabilities [text, label] of a classifier, in the order of its labels."""
    found = [{one["label"]: one["score"] for one in record["labels"]} for record in model.classify(texts, pairs)]
    return np.array([[one[label] for label in model.config.labels] for one in found])


def with_classifier(model: Any, file: Path, **options: Any) -> library.Model:
    """A model with a classifier of one's own."""
    return library.load(f"{model}+{file}", **options)


def save(model: Any, file: Path, *data: Any, **options: Any) -> Classifier:
    library.probe(model, *(data or labelled()), folds=3, save=str(file), **options)
    return read_classifier(file)


@pytest.fixture(scope="module")
def mini(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A classifier of the reviews for HELD_MODEL, made by the command."""
    file = tmp_path_factory.mktemp("mini") / "reviews.safetensors"
    left = bertcli("probe", "-i", DATA, "-m", HELD_MODEL, "-o", file, "--layer", "2", "--pooling", "mean")
    assert left.status == 0
    assert "after layer 4" in left.out, "the table is printed"
    assert f"Wrote {file} (" in left.err
    assert f"Note: use it: bertcli classify -m {HELD_MODEL}+{file}" in left.err
    assert file.stat().st_size < 1_000_000
    return file


# ------------------------------------------------------------------------------------------------------- the numbers


@pytest.mark.parametrize("case", RECORDED, ids=lambda case: f"{case['pooling']}, layer {case['layer']}")
def test_probabilities_and_accuracy_are_those_of_scikit_learn(case: dict[str, Any], tmp_path: Path) -> None:
    made = saved_classifier(tmp_path, case["pooling"], case["layer"])
    assert (made.layer, made.pooling, made.made["C"]) == (case["layer"], (case["pooling"],), case["C"])
    model = with_classifier(HELD_MODEL, tmp_path / "made.safetensors")
    found = scores(model, reviews()[0][HELD])
    assert_near(found, case["scores"], 1e-4)
    assert (found.argmax(axis=1) == np.argmax(case["scores"], axis=1)).all(), "and so is the accuracy"


def test_a_static_model_takes_one(tmp_path: Path) -> None:
    write_static(tmp_path / "static", "root")
    save(library.load(tmp_path / "static"), tmp_path / "made.safetensors")
    found = scores(with_classifier(tmp_path / "static", tmp_path / "made.safetensors"), labelled()[0])
    np.testing.assert_allclose(found.sum(axis=1), 1)


def test_states_are_prepared_as_they_were(tmp_path: Path) -> None:
    """The prompt of a sentence model, whose tokens are not pooled, vectors of length 1, and where texts are cut."""
    folder = make(tmp_path / "model", seed=7, tokenizer="both", sentence=Sentence(("mean",), normalize=True))
    settings = {"prompts": {"document": "the king: "}, "default_prompt_name": "document"}
    write_json(folder / "config_sentence_transformers.json", settings)
    pooling = folder / "1_Pooling" / "config.json"
    write_json(pooling, {**read_json(pooling), "include_prompt": False})
    texts, labels = labelled()
    file = tmp_path / "made.safetensors"
    kept = save(library.load(folder), file, texts, labels, layer=2, normalize=True, max_length=9, truncation="silent")
    assert (kept.prompt, kept.normalize, kept.max_length) == ("the king: ", True, 9)
    assert kept.prompt_tokens > 0
    model = with_classifier(folder, file)
    states = model.encode(texts, layer=2, normalize=True, max_length=9, truncation="silent")
    expected = states.astype(np.float64) @ kept.weight.T + kept.bias
    expected = np.exp(expected) / np.exp(expected).sum(axis=1, keepdims=True)
    assert_near(scores(model, texts), expected, 1e-5)
    assert any(record["truncated"] for record in model.classify(texts))
    result = library.explain(model, texts[0])
    label = int(expected[0].argmax())
    assert result.target == LABELS[label]
    assert result.value == pytest.approx(np.log(expected[0, label] / (1 - expected[0, label])), abs=1e-4)


def test_pairs_are_read_as_pairs(made: Made, tmp_path: Path) -> None:
    folder, (texts, labels) = made(seed=7, tokenizer="both"), labelled()
    save(library.load(folder), tmp_path / "made.safetensors", texts, labels, texts[::-1])
    model = with_classifier(folder, tmp_path / "made.safetensors")
    assert not np.allclose(scores(model, texts[:5]), scores(model, texts[:5], texts[:5]), atol=1e-4)


def test_layer_and_pooling_are_chosen_on_the_folds(made: Made, tmp_path: Path) -> None:
    model, file = library.load(made(seed=7, tokenizer="both")), tmp_path / "made.safetensors"
    found = library.probe(model, *labelled(), folds=3, save=str(file))
    best = {}
    for pooling in ("mean", "cls"):
        alone = library.probe(model, *labelled(), folds=3, pooling=pooling)
        best[pooling] = max((layer.accuracy.value, -layer.layer) for layer in alone.layers)
        assert alone.record["pooling"] == pooling
    pooling = max(best, key=lambda name: best[name][0])
    kept = read_classifier(file)
    assert kept.pooling == (pooling,) == found.pooling
    assert kept.layer == -best[pooling][1] == found.chosen
    assert kept.figures["best_of"] == 6
    assert kept.figures["accuracy"]["value"] == best[pooling][0]
    assert "Best of 3 layers and 2 poolings (mean, cls), chosen on these folds" in " ".join(str(found).split())


def test_several_labels_a_text(made: Made, tmp_path: Path) -> None:
    folder, (texts, _) = made(seed=7, tokenizer="both"), labelled()
    labels = [[word for word in ("king", "tea", "dog") if word in text] for text in texts]
    assert {len(some) for some in labels} >= {0, 1, 2}
    data, file = tmp_path / "data.jsonl", tmp_path / "made.safetensors"
    rows = [json.dumps({"text": text, "label": some}) for text, some in zip(texts, labels, strict=True)]
    write_lines(data, rows)
    left = bertcli("probe", "-i", data, "-m", folder, "--layer", "1", "-o", file, "--folds", "3")
    assert left.status == 0, left.err
    assert "3 labels, of which a text may have several" in " ".join(left.out.split())
    kept = read_classifier(file)
    assert (kept.labels, kept.multi_label) == (("dog", "king", "tea"), True)
    model = with_classifier(folder, file)
    states = model.encode(texts, layer=1, pooling=kept.pooling[0], normalize=False)  # type: ignore[arg-type]
    found = scores(model, texts)
    for number, name in enumerate(kept.labels):
        y = np.array([name in some for some in labels], np.intp)
        (fit,) = Features(states).fits(y, 2, [float(kept.made["C"])])
        assert_near(found[:, number], fit.probabilities(states)[:, 1], 1e-5)
    assert not np.allclose(found.sum(axis=1), 1, atol=0.01)
    left = bertcli("evaluate", data, "-m", f"{folder}+{file}", "--format", "json")
    expected = np.mean([(found[i] > 0.5).tolist() == [n in s for n in kept.labels] for i, s in enumerate(labels)])
    assert left.json["models"][0]["metrics"]["accuracy"]["value"] == pytest.approx(expected)


def test_a_label_that_one_fold_alone_has_is_improbable() -> None:
    x = np.random.default_rng(0).normal(size=(12, 4)).astype(np.float32)
    true = np.stack([np.arange(12.0) % 2, np.zeros(12), np.ones(12)], axis=1).astype(np.float64)
    (fit,) = Features(x).multi_label_fits(true, [1.0])
    p = fit.probabilities(x)
    assert (p[:, 1] < 1e-12).all()
    assert (p[:, 2] > 1 - 1e-12).all()
    assert np.isfinite(fit.logits(x)).all()


# ------------------------------------------------------------------------------------------------------ the commands


def test_classify_evaluate_and_explain_take_it(mini: Path, tmp_path: Path) -> None:
    options = ("-m", f"{HELD_MODEL}+{mini}")
    model = with_classifier(HELD_MODEL, mini)
    texts, labels = reviews()
    expected = model.classify(texts[:2])
    assert bertcli("classify", *options, *texts[:2], "--format", "json").json == expected
    found = scores(model, texts)
    accuracy = np.mean(np.array(model.config.labels)[found.argmax(axis=1)] == labels)
    record = bertcli("evaluate", DATA, *options, "--format", "json").json
    assert record["models"][0]["metrics"]["accuracy"]["value"] == pytest.approx(accuracy)
    explained = bertcli("explain", *options, texts[0], "--format", "json").json[0]
    p = found[0].max()
    assert explained["target"] == model.config.labels[int(found[0].argmax())]
    assert explained["value"] == pytest.approx(np.log(p / (1 - p)), abs=1e-4)
    file = tmp_path / "labels.csv"
    assert bertcli("classify", "-i", DATA, *options, "-o", file).status == 0
    assert file.read_text().count("\n") == 81


def test_a_file_with_a_mask_is_classified_not_filled(mini: Path) -> None:
    left = bertcli("explain", "-m", f"{HELD_MODEL}+{mini}", "A [MASK] film.", "--format", "json")
    assert left.json[0]["target"] in ("negative", "positive")


def test_a_run_is_not_resumed_with_another_classifier(mini: Path, tmp_path: Path) -> None:
    file, other = tmp_path / "out.jsonl", tmp_path / "other.safetensors"
    run = ("classify", "-i", DATA, "-o", file, "--resume", "-m")
    bertcli("probe", "-i", DATA, "-m", HELD_MODEL, "-o", other, "--layer", "3")
    mine, another = (f"{HELD_MODEL}+{one}" for one in (mini, other))
    break_off(*run, mine)
    assert "the model has changed; restore that" in bertcli(*run, another).error
    assert continued(*run, mine).status == 0


def test_the_server_takes_it(mini: Path) -> None:
    pytest.importorskip("starlette")
    from helpers.served import serving

    from bertcli.wings.serve.served_model import Served

    model = with_classifier(HELD_MODEL, mini)
    served = Served(model, HELD_MODEL)
    served.check()
    assert served.uses[0] == "classify"
    text = reviews()[0][0]
    with serving([model]) as running:
        answer = running.given("/predict", {"inputs": text})
        about = running.given("/info")
    expected = model.classify(text)["labels"]
    assert [one["label"] for one in answer] == [one["label"] for one in expected]
    assert_near([one["score"] for one in answer], [one["score"] for one in expected], 1e-6)
    assert "classify" in about["models"][0]["uses"]


def test_onnx_runtime_computes_the_last_layer(mini: Path, tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    file = tmp_path / "last.safetensors"
    save(library.load(HELD_MODEL), file, *reviews(), layer=-1)
    texts = reviews()[0]
    for one in (mini, file):
        expected = scores(with_classifier(HELD_MODEL, one), texts)
        found = scores(with_classifier(HELD_MODEL, one, engine="onnx"), texts)
        assert_near(found, expected, 1e-5)


def test_info_says_what_the_file_is(mini: Path) -> None:
    error = bertcli("info", mini).error
    assert f"{mini} is a classifier for {HELD_MODEL}: give both, bertcli info {HELD_MODEL}+{mini}." in error
    left = bertcli("info", f"{HELD_MODEL}+{mini}")
    for words in ("layer 2, pooling mean", "negative, positive", f"'{HELD_MODEL}'", "of 40 texts"):
        assert words in left.out
    assert f"bertcli classify -m {HELD_MODEL}+{mini}" in left.out
    whole = bertcli("info", f"{HELD_MODEL}+{mini}", "--format", "json").json
    record = whole["classifier"]
    assert (record["layer"], whole["labels"], record["pooling"]) == (2, ["negative", "positive"], "mean")
    assert 0 < record["figures"]["accuracy"]["value"] <= 1
    assert record["figures"]["best_of"] == 1, "the layer was asked for"


def test_a_model_with_one_pickles(mini: Path) -> None:
    model = with_classifier(HELD_MODEL, mini)
    again = pickle.loads(pickle.dumps(model))
    assert again.heads == model.heads
    assert again.classify("A fine film.") == model.classify("A fine film.")


def test_the_wider_tasks_of_the_model_are_as_without_it(mini: Path) -> None:
    model, plain = with_classifier(HELD_MODEL, mini), library.load(HELD_MODEL)
    np.testing.assert_array_equal(model.encode("A fine film."), plain.encode("A fine film."))
    assert model.fill_mask("A [MASK] film.") == plain.fill_mask("A [MASK] film.")
    with pytest.raises(BertcliError, match="scored by the model's own head"):
        model.classify("A fine film.", candidates="a,b")


def test_the_head_in_whose_place_it_is_scores_nothing_under_its_labels(tmp_path: Path) -> None:
    """What a trace, a count or a graph shows is of the network alone, which has lost the head of its own labels."""
    base, file = "bert-mini-sentiment", tmp_path / "mine.safetensors"
    assert bertcli("probe", "-i", DATA, "-m", base, "-o", file, "--layer", "2").status == 0
    mine = f"{base}+{file}"
    assert "classifier" in library.load(base).network.heads
    assert "classifier" not in library.load(mine).network.heads
    assert "Label: " in bertcli("trace", "-m", base, "A fine film.").out
    assert "Label: " not in bertcli("trace", "-m", mine, "A fine film.").out
    assert "classifier.output" not in bertcli("params", "-m", mine).out
    graph = bertcli("export", "-m", mine, "-o", tmp_path / "mine.onnx")
    assert f"{file} stands beside the network, and a graph has only the network: leave it out." in graph.error
    assert bertcli("export", "-m", mine, "--head", "classifier", "-o", tmp_path / "mine.onnx").error == graph.error
    assert not (tmp_path / "mine.onnx").exists()
    assert (
        f"rank needs a classifier with one output, and {mine} has 2 labels"
        in bertcli("rank", "-m", mine, "a", "b").error
    )


def test_it_stands_on_a_model_of_any_kind(tmp_path: Path) -> None:
    """A model for late interaction classifies with it, and gives the vectors of tokens that it gave."""
    folder = write_late(tmp_path / "late", "modules fixed")
    plain, file = library.load(folder), tmp_path / "mine.safetensors"
    save(plain, file, *reviews(), layer=1)
    model = library.load(f"{folder}+{file}")
    assert model.kind.uses() == ("classify", "encode")
    assert {one["label"] for one in model.classify("tea")["labels"]} == {"negative", "positive"}
    explained = library.explain(model, "tea")
    assert explained.target in ("negative", "positive")
    with pytest.raises(BertcliError, match="choose a pooling"):
        model.encode("tea")
    (mine,), (its,) = (one.encode_blocks(["tea"], pooling="none") for one in (model, plain))
    np.testing.assert_array_equal(mine.vectors[0], its.vectors[0])
    assert model.rank("tea", ["tea", "cat"]) == plain.rank("tea", ["tea", "cat"])


# ----------------------------------------------------------------------------------------------------- what is refused


def test_another_model_is_refused_and_another_name_is_noted(
    mini: Path, tmp_path: Path, made: Made, caplog: pytest.LogCaptureFixture
) -> None:
    error = bertcli("classify", "-m", f"bert-mini-sentiment+{mini}", "x").error
    assert (
        f"{mini} was made for '{HELD_MODEL}', and bert-mini-sentiment has other weights or another tokenizer" in error
    )
    caplog.set_level(logging.INFO, "bertcli")
    copy = shutil.copytree(str(library.load(HELD_MODEL).path), tmp_path / "copy")
    left = bertcli("classify", "-m", f"{copy}+{mini}", "A fine film.", "--format", "json")
    assert f"Note: {mini} was made with '{HELD_MODEL}', which has the same weights." in left.err
    assert left.json == with_classifier(HELD_MODEL, mini).classify(["A fine film."])
    vocabulary = (copy / "tokenizer.json").read_text()
    (copy / "tokenizer.json").write_text(vocabulary.replace('"lowercase":true', '"lowercase":false'))
    changed = json.loads(vocabulary)
    changed["normalizer"] = None
    write_json(copy / "tokenizer.json", changed)
    assert "another tokenizer" in bertcli("classify", "-m", f"{copy}+{mini}", "x").error


def rewritten(file: Path, target: Path, weight: Any = None, bias: Any = None, **metadata: str | None) -> Path:
    """A classifier's file with other contents; a text that is None is left out."""
    kept = read_classifier(file)
    texts = {name: text for name, text in {**kept.metadata, **metadata}.items() if text is not None}
    weight, bias = (old if new is None else new for new, old in ((weight, kept.weight), (bias, kept.bias)))
    arrays = [FileArray(name, "<f4", array.shape, [array]) for name, array in (("weight", weight), ("bias", bias))]
    save_stored(str(target), *(FileArray.text(name, text) for name, text in texts.items()), *arrays)
    return target


def test_hostile_files_get_one_line(mini: Path, tmp_path: Path) -> None:
    kept, target = read_classifier(mini), tmp_path / "bad.safetensors"
    nan = kept.weight.copy()
    nan[0, 3] = np.nan
    arrays: dict[str, Any]
    for arrays, words in (
        ({"weight": kept.weight[:, :-1]}, "vectors of 255 numbers"),
        ({"weight": kept.weight[:1]}, "has 2 labels, which weight [1, 256] and bias [2] do not fit"),
        ({"weight": kept.weight[0]}, "do not fit"),
        ({"bias": kept.bias[None]}, "do not fit"),
        ({"weight": nan}, "holds NaN"),
        ({"bias": kept.bias * np.float32(np.inf)}, "holds NaN"),
        ({"labels": "5"}, "has the labels 5, which are no list of names"),
        ({"labels": '["a", 3]'}, "no list of names"),
        ({"labels": '["a"'}, "is not valid JSON"),
        ({"labels": None}, "no list of names"),
        ({"labels": '["a", "a"]'}, "needs 2 to 100,000 different ones"),
        ({"labels": "[" * 100_000}, "nested too deeply"),
        ({"layer": "99"}, "reads layer 99"),
        ({"layer": "-1"}, "has the layer"),
        ({"layer": "9" * 5000}, "has the layer"),
        ({"pooling": "median"}, "has the pooling 'median'"),
        ({"problem_type": "regression"}, "has the problem_type 'regression'"),
        ({"normalize": "maybe"}, "has the normalize 'maybe'"),
        ({"max_length": "0"}, "has the max_length '0'"),
        ({"max_length": "100000"}, "more than the"),
        ({"format": "pt"}, "holds no classifier"),
        ({"digest": "0"}, "other weights"),
    ):
        bad = rewritten(mini, target, **arrays)
        error = bertcli("classify", "-m", f"{HELD_MODEL}+{bad}", "x").error
        assert words in error, (arrays, error)


def test_what_is_no_classifier_gets_one_line(mini: Path, tmp_path: Path) -> None:
    model = Path(str(library.load(HELD_MODEL).path))
    folder, huge = tmp_path / "folder.safetensors", tmp_path / "huge.safetensors"
    folder.mkdir()
    with huge.open("wb") as stream:
        stream.truncate(65_000_000)
    cut = tmp_path / "cut.safetensors"
    cut.write_bytes(mini.read_bytes()[:-100])
    for file, words in (
        (model, "so it is no adapter of peft"),
        (folder, "is no classifier"),
        (tmp_path / "none.safetensors", "none.safetensors"),
        (model / "model.safetensors", "holds no classifier"),
        (huge, "has 65,000,000 bytes"),
        (cut, "is not a usable safetensors file"),
    ):
        assert words in bertcli("classify", "-m", f"{HELD_MODEL}+{file}", "x").error


def test_a_folder_to_save_in_says_what_to_do_instead(tmp_path: Path) -> None:
    with pytest.raises(BertcliError, match="no longer as a model's folder"):
        library.probe(library.load(HELD_MODEL), *reviews(), save=str(tmp_path / "folder"))


def test_a_probe_of_a_model_with_a_buffer_of_positions_is_saved(made: Made, tmp_path: Path) -> None:
    """all-MiniLM-L6-v2 has such a tensor of int64, which is no weight."""
    folder = made(head="pretraining", position_ids_buffer=True)
    file = tmp_path / "probe.safetensors"
    left = bertcli("probe", "-i", DATA, "-m", folder, "-o", file)
    assert left.status == 0, left.error
    assert "Majority: " in left.out
    done = bertcli("classify", "-m", f"{folder}+{file}", "tea", "--format", "json")
    assert done.status == 0, done.error
    assert {one["label"] for one in done.json[0]["labels"]} == {"positive", "negative"}


def test_what_cannot_be_saved_is_refused_before_the_fit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bertcli.wings.interpret.compute.probe.states_task", None)  # calling it would be a TypeError
    nowhere = tmp_path / "none" / "made.safetensors"
    assert "there is no folder" in bertcli("probe", "-i", DATA, "-m", HELD_MODEL, "-o", nowhere).error
    folder = tmp_path / "made.safetensors"
    folder.mkdir()
    assert "not a file" in bertcli("probe", "-i", DATA, "-m", HELD_MODEL, "-o", folder).error
    rare = tmp_path / "rare.csv"
    rare.write_text(DATA.read_text(encoding="utf-8") + '"One more.",mixed,film\n', encoding="utf-8")
    error = bertcli("probe", "-i", rare, "-m", HELD_MODEL).error
    assert "1 text with the label 'mixed' cannot be divided among 5 folds" in error


def test_the_table_is_printed_though_the_file_cannot_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*arguments: Any) -> None:
        raise BertcliError("Cannot write made.safetensors: No space left on device.")

    monkeypatch.setattr("bertcli.wings.interpret.compute.probe_result.save_stored", full)
    left = bertcli("probe", "-i", DATA, "-m", HELD_MODEL, "-o", tmp_path / "made.safetensors")
    assert left.status == 1
    assert "after layer 4" in left.out
    assert "No space left" in left.err


def test_serve_has_models_with_classifiers_and_without(mini: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    served: list[Any] = []
    monkeypatch.setattr("bertcli.wings.serve.run.serve", lambda models, *rest: served.append(models))
    other = "bert-mini-sentence"
    left = bertcli("serve", "-m", other, "-m", f"{HELD_MODEL}+{mini}", "-m", f"mine={HELD_MODEL}+{mini}")
    assert left.status == 0, left.err
    names = {one.name: one.model.kind.label_scores("classifier") is not None for one in served.pop()}
    assert names == {other: False, f"{HELD_MODEL}+{mini.name}": True, "mine": True}
    refused = bertcli("serve", "-m", f"{other}+{mini}")
    assert refused.status == 1
    assert f"was made for '{HELD_MODEL}', and {other} has other weights" in refused.err
    assert served == []


def test_evaluate_compares_classifiers_and_models(mini: Path) -> None:
    """In either order the figures are those of each model alone."""
    mine, other = f"{HELD_MODEL}+{mini}", "bert-mini-sentiment"

    def accuracies(*models: str | Path) -> dict[str, float]:
        record = bertcli("evaluate", DATA, *models, "--format", "json").json
        return {model["model"]: model["metrics"]["accuracy"]["value"] for model in record["models"]}

    alone = accuracies("-m", mine) | accuracies("-m", other)
    assert alone[mine] != alone[other]
    assert accuracies("-m", mine, "-m", other) == alone
    assert accuracies("-m", other, "-m", mine) == alone
    found = library.evaluate(DATA, [library.load(mine), other])
    assert {model["model"]: model["metrics"]["accuracy"]["value"] for model in found.record["models"]} == alone


def test_a_classifier_stands_behind_the_name_of_its_model(mini: Path, tmp_path: Path) -> None:
    """Also in a folder with a + in its name, behind another model, and where it was asked for otherwise before."""
    folder = tmp_path / "a+b"
    folder.mkdir()
    copy = shutil.copyfile(mini, folder / "mine.safetensors")
    plain = library.load(f"{HELD_MODEL}+{mini}").classify("A fine film.")
    assert library.load(f"{HELD_MODEL}+{copy}").classify("A fine film.") == plain
    assert (
        "There is no classifier nowhere.safetensors"
        in bertcli("classify", "-m", f"{HELD_MODEL}+nowhere.safetensors", "x").error
    )
    with pytest.raises(TypeError, match=r"'BASE\+FILE.safetensors'"):
        library.load(HELD_MODEL, classifier=mini)  # type: ignore[call-arg]


def test_evaluate_in_python_gives_what_the_command_writes() -> None:
    by_command = bertcli("evaluate", DATA, "-m", "bert-mini-sentiment", "--format", "json").json
    found = library.evaluate(DATA, "bert-mini-sentiment")
    assert found.record["models"] == by_command["models"]
    with pytest.raises(BertcliError, match=r"accuracy of bert-mini-sentiment is [0-9.]+, less than 1"):
        library.evaluate(DATA, "bert-mini-sentiment", at_least=("accuracy", 1.0))
    with pytest.raises(BertcliError, match=r"There is no figure 'f1' for classification \(at_least\); choose from"):
        library.evaluate(DATA, "bert-mini-sentiment", at_least=("f1", 1.0))
