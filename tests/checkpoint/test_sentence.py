"""Sentence-transformers folders: what they say is understood or refused by name."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import Made
from helpers.checkpoints import Dense, Sentence, make
from helpers.json_files import read_json, write_json
from helpers.opened_folders import layout_of, sentence_of
from helpers.terminal import bertcli

from bertcli import load
from bertcli.errors import BertcliError
from bertcli.folder.cache import missing
from bertcli.folder.files import Folder
from bertcli.kinds.sparse_vectors import SpladeWeights

TORCH = "torch.nn.modules.activation."
TRANSFORMER: dict[str, Any] = {"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"}


def change(file: Path, **keys: Any) -> None:
    """Keys put into a JSON object in a file, or taken out where the value is Ellipsis."""
    config = (read_json(file) if file.exists() else {}) | keys
    write_json(file, {key: value for key, value in config.items() if value is not ...})


def modules(folder: Path, *kinds: str) -> None:
    """A modules.json of these types, in this order, each with the path its number and name make."""
    names = [kind.rpartition(".")[2] for kind in kinds]
    paths = ["" if name == "Transformer" else f"{number}_{name}" for number, name in enumerate(names)]
    entries = [{"type": kind, "path": path} for kind, path in zip(kinds, paths, strict=True)]
    write_json(folder / "modules.json", entries)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return make(tmp_path / "model", sentence=Sentence(dense=(Dense(7),), normalize=True, max_seq_length=20))


def test_poolings_that_are_not_there_are_refused_by_name(made: Made) -> None:
    with pytest.raises(
        BertcliError, match=r"1_Pooling/config\.json asks for the pooling 'first'; bertcli supports cls, max"
    ):
        sentence_of(made(sentence=Sentence(("mean", "first"), "new")))


def test_the_limit_needs_no_other_file_in_order(folder: Path) -> None:
    modules(folder, "sentence_transformers.sparse_encoder.models.SparseAutoEncoder")
    assert layout_of(folder).transformer_settings.limit == 20
    with pytest.raises(BertcliError, match="SparseAutoEncoder"):
        sentence_of(folder)


@pytest.mark.parametrize("kind", ["roberta", "distilbert", "xlm-roberta"])
def test_the_limit_may_be_in_a_file_of_an_older_name(folder: Path, kind: str) -> None:
    (folder / "sentence_bert_config.json").rename(folder / f"sentence_{kind}_config.json")
    assert layout_of(folder).transformer_settings.limit == 20


@pytest.mark.parametrize("first", ["models.Transformer", "sparse_encoder.models.MLMTransformer"])
def test_sparse_pooling(tmp_path: Path, first: str) -> None:
    folder = make(tmp_path)
    kinds = [first, "sparse_encoder.modules.splade_pooling.SpladePooling"]
    (folder / "1_SpladePooling").mkdir()
    modules(folder, *(f"sentence_transformers.{kind}" for kind in kinds))
    entries = read_json(folder / "modules.json")
    write_json(folder / "modules.json", [entries[0] | {"path": ""}, entries[1]])
    assert layout_of(folder).missing_files() == ["1_SpladePooling/config.json"]
    file = folder / "1_SpladePooling" / "config.json"
    change(file, word_embedding_dimension=None)
    assert sentence_of(folder).sparse_weights == SpladeWeights("max", "relu", is_stated=True)
    change(file, pooling_strategy="sum", activation_function="log1p_relu")
    assert sentence_of(folder).sparse_weights == SpladeWeights("sum", "log1p_relu", is_stated=True)
    for key in ("pooling_strategy", "activation_function"):
        change(file, pooling_strategy="sum", activation_function="relu")
        change(file, **{key: "mean"})
        with pytest.raises(BertcliError, match=f"1_SpladePooling/config.json has the {key} 'mean'; bertcli supports"):
            sentence_of(folder)


def test_the_default_activation_is_tanh(folder: Path) -> None:
    change(folder / "2_Dense" / "config.json", activation_function=...)
    assert sentence_of(folder).dense[0].activation == "tanh"


@pytest.mark.parametrize("name", [f"{TORCH}Softplus", "os.system", "evil.Tanh", "Tanh", None, 3])
def test_unknown_activations_are_refused_by_name(folder: Path, name: Any) -> None:
    change(folder / "2_Dense" / "config.json", activation_function=name)
    with pytest.raises(BertcliError, match=f"2_Dense/config.json has the activation_function .*{name or 'null'}"):
        sentence_of(folder)


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"in_features": 31}, r"linear.weight of shape \(7, 32\), but .* requires \(7, 31\)"),
        ({"out_features": 8}, r"linear.weight of shape \(7, 32\), but .* requires \(8, 32\)"),
        ({"in_features": ...}, r"requires \(7, null\)"),
        ({"bias": 1}, "the bias 1: set it to true or false"),
        ({"use_residual": True}, "use_residual"),
        ({"module_input_name": "token_embeddings"}, "module_input_name 'token_embeddings'"),
        ({"module_output_name": "token_embeddings"}, "module_output_name 'token_embeddings'"),
    ],
)
def test_dense_layers_that_cannot_be_applied_are_refused(folder: Path, keys: dict[str, Any], message: str) -> None:
    change(folder / "2_Dense" / "config.json", **keys)
    with pytest.raises(BertcliError, match=message):
        sentence_of(folder)


def test_dense_layers_must_fit_what_comes_before(folder: Path) -> None:
    change(folder / "1_Pooling" / "config.json", pooling_mode_cls_token=True)
    with pytest.raises(BertcliError, match="takes vectors of length 32, but the module before it gives 64"):
        sentence_of(folder)


def test_dense_weights_must_be_there(folder: Path) -> None:
    weights = folder / "2_Dense" / "model.safetensors"
    weights.rename(weights.with_name("pytorch_model.bin"))
    with pytest.raises(BertcliError, match=r"2_Dense/pytorch_model.bin is not of the form"):
        sentence_of(folder)
    weights.with_name("pytorch_model.bin").unlink()
    with pytest.raises(BertcliError, match="2_Dense holds no weights"):
        sentence_of(folder)


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"pooling_mode": []}, r"the pooling_mode \[\]"),
        ({"pooling_mode": [["mean"]]}, r"the pooling \['mean'\]"),
        ({"pooling_mode": 1}, "the pooling_mode 1"),
        ({"pooling_mode_cls_token": "yes"}, "pooling_mode_cls_token 'yes'"),
        ({"word_embedding_dimension": "32"}, "the word_embedding_dimension '32'"),
        ({"word_embedding_dimension": 0}, "the word_embedding_dimension 0"),
    ],
)
def test_damaged_pooling_is_refused(folder: Path, keys: dict[str, Any], message: str) -> None:
    change(folder / "1_Pooling" / "config.json", **keys)
    with pytest.raises(BertcliError, match=f"1_Pooling/config.json .*{message}"):
        sentence_of(folder)


@pytest.mark.parametrize(
    "kind", ["sentence_transformers.models.LSTM", "sentence_transformers.models.Dropout", "my.Pooling"]
)
def test_unknown_modules_are_refused_by_name(folder: Path, kind: str) -> None:
    modules(folder, TRANSFORMER["type"], kind)
    with pytest.raises(BertcliError, match=f"modules.json lists the module '{kind}', which bertcli does not support"):
        sentence_of(folder)


def test_the_names_of_later_versions_are_understood(folder: Path) -> None:
    base, own = "sentence_transformers.base.modules", "sentence_transformers.sentence_transformer.modules"
    modules(
        folder,
        f"{base}.transformer.Transformer",
        f"{own}.pooling.Pooling",
        f"{base}.dense.Dense",
        f"{base}.normalize.Normalize",
    )
    config = sentence_of(folder)
    assert (config.pooling, len(config.dense), config.normalize) == (("mean",), 1, True)


@pytest.mark.parametrize(
    "kinds",
    [("Pooling",), ("Transformer", "Pooling", "Normalize", "Dense"), ("Transformer", "Pooling", "Pooling"),
     ("Transformer", "Dense"), ("Pooling", "Transformer"), ("Transformer", "Transformer"), ()],
)  # fmt: skip
def test_other_orders_are_refused(folder: Path, kinds: tuple[str, ...]) -> None:
    modules(folder, *(f"sentence_transformers.models.{kind}" for kind in kinds))
    with pytest.raises(
        BertcliError, match=f"lists the modules {', '.join(kinds)}; bertcli supports one Transformer, one Pool"
    ):
        sentence_of(folder)


@pytest.mark.parametrize("path", ["../1_Pooling", "/1_Pooling", "..", ".", "a/b", "a\\b", "a\0b", ""])
def test_modules_stay_in_their_folder(folder: Path, path: str) -> None:
    entry = {"type": "sentence_transformers.models.Pooling", "path": path}
    write_json(folder / "modules.json", [TRANSFORMER, entry])
    with pytest.raises(
        BertcliError, match="which is not a folder next to it" if path else "a Pooling without a folder"
    ):
        sentence_of(folder)


def test_a_network_in_a_folder_of_its_own(tmp_path: Path) -> None:
    beside = make(tmp_path / "beside", sentence=Sentence(max_seq_length=9), tokenizer="json")
    inside = make(tmp_path / "inside", sentence=Sentence(max_seq_length=9), tokenizer="json")
    (inside / "0_Transformer").mkdir()
    for path in [path for path in inside.iterdir() if path.is_file() and path.name != "modules.json"]:
        path.rename(inside / "0_Transformer" / path.name)
    modules = read_json(inside / "modules.json")
    write_json(inside / "modules.json", [modules[0] | {"path": "0_Transformer"}, *modules[1:]])
    assert missing(Folder(inside)) == layout_of(inside).missing_files() == []
    text = "unbelievable tea " * 9
    found, expected = (load(folder).encode([text], truncation="silent") for folder in (inside, beside))
    np.testing.assert_array_equal(found, expected)
    (inside / "0_Transformer" / "tokenizer.json").unlink()
    (inside / "0_Transformer" / "model.safetensors").unlink()
    assert missing(Folder(inside)) == ["0_Transformer/tokenizer.json", "0_Transformer/model.safetensors"]


@pytest.mark.parametrize("text", ["", "{}", "[1]", '[{"type": 1, "path": ""}]', '[{"type": "a.b"}]', "[" * 100_000])
def test_a_damaged_list_of_modules_is_refused(folder: Path, text: str) -> None:
    (folder / "modules.json").write_text(text)
    with pytest.raises(BertcliError, match=r"modules\.json"):
        sentence_of(folder)


@pytest.mark.parametrize("name", ["modules.json", "sentence_bert_config.json"])
def test_a_link_to_a_file_that_is_gone_is_not_a_file_that_was_never_there(folder: Path, name: str) -> None:
    (folder / name).unlink()
    (folder / name).symlink_to("gone")
    with pytest.raises(BertcliError, match=rf"{name} is a link to a file that no longer exists"):
        sentence_of(folder)


@pytest.mark.parametrize("limit", [0, -1, True, "128", 1.5])
def test_a_damaged_limit_is_refused(folder: Path, limit: Any) -> None:
    change(folder / "sentence_bert_config.json", max_seq_length=limit)
    with pytest.raises(BertcliError, match=f"the max_seq_length '?{str(limit).lower()}"):
        sentence_of(folder)


def test_prompts_by_name(folder: Path) -> None:
    file = folder / "config_sentence_transformers.json"
    change(file, prompts={"query": "Find: ", "document": None})
    assert sentence_of(folder).prompts == {"query": "Find: ", "document": ""}
    for prompts in (["query"], {"query": 1}, "query"):
        change(file, prompts=prompts)
        with pytest.raises(BertcliError, match=r"has the prompts .* which are not texts by name"):
            sentence_of(folder)


def test_a_default_prompt_is_handed_on(folder: Path) -> None:
    file = folder / "config_sentence_transformers.json"
    change(file, prompts={"query": "Find: ", "document": ""}, default_prompt_name=None)
    assert sentence_of(folder).prompt == ""
    change(file, default_prompt_name="query")
    assert sentence_of(folder).prompt == "Find: "
    told = bertcli("encode", "-m", folder, "tea", "--format", "jsonl")
    assert "Note: pooling mean, from 1_Pooling/config.json; vectors of length 1; 'Find: ' is prepended to" in told.err
    change(folder / "1_Pooling" / "config.json", include_prompt=False)
    assert not sentence_of(folder).include_prompt
    change(file, default_prompt_name="no such")
    with pytest.raises(BertcliError, match="default_prompt_name 'no such' but no such prompt"):
        sentence_of(folder)
