"""Exported files: the results of NumPy, by the names that other tools expect."""

import json
import logging
import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from conftest import Made
from helpers.checkpoints import ACTIVATIONS, Dense, Sentence, make
from helpers.family_checkpoints import make_family
from helpers.json_files import read_json, write_json
from helpers.near import assert_near
from helpers.static_models import write_static
from numpy.typing import NDArray
from reference.cases import network_cases
from reference.family_cases import CASES as FAMILIES

import bertcli
from bertcli.engine.padded_batch import pack_padded
from bertcli.errors import BertcliError
from bertcli.models.textbook import TextbookConfig
from bertcli.network.module import parameters
from bertcli.tasks.encode import Pooling
from bertcli.tasks.parts import sample_sentences
from bertcli.wings.onnx import export as exporting
from bertcli.wings.onnx import file as onnx_file
from bertcli.wings.onnx.export import Exported, export_file, export_folder
from bertcli.wings.onnx.export_options import ExportOptions

Arrays = dict[str, NDArray[Any]]
CASES = dict(network_cases())
SHAPES = ((1, 1), (1, 9), (3, 7), (2, 40))


def batch_of(model: bertcli.Model, shape: tuple[int, int], seed: int = 0) -> Arrays:
    """Random tokens, the first sentence whole and the others padded, one of them on both sides."""
    generator = np.random.default_rng(seed)
    mask = np.ones(shape, np.int64)
    for row in range(1, shape[0]):
        mask[row, generator.integers(1, shape[1] + 1) :] = 0
    if shape[0] > 2:
        mask[2, 0] = 0
        mask[2, 1] = 1
    return {
        "input_ids": generator.integers(0, model.config.vocab_size, shape),
        "token_type_ids": generator.integers(0, model.config.segment_count, shape),
        "attention_mask": mask,
    }


def run(file: Path, batch: Arrays) -> Arrays:
    session = onnxruntime.InferenceSession(file, providers=["CPUExecutionProvider"])
    names = [one.name for one in session.get_outputs()]
    return dict(zip(names, session.run(None, {one.name: batch[one.name] for one in session.get_inputs()}), strict=True))


def at_tokens(x: NDArray[Any], batch: Arrays) -> NDArray[Any]:
    return x[batch["attention_mask"].astype(bool)]  # type: ignore[no-any-return]


# One of each activation, with different sizes: dtypes, names and heads of files are the loader's, not the graph's.
@pytest.mark.parametrize("name", [*CASES][: len(ACTIVATIONS)])
def test_export_gives_the_hidden_states_of_numpy(made: Made, tmp_path: Path, name: str) -> None:
    model = bertcli.load(made(**CASES[name]), text=False)
    export_file(model, tmp_path / "m.onnx", ExportOptions(head="none", verify=False))
    for shape in SHAPES:
        batch = batch_of(model, shape)
        expected = model.forward(*batch.values())
        found = run(tmp_path / "m.onnx", batch)["last_hidden_state"]
        assert_near(at_tokens(found, batch), at_tokens(expected, batch), 1e-5)


@pytest.mark.parametrize("head", ["pooler", "mlm", "nsp", "classifier", "token_classifier", "qa", "multiple_choice"])
def test_export_gives_the_logits_of_every_head(made: Made, tmp_path: Path, head: str) -> None:
    kind = {"pooler": "model"}.get(head, head)
    model = bertcli.load(made(head=kind, hidden_act="gelu_new"), text=False)
    # The oldest opset; families below have the newest.
    made_file = export_file(model, tmp_path / "m.onnx", ExportOptions(head=head, opset=18))
    ids = batch_of(model, (2, 9))["input_ids"]
    batch = {"input_ids": ids, "token_type_ids": np.zeros_like(ids), "attention_mask": np.ones_like(ids)}
    found, expected = run(tmp_path / "m.onnx", batch), model.outputs(ids)
    assert made_file.outputs == (("start_logits", "end_logits") if head == "qa" else ("logits",))
    wanted = {"pooler": "pooled"}.get(head, head)
    logits = np.stack([*found.values()], axis=-1) if head == "qa" else found["logits"]
    assert_near(logits, expected[wanted], 1e-5)


def test_export_gives_the_logits_that_a_model_was_made_for(made: Made, tmp_path: Path) -> None:
    for kind, outputs in {
        "model": ("last_hidden_state", "pooler_output"),
        "classifier": ("logits",),
        "pretraining": ("logits",),  # of its masked words, not of the next sentence
        "nsp": ("last_hidden_state", "pooler_output"),
        "qa": ("start_logits", "end_logits"),
    }.items():
        model = bertcli.load(made(head=kind), text=False)
        assert export_file(model, tmp_path / "m.onnx", ExportOptions()).outputs == outputs
    with pytest.raises(BertcliError, match="has no head 'mlm'; its heads: pooler, classifier"):
        export_file(bertcli.load(made(head="classifier")), tmp_path / "m.onnx", ExportOptions(head="mlm"))


TEXTS = ["the small cat", "a", "she went to the sea and came back", ""]


@pytest.mark.parametrize("name", FAMILIES)
def test_export_of_every_family(tmp_path: Path, name: str) -> None:
    case = FAMILIES[name]
    model = bertcli.load(make_family(tmp_path / "model", case.family, case.head, **case.checkpoint), text=False)
    batch = dict(zip(("input_ids", "token_type_ids", "attention_mask"), case.batch(), strict=True))
    heads = {case.head} & {*model.heads}
    if not heads:
        export_file(model, tmp_path / "m.onnx", ExportOptions(head="none", verify=False))
        found = run(tmp_path / "m.onnx", batch)["last_hidden_state"]
        segments = batch["token_type_ids"] if case.segments else None
        expected = model.forward(batch["input_ids"], segments, batch["attention_mask"])
        assert_near(at_tokens(found, batch), at_tokens(expected, batch), 1e-5)
    for head in heads:
        export_file(model, tmp_path / "m.onnx", ExportOptions(head=head, verify=False))
        found = np.stack([*run(tmp_path / "m.onnx", batch).values()], axis=-1)
        found = found if head == "qa" else found[..., 0]
        ids, segments, mask = batch.values()
        packed, network = pack_padded(ids, segments, mask != 0)[0], model.network
        logits = network.predict(head, network(packed, network.input_rows(head, packed)), packed)
        order = np.argsort(batch["attention_mask"].sum(axis=1), kind="stable")  # of packed sentences
        mask = batch["attention_mask"][order].astype(bool)
        found = found[order] if len(logits) == len(found) else found[order][mask]
        np.testing.assert_allclose(found, logits, atol=1e-5, rtol=1e-5)


SENTENCES = {
    "mean": Sentence(("mean",)),
    "cls, normalized": Sentence(("cls",), normalize=True),
    "max and mean": Sentence(("max", "mean")),
    "by root": Sentence(("mean_sqrt_len",)),
    "dense": Sentence(
        dense=(Dense(7), Dense(5, bias=False, activation="torch.nn.modules.linear.Identity")), normalize=True
    ),
}


def tokens_of(model: bertcli.Model, texts: list[str]) -> Arrays:
    tokens = model.tokenizer.encode(texts)
    shape = len(texts), max(len(one.ids) for one in tokens)
    batch = {name: np.zeros(shape, np.int64) for name in ("input_ids", "token_type_ids", "attention_mask")}
    for row, one in enumerate(tokens):
        for name, values in zip(batch, (one.ids, one.segments, [1] * len(one.ids)), strict=True):
            batch[name][row, : len(one.ids)] = values
    return batch


@pytest.mark.parametrize("name", SENTENCES)
def test_export_gives_the_vectors_of_a_sentence_model(made: Made, tmp_path: Path, name: str) -> None:
    model = bertcli.load(made(sentence=SENTENCES[name]))
    exported = export_file(model, tmp_path / "m.onnx", ExportOptions())
    assert exported.outputs == ("last_hidden_state", "sentence_embedding")
    found = run(tmp_path / "m.onnx", tokens_of(model, TEXTS))["sentence_embedding"]
    assert_near(found, model.encode(TEXTS), 1e-5)


@pytest.mark.parametrize("pooling", ["mean", "cls", "max", "lasttoken", "pooler"])
def test_export_gives_the_vectors_asked_for(made: Made, tmp_path: Path, pooling: Pooling) -> None:
    model, normalize = bertcli.load(made()), pooling != "mean"
    export_file(model, tmp_path / "m.onnx", ExportOptions(pooling=pooling, normalize=normalize))
    found = run(tmp_path / "m.onnx", tokens_of(model, TEXTS))["sentence_embedding"]
    assert_near(found, model.encode(TEXTS, pooling=pooling, normalize=normalize), 1e-5)


def test_export_of_half_the_size_and_of_a_quarter(made: Made, tmp_path: Path) -> None:
    model = bertcli.load("bert-mini-sentiment")
    sizes = {}
    for precision in ("float32", "float16", "int8", "int8-stored"):
        one = export_file(model, tmp_path / f"{precision}.onnx", ExportOptions(precision=precision))
        sizes[precision] = one.bytes
        assert one.bytes == (tmp_path / f"{precision}.onnx").stat().st_size
        assert one.difference is not None
        bound = {"int8": 0.05, "int8-stored": 0.02}.get(precision, 1e-5)  # the bundled weights are halves
        assert one.difference < bound
    assert 0.49 < sizes["float16"] / sizes["float32"] < 0.51
    assert 0.25 < sizes["int8"] / sizes["float32"] < 0.28
    assert 0.27 < sizes["int8-stored"] / sizes["float32"] < 0.30
    assert sorted(one.stem for one in tmp_path.iterdir()) == ["float16", "float32", "int8", "int8-stored"]
    batch = tokens_of(model, ["What a wonderful film!", "Dull from the first minute to the last."])
    for precision in sizes:
        assert run(tmp_path / f"{precision}.onnx", batch)["logits"].argmax(axis=1).tolist() == [1, 0]


def test_export_of_int8_says_how_near_its_results_are(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Computed again here, a sentence at a time; below the bound nothing is written."""
    model, file = bertcli.load("bert-mini-sentence"), tmp_path / "m.onnx"
    caplog.set_level(logging.INFO, "bertcli")
    export_file(model, file, ExportOptions(precision="int8"))
    cosines = []
    for sentence in sample_sentences.SENTENCES:
        vector = run(file, tokens_of(model, [sentence]))["sentence_embedding"][0]
        cosines.append(float(vector @ model.encode([sentence])[0]) / np.linalg.norm(vector))
    said = "int8 of bert-mini-sentence: results have cosine "
    (told,) = (record.getMessage() for record in caplog.records if record.getMessage().startswith(said))
    assert "with float32's on average (64 built-in sentences)" in told
    # Which numbers int8 has depends a little on what it is batched with; the graph also gives hidden states.
    assert float(told.removeprefix(said).split()[0]) == pytest.approx(np.mean(cosines), abs=0.01)
    monkeypatch.setattr("bertcli.wings.onnx.export.LEAST", 0.9999)
    refused = tmp_path / "refused.onnx"
    with pytest.raises(BertcliError, match=r"too far from it: compute in float32 with weights of int8"):
        export_file(model, refused, ExportOptions(precision="int8"))
    assert not refused.exists()
    assert export_file(model, refused, ExportOptions(precision="int8", verify=False)).difference is None


def test_export_of_int8_leaves_logging_alone(made: Made, tmp_path: Path) -> None:
    handlers = [*logging.getLogger().handlers]
    export_file(bertcli.load(made()), tmp_path / "m.onnx", ExportOptions(precision="int8"))
    assert logging.getLogger().handlers == handlers


@pytest.mark.parametrize("precision", ["float32", "int8"])
def test_export_of_many_weights_has_a_second_file(
    made: Made, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, precision: Any
) -> None:
    monkeypatch.setattr(onnx_file, "LARGEST_FILE", 10_000)
    model = bertcli.load(made())
    one = export_file(model, tmp_path / "m.onnx", ExportOptions(precision=precision))
    there = sorted(file.name for file in tmp_path.iterdir())
    assert there == (["m.onnx"] if precision == "int8" else ["m.onnx", "m.onnx_data"])
    assert one.bytes == sum(file.stat().st_size for file in tmp_path.iterdir())
    (tmp_path / "moved").mkdir()
    for name in there:
        os.replace(tmp_path / name, tmp_path / "moved" / name)
    batch = batch_of(model, (2, 9))
    found = run(tmp_path / "moved" / "m.onnx", batch)["last_hidden_state"]
    expected = model.forward(*batch.values())
    assert_near(at_tokens(found, batch), at_tokens(expected, batch), 1e-5 if precision == "float32" else 0.2)


def test_export_says_what_it_is(made: Made, tmp_path: Path) -> None:
    folder = made(head="classifier", num_labels=3)
    export_file(bertcli.load(folder), tmp_path / "m.onnx", ExportOptions(precision="float16"))
    proto = onnx.load(tmp_path / "m.onnx")
    metadata = {one.key: one.value for one in proto.metadata_props}
    assert (metadata["source"], metadata["head"]) == (folder.name, "classifier")
    assert json.loads(metadata["config"]) == read_json(folder / "config.json")
    assert json.loads(metadata["labels"]) == bertcli.load(folder).config.labels
    assert proto.producer_version == bertcli.__version__
    export_file(bertcli.load(made(sentence=Sentence(("cls",), normalize=True))), tmp_path / "m.onnx", ExportOptions())
    assert {one.key: one.value for one in onnx.load(tmp_path / "m.onnx").metadata_props}["pooling"] == "cls, normalize"


def test_export_follows_a_link_as_other_outputs_do(made: Made, tmp_path: Path) -> None:
    (tmp_path / "link.onnx").symlink_to(tmp_path / "place.onnx")
    assert export_file(bertcli.load(made()), tmp_path / "link.onnx", ExportOptions()).file == tmp_path / "link.onnx"
    assert (tmp_path / "link.onnx").is_symlink()
    assert (tmp_path / "place.onnx").is_file()


def test_export_of_a_folder_has_what_others_open(made: Made, tmp_path: Path) -> None:
    source = made(sentence=Sentence(dense=(Dense(7),), normalize=True, normalize_folder=True))
    target = tmp_path / "out"
    one = export_folder(bertcli.load(source), target, ExportOptions())
    assert one.file == target / "onnx" / "model.onnx"
    export_folder(bertcli.load(source), target, ExportOptions(precision="int8"))
    export_folder(bertcli.load(source), target, ExportOptions(precision="float16"))
    there = {str(file.relative_to(target)) for file in target.rglob("*") if file.is_file()}
    graphs = {"onnx/model.onnx", "onnx/model_fp16.onnx", "onnx/model_quantized.onnx"}
    others = {str(file.relative_to(source)) for file in source.rglob("*") if file.is_file()} - {"model.safetensors"}
    assert there == graphs | others | {"tokenizer.json"}
    assert {"2_Dense/model.safetensors", "vocab.txt", "modules.json"} <= others
    for name in others - {"tokenizer_config.json"}:
        assert (target / name).read_bytes() == (source / name).read_bytes()


def test_export_of_a_folder_with_a_vocabulary_has_the_files_that_browsers_read(tmp_path: Path) -> None:
    source = make(tmp_path / "model", head="pretraining")
    assert not (source / "tokenizer.json").exists()
    export_folder(bertcli.load(source), tmp_path / "out", ExportOptions())
    settings = json.loads((tmp_path / "out" / "tokenizer_config.json").read_bytes())
    assert settings["mask_token"] == "[MASK]"
    assert settings["tokenizer_class"] == "BertTokenizer"
    assert json.loads((source / "tokenizer_config.json").read_bytes()).items() <= settings.items()
    (tmp_path / "out" / "vocab.txt").unlink()
    shutil.copy(source / "model.safetensors", tmp_path / "out")
    texts = [*TEXTS, "The [MASK] Cat."]
    found, expected = (bertcli.load(folder).tokenizer.encode(texts) for folder in (tmp_path / "out", source))
    assert [one.ids for one in found] == [one.ids for one in expected]


def test_export_of_a_folder_leaves_complete_tokenizers_as_they_are(made: Made, tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    export_folder(bertcli.load(made()), first, ExportOptions())
    shutil.copy(made() / "model.safetensors", first)
    export_folder(bertcli.load(first), second, ExportOptions())
    for name in ("tokenizer.json", "tokenizer_config.json"):
        assert (second / name).read_bytes() == (first / name).read_bytes()


def test_export_of_an_old_sentence_folder_has_the_network_at_the_top(made: Made, tmp_path: Path) -> None:
    source = tmp_path / "source"
    shutil.copytree(made(sentence=Sentence(("cls",))), source)
    (source / "0_Transformer").mkdir()
    for name in ("config.json", "model.safetensors", "vocab.txt", "tokenizer_config.json"):
        os.replace(source / name, source / "0_Transformer" / name)
    (source / "config.json").write_text('{"__version__": "0.3.8"}')
    modules = json.loads((source / "modules.json").read_bytes())
    modules[0]["path"] = "0_Transformer"
    write_json(source / "modules.json", modules)
    model = bertcli.load(source)
    export_folder(model, tmp_path / "out", ExportOptions())
    there = {str(file.relative_to(tmp_path / "out")) for file in (tmp_path / "out").rglob("*") if file.is_file()}
    assert {"config.json", "tokenizer.json", "1_Pooling/config.json", "onnx/model.onnx"} <= there
    assert not any("0_Transformer" in name or "safetensors" in name for name in there)
    shutil.copy(source / "0_Transformer" / "model.safetensors", tmp_path / "out")
    assert np.array_equal(bertcli.load(tmp_path / "out").encode(TEXTS), model.encode(TEXTS))


@pytest.mark.parametrize("layout", ["folder", "model2vec"])
def test_export_of_a_static_model(tmp_path: Path, layout: str, caplog: pytest.LogCaptureFixture) -> None:
    write_static(tmp_path / "model", layout)
    model = bertcli.load(tmp_path / "model")
    with caplog.at_level("INFO", "bertcli"):
        export_folder(model, tmp_path / "out", ExportOptions())
    assert "sentence-transformers takes a static model's table" in caplog.text
    # What the folder says of its table is copied as it is: no library looks for that at the top.
    modules = [read_json(tmp_path / name / "modules.json") for name in ("model", "out")]
    assert modules[0] == modules[1]
    batch = tokens_of(model, TEXTS)
    found = run(tmp_path / "out" / "onnx" / "model.onnx", batch)["sentence_embedding"]
    assert_near(found, model.encode(TEXTS), 1e-5)


def test_export_says_what_it_cannot_leave_out(made: Made, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    shutil.copytree(made(sentence=Sentence(style="new")), tmp_path / "model")
    pooling = tmp_path / "model" / "1_Pooling" / "config.json"
    write_json(pooling, {**read_json(pooling), "include_prompt": False})
    settings = {"prompts": {"query": "a query: "}, "default_prompt_name": "query"}
    write_json(tmp_path / "model" / "config_sentence_transformers.json", settings)
    export_file(bertcli.load(tmp_path / "model"), tmp_path / "m.onnx", ExportOptions())
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert "leaves its prompt out of the pooling" in caplog.text


def test_export_into_the_folder_of_the_model(made: Made, tmp_path: Path) -> None:
    shutil.copytree(made(), tmp_path / "model")
    before = {file.name: file.read_bytes() for file in (tmp_path / "model").iterdir()}
    export_folder(bertcli.load(tmp_path / "model"), tmp_path / "model", ExportOptions())
    assert (tmp_path / "model" / "onnx" / "model.onnx").exists()
    assert {file.name: file.read_bytes() for file in (tmp_path / "model").iterdir() if file.is_file()} == before


def test_export_into_a_folder_with_other_files_leaves_them(made: Made, tmp_path: Path) -> None:
    """An earlier export is replaced; neither another model's configuration nor files that lie there."""
    model = bertcli.load(made())
    shutil.copytree(made(head="mlm", num_labels=3), tmp_path / "other")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "vocab.txt").write_text("my own words")
    for name, file in (("other", "config.json"), ("mine", "vocab.txt")):
        before = {path: path.read_bytes() for path in (tmp_path / name).iterdir()}
        with pytest.raises(BertcliError, match=f"it has another {file}, which would be lost; give a new folder"):
            export_folder(model, tmp_path / name, ExportOptions())
        assert {path: path.read_bytes() for path in (tmp_path / name).iterdir()} == before
    for earlier in (bertcli.load(made(head="mlm")), model):
        export_folder(earlier, tmp_path / "new", ExportOptions())
    assert (tmp_path / "new" / "config.json").read_bytes() == (made() / "config.json").read_bytes()


def test_export_that_fails_leaves_what_was_there(made: Made, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = tmp_path / "m.onnx"
    target.write_bytes(b"before")

    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(onnx_file, "write", full)
    with pytest.raises(BertcliError, match="No space left on device; nothing there was changed"):
        export_file(bertcli.load(made()), target, ExportOptions())
    assert [(one.name, one.read_bytes()) for one in tmp_path.iterdir()] == [("m.onnx", b"before")]


def test_export_that_differs_from_numpy_is_not_kept(
    made: Made, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exporting, "LARGEST_DIFFERENCE", 1e-12)
    with pytest.raises(BertcliError, match="differ from NumPy's by"):
        export_file(bertcli.load(made()), tmp_path / "m.onnx", ExportOptions())
    assert not [*tmp_path.iterdir()]
    assert export_file(bertcli.load(made()), tmp_path / "m.onnx", ExportOptions(verify=False)) == Exported(
        tmp_path / "m.onnx", (tmp_path / "m.onnx").stat().st_size, ("last_hidden_state", "pooler_output"), None
    )


def test_export_refuses_what_cannot_be(made: Made, tmp_path: Path) -> None:
    model = bertcli.load(made())
    for options, message in (
        ({"opset": 17}, "There is no opset 17 here: choose from 18 to"),
        ({"pooling": "median"}, "There is no pooling 'median'"),
    ):
        with pytest.raises(BertcliError, match=message):
            export_file(model, tmp_path / "m.onnx", ExportOptions(**options))
    with pytest.raises(BertcliError, match="has no weights to export"):
        export_file(bertcli.variant("tiny"), tmp_path / "m.onnx", ExportOptions())


def test_export_stores_shared_layers_once(tmp_path: Path) -> None:
    case = FAMILIES["albert.model"]
    model = bertcli.load(make_family(tmp_path / "model", case.family, case.head, **case.checkpoint), text=False)
    export_file(model, tmp_path / "m.onnx", ExportOptions(head="none"))
    stored = {id(one.array): one.array.nbytes for one in parameters(model.network)}
    weights = [one for one in onnx.load(tmp_path / "m.onnx").graph.initializer if not one.name.startswith("constant")]
    assert sum(len(one.raw_data) for one in weights) == sum(stored.values())


def test_export_of_the_textbook_model(tmp_path: Path) -> None:
    config = TextbookConfig(
        vocab_size=300, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64
    )
    model = bertcli.variant(config=config, heads="pooler,mlm", weights=0)
    export_file(model, tmp_path / "m.onnx", ExportOptions(head="mlm"))
    batch = batch_of(model, (2, 9))
    batch["attention_mask"][:] = 1
    expected = model.outputs(batch["input_ids"])["mlm"]
    assert expected is not None
    assert_near(run(tmp_path / "m.onnx", batch)["logits"], expected, 1e-5)
