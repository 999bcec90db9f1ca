"""LoRA adapters: the numbers of peft, and what is refused."""

import shutil
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.adapters import (
    CASES,
    COLUMNS,
    IDS,
    KINDS_OF_CHANGE,
    SOME_STATES,
    TABLES,
    Lora,
    write_lora,
    write_numbers,
    write_table_lora,
)
from helpers.bin_files import convert
from helpers.checkpoint_files import write_modules, write_safetensors
from helpers.crashes import break_off
from helpers.json_files import change_json, read_json, write_json
from helpers.near import assert_near
from helpers.terminal import bertcli as run
from helpers.terminal import continued
from safetensors.numpy import load_file

import bertcli
from bertcli.errors import BertcliError
from bertcli.model import Model
from bertcli.network.module import parameters

REFERENCE = Path(__file__).parents[1] / "reference"
RECORDED = read_json(REFERENCE / "adapters.json")
RECORDED_TABLES = read_json(REFERENCE / "adapters_of_tables.json")
POOLED = {"": "sentence_transformers.models.Transformer", "1_Pooling": "sentence_transformers.models.Pooling"}
DEBERTA_QUERY = "deberta.encoder.layer.0.attention.self.query_proj"


def computed(model: Model, name: str) -> Any:
    outputs = model.outputs(IDS)
    task = CASES[name].task
    if task == "FEATURE_EXTRACTION":
        return outputs["hidden"]
    if task is None:
        return outputs["mlm"][..., COLUMNS]
    return outputs["classifier" if task == "SEQ_CLS" else "token_classifier"]


@pytest.mark.parametrize(("name", "form"), [*((name, "folder") for name in CASES), ("bert", "bin"), ("bert", "option")])
def test_an_adapter_gives_the_numbers_of_peft(tmp_path: Path, name: str, form: str) -> None:
    base, adapter = write_lora(tmp_path, name)
    if form == "bin":
        (adapter / "adapter_model.safetensors").rename(adapter / "model.safetensors")
        (convert(adapter) / "pytorch_model.bin").rename(adapter / "adapter_model.bin")
        (adapter / "model.safetensors").unlink(missing_ok=True)
    model = bertcli.load(base, adapter=adapter) if form == "option" else bertcli.load(adapter)
    assert_near(computed(model, name), RECORDED[name], 1e-5)


@pytest.mark.parametrize("family", TABLES)
def test_tables_are_saved_and_changed_as_peft_does(tmp_path: Path, family: str) -> None:
    for table, change in product(TABLES[family], KINDS_OF_CHANGE):
        _, adapter = write_table_lora(tmp_path / table / change, family, table, change)
        states = bertcli.load(adapter).outputs(IDS)["hidden"][SOME_STATES]
        expected = RECORDED_TABLES[family][f"{table} {change}"]
        np.testing.assert_allclose(states, expected, rtol=0, atol=1e-5, err_msg=f"{table} {change}")


SENTENCES = [" ".join(f"t{id}" if id != 9 else "[MASK]" for id in row) for row in IDS.tolist()]


@pytest.mark.any_kernel
@pytest.mark.parametrize(
    ("family", "lacking"),
    [("modernbert", "head.dense"), ("eurobert", "dense"), ("deberta-v2", "pooler.dense"), ("gte", "gte.pooler.dense")],
)
def test_a_head_whose_first_layer_nobody_trained_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, family: str, lacking: str
) -> None:
    projection = {"modernbert": "attn.Wo", "eurobert": "self_attn.o_proj", "gte": "self_attn.o_proj"}
    stem = {"modernbert": "model.layers", "eurobert": "model.layers", "gte": "gte.layers"}
    module = f"{stem[family]}.0.{projection[family]}" if family in stem else DEBERTA_QUERY
    whole = {"classifier.weight": (3, 32), "classifier.bias": (3,)}
    case = Lora(family, "SEQ_CLS", {module: (32, 32)}, whole, {"target_modules": [module]})
    monkeypatch.setitem(CASES, "half a head", case)
    base, adapter = write_lora(tmp_path, "half a head")
    write_numbers(base)
    result = run("classify", "-m", f"{base}+{adapter}", SENTENCES[0])
    assert result.status == 1
    assert f"{adapter} lacks {lacking}, as its base does: train it with modules_to_save." in result.error


@pytest.mark.any_kernel
def test_commands_take_an_adapter_and_say_its_base(tmp_path: Path) -> None:
    base, adapter = write_lora(tmp_path, "bert")
    result = run("classify", "-m", adapter, "tea", "--format", "json")
    assert result.status == 0
    assert f"Note: {adapter} is an adapter (LoRA) of {base}." in result.err
    assert run("classify", "-m", f"{base}+{adapter}", "tea", "--format", "json").out == result.out
    differing = run("diff", base, "--versus", adapter, "tea", "--format", "json").out
    assert "encoder.layers.0.attention.query.weight" in differing
    assert run("tokenize", "-m", adapter, "tea").out == run("tokenize", "-m", base, "tea").out
    record = run("info", adapter, "--format", "json").json
    assert record["adapter"]["changes"] == 4
    assert record["adapter"]["whole"] == ["classifier.bias", "classifier.weight"]
    assert "classify" in {use["command"] for use in record["commands"]}


@pytest.mark.any_kernel
def test_an_adapter_in_a_folder_that_only_looks_like_a_task_s_has_the_base_it_names(tmp_path: Path) -> None:
    """Only jina-embeddings-v5 has the base of its adapters around them."""
    base, adapter = write_lora(tmp_path, "bert")
    moved = tmp_path / "adapters" / "mine"
    shutil.copytree(adapter, moved)
    result = run("classify", "-m", moved, "tea", "--format", "json")
    assert f"Note: {moved} is an adapter (LoRA) of {base}." in result.err
    assert result.out == run("classify", "-m", adapter, "tea", "--format", "json").out


@pytest.mark.any_kernel
@pytest.mark.parametrize(
    ("name", "expected"), [("bert", {"bad", "good"}), ("bert, other labels", {f"LABEL_{n}" for n in range(5)})]
)
def test_names_of_labels_are_the_base_s_where_an_adapter_has_as_many(
    tmp_path: Path, name: str, expected: set[str]
) -> None:
    base, adapter = write_lora(tmp_path, name)
    config = read_json(base / "config.json") | {"id2label": {"0": "bad", "1": "good"}}
    write_json(base / "config.json", config)
    (record,) = run("classify", "-m", adapter, "tea", "--top-k", "5", "--format", "json").json
    assert {one["label"] for one in record["labels"]} == expected


@pytest.mark.any_kernel
def test_a_run_knows_its_adapter(tmp_path: Path) -> None:
    base, adapter = write_lora(tmp_path, "bert vectors")
    (tmp_path / "in.txt").write_text("tea\n" * 5)
    words: list[Any] = ["encode", "-i", tmp_path / "in.txt", "-o", tmp_path / "v.npy", "--resume", "-m"]
    break_off(*words, f"{base}+{adapter}")
    assert "the model has changed; restore that" in run(*words, base).error
    assert continued(*words, f"{base}+{adapter}").status == 0
    file = tmp_path / "vectors.npz"
    assert run("encode", "-m", f"{base}+{adapter}", "tea", "-o", file).status == 0
    assert run("search", "-m", f"{base}+{adapter}", "tea", "-i", file).status == 0
    assert "was made by another model" in run("search", "-m", base, "tea", "-i", file).error


@pytest.mark.parametrize("modules", [False, True])
def test_an_adapter_with_a_tokenizer_of_its_own_is_read_with_that(tmp_path: Path, modules: bool) -> None:
    base, adapter = write_lora(tmp_path, "bert vectors")
    shutil.copy(base / "config.json", adapter)  # for the size of the vocabulary
    write_numbers(adapter)
    (adapter / "config.json").unlink()
    if modules:
        write_modules(adapter, POOLED)
        (adapter / "1_Pooling").mkdir()
        (adapter / "1_Pooling" / "config.json").write_text('{"pooling_mode": "mean"}')
    of_base = run("tokenize", "-m", base, "t5 t17", "--format", "jsonl").records[0]["ids"]
    assert {5, 17}.isdisjoint(of_base)
    assert run("tokenize", "-m", adapter, "t5 t17", "--format", "jsonl").records[0]["ids"] == [5, 17]
    model = bertcli.load(adapter)
    vector = model.outputs([[5, 17]])["hidden"][0].mean(axis=0)
    assert_near(model.encode(["t5 t17"])[0], vector, 1e-6)
    chosen = run("encode", "-m", f"{base}+{adapter}", "t5 t17", "--format", "jsonl").records[0]["embedding"]
    assert_near(chosen, vector, 1e-6)


def test_an_adapter_in_a_folder_of_sentence_transformers(tmp_path: Path) -> None:
    base, adapter = write_lora(tmp_path, "bert vectors")
    write_modules(adapter, POOLED)
    (adapter / "1_Pooling").mkdir()
    (adapter / "1_Pooling" / "config.json").write_text('{"pooling_mode": "cls"}')
    model = bertcli.load(adapter)
    assert model.kind.pooling == ("cls",)
    plain = bertcli.load(base, adapter=adapter).encode(["hot tea"], pooling="cls")
    np.testing.assert_array_equal(model.encode(["hot tea"]), plain)
    assert np.abs(plain - bertcli.load(base).encode(["hot tea"], pooling="cls")).max() > 0.01


@pytest.mark.any_kernel
@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"peft_type": "LOHA"}, "has the peft_type 'LOHA'; bertcli applies LORA"),
        ({"use_dora": True}, "has the use_dora true, which bertcli does not apply"),
        ({"something_new": 3}, "has the something_new 3, which bertcli does not apply"),
        ({"init_lora_weights": "pissa"}, "has the init_lora_weights 'pissa', which change the base"),
        ({"alpha_pattern": {"(a+)+": 3}}, "has the alpha_pattern"),
        ({"layers_to_transform": [0]}, r"has the layers_to_transform \[0\], but there are tensors of"),
        ({"layers_to_transform": 1, "layers_pattern": "layer"}, "has the layers_to_transform 1, but there are"),
        ({"layers_to_transform": [0, 1], "layers_pattern": "blocks"}, r"has the layers_to_transform \[0, 1\], but"),
        ({"layers_to_transform": [0, 1], "layers_pattern": "(a+)+"}, "has the layers_pattern"),
        ({"modules_to_save": "classifier"}, "has the modules_to_save 'classifier'"),
        ({"exclude_modules": ["value"]}, "has the exclude_modules"),
        ({"target_modules": ["query"]}, r"has the target_modules \['query'\], but there are tensors of"),
        ({"lora_alpha": "much"}, "has the lora_alpha 'much'"),
        ({"base_model_name_or_path": None}, "base_model_name_or_path null: give the base with -m"),
        (
            {"base_model_name_or_path": "./nowhere"},
            "There is no folder './nowhere'.* Or give its base: -m",
        ),
    ],
)
def test_adapters_that_are_not_applied_are_refused_by_name(
    tmp_path: Path, changes: dict[str, Any], message: str
) -> None:
    _, adapter = write_lora(tmp_path, "bert", **changes)
    with pytest.raises(BertcliError, match=message):
        bertcli.load(adapter)


@pytest.mark.parametrize(
    ("pattern", "changed"),
    [
        ("self.query", [0, 1]),
        ("^self.query", []),
        ("^bert.encoder.layer.1.attention.self.query", [1]),
        ("elf.query", []),
    ],
)
def test_a_pattern_is_the_end_of_a_name_or_from_its_beginning_the_whole(
    tmp_path: Path, pattern: str, changed: list[int]
) -> None:
    base, adapter = write_lora(tmp_path, "bert", alpha_pattern={pattern: 10})
    before, after = weights_of(bertcli.load(base)), weights_of(bertcli.load(adapter))
    stored = load_file(adapter / "adapter_model.safetensors")
    for number in (0, 1):
        for name, scale in (("query", 5 if number in changed else 3), ("value", 3)):
            module = f"base_model.model.bert.encoder.layer.{number}.attention.self.{name}"
            product = stored[f"{module}.lora_B.weight"] @ stored[f"{module}.lora_A.weight"]
            path = f"encoder.layers.{number}.attention.{name}.weight"
            assert_near(after[path] - before[path], scale * product, 1e-6)


def weights_of(model: Model) -> dict[str, Any]:
    """The model's arrays by their paths."""
    return {weight.path: weight.array for weight in parameters(model.network)}


@pytest.mark.any_kernel
def test_of_several_patterns_that_fit_the_first_counts(tmp_path: Path) -> None:
    """As in peft, which takes the first in the order of the file, not the longest."""
    vectors: list[list[float]] = []
    for patterns in ({"query": 10}, {"query": 10, "self.query": 40}, {"self.query": 40, "query": 10}):
        folder = tmp_path / str(len(vectors))
        folder.mkdir()
        base, adapter = write_lora(folder, "bert", alpha_pattern=patterns)
        write_numbers(base)
        (record,) = run("encode", "-m", f"{base}+{adapter}", SENTENCES[0], "--format", "jsonl").records
        vectors.append(record["embedding"])
    assert vectors[0] == vectors[1]
    assert np.abs(np.subtract(vectors[0], vectors[2])).max() > 1e-4


@pytest.mark.parametrize("prefix", ["_orig_mod.base_model.model.", "base_model.model._orig_mod."])
def test_an_adapter_of_a_compiled_model_is_read(tmp_path: Path, prefix: str) -> None:
    """torch.compile puts _orig_mod before the names of what it was called on: the adapter's model, or its base."""
    base, adapter = write_lora(tmp_path, "bert")
    file = adapter / "adapter_model.safetensors"
    names = {name: name.replace("base_model.model.", prefix) for name in load_file(file)}
    write_safetensors(file, {names[name]: ("F32", values) for name, values in load_file(file).items()})
    settings = adapter / "adapter_config.json"
    queries = [f"_orig_mod.bert.encoder.layer.{n}.attention.self.{part}" for n in (0, 1) for part in ("query", "value")]
    for targets in (None, queries):
        if targets:
            change_json(settings, {"target_modules": targets})
        model = bertcli.load(base, adapter=adapter)
        assert_near(computed(model, "bert"), RECORDED["bert"], 1e-5)


def test_tensors_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    base, adapter = write_lora(tmp_path, "bert")
    file = adapter / "adapter_model.safetensors"
    stored = {name: ("F32", values) for name, values in load_file(file).items()}
    name = "base_model.model.bert.encoder.layer.0.attention.self.query.lora_A.weight"
    for changed, message in (
        (
            {name: ("F32", np.ones((2, 31), np.float32))},
            r"by a matrix of shape \(32, 31\), which does not fit",
        ),
        ({name: ("F32", np.ones((3, 32), np.float32))}, r"matrices of shapes \(3, 32\) and \(32, 2\)"),
        ({name.replace("layer.0", "layer.7"): stored[name]}, "lacks one of the two matrices"),
        ({"base_model.model.x.lora_magnitude_vector": stored[name]}, "which is no matrix of LoRA"),
    ):
        write_safetensors(file, stored | changed)
        with pytest.raises(BertcliError, match=message):
            bertcli.load(adapter)
    elsewhere = {one.replace("layer.0", "layer.7"): tensor for one, tensor in stored.items()}
    write_safetensors(file, elsewhere)
    with pytest.raises(BertcliError, match="which its base does not have: give the base that it was trained on"):
        bertcli.load(adapter)
    file.unlink()
    with pytest.raises(BertcliError, match=r"has an adapter_config.json, but no adapter_model.safetensors or"):
        bertcli.load(adapter)
    with pytest.raises(BertcliError, match=r"has no adapter_config.json, so it is no adapter of peft"):
        bertcli.load(base, adapter=base)
    shutil.copy(adapter / "adapter_config.json", base)
    with pytest.raises(BertcliError, match="which is an adapter itself"):
        bertcli.load(adapter)
