"""The model object: what it accepts, shares and refuses; and what the loader says of every tensor."""

import dataclasses
import pickle
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import Made
from helpers.checkpoints import Sentence, make
from helpers.json_files import read_json, write_json
from helpers.near import assert_near

import bertcli
from bertcli.errors import BertcliError
from bertcli.network.module import parameters


def test_float32_weights_are_used_as_stored_and_read_only(made: Made) -> None:
    model = bertcli.load(made(head="pretraining", dtype="F32"))
    for item in parameters(model.network):
        owner = item.array
        while isinstance(owner.base, np.ndarray):
            owner = owner.base
        assert isinstance(owner, np.memmap), f"{item.path} was copied"
        assert not item.array.flags.writeable


def test_a_model_is_shown_in_a_line() -> None:
    model = bertcli.load("bert-mini-sentence")
    assert repr(model) == "Model('bert-mini-sentence', BERT, 4 layers × 256, numpy)"
    assert repr(bertcli.variant("large")) == "Model('large', BERT, 24 layers × 1024, no weights)"


def test_forward_checks_what_it_is_given(made: Made) -> None:
    model = bertcli.load(made())
    for ids, message in (
        ([[1, 2, 10**6]], "ids must be between 0 and"),
        ([[1, -1]], "ids must be between"),
        ([[1.5, 2]], "whole numbers"),
        ([[1, 2], [3]], "The rows of ids have different lengths"),
        ([1, 2], r"a batch is \[batch, token\]"),
        ([[1] * 49], "at most 48 tokens"),
    ):
        with pytest.raises(BertcliError, match=message):
            model.forward(ids)
    with pytest.raises(BertcliError, match="segments must be between 0 and 1"):
        model.forward([[1, 2]], segments=[[0, 2]])
    with pytest.raises(BertcliError, match=r"The shape of mask is \(1, 3\)"):
        model.forward([[1, 2]], mask=[[1, 1, 1]])


def test_a_model_is_shared_between_threads(made: Made) -> None:
    model = bertcli.load(made())
    batches = [np.full((3, 4 + n % 5), 7 + n) for n in range(16)]
    alone = [model.forward(ids) for ids in batches]
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(model.forward, batches))
    for one, other in zip(alone, together, strict=True):
        assert_near(one, other, 1e-6)


@pytest.mark.parametrize("heads", [None, "mlm", "pooler,nsp", "none"])
def test_a_pickled_model_keeps_its_heads(heads: str | None, made: Made) -> None:
    model = bertcli.load(made(head="pretraining"), heads=heads)
    data = pickle.dumps(model)
    assert len(data) < 1000, "its path"
    again = pickle.loads(data)
    assert again.heads == model.heads
    expected = model.outputs([[1, 2, 3]])
    for head, one in again.outputs([[1, 2, 3]]).items():
        np.testing.assert_array_equal(one, expected[head])


def test_a_variant_has_nothing_to_run() -> None:
    model = bertcli.variant("large")
    with pytest.raises(BertcliError, match="'large' has no weights"):
        model.forward([[1, 2]])
    with pytest.raises(BertcliError, match="variant without a tokenizer"):
        model.tokenizer  # noqa: B018
    with pytest.raises(TypeError, match="variant"):
        pickle.dumps(model)


@pytest.mark.parametrize(
    ("head", "heads"),
    [
        ("model", ("pooler",)),
        ("mlm", ("mlm",)),
        ("pretraining", ("pooler", "mlm", "nsp")),
        ("nsp", ("pooler", "nsp")),
        ("classifier", ("pooler", "classifier")),
    ],
)
def test_heads_are_what_the_file_holds(made: Made, head: str, heads: tuple[str, ...]) -> None:
    assert bertcli.load(made(head=head)).heads == heads


def test_some_of_the_heads(made: Made) -> None:
    folder = made(head="pretraining")
    assert bertcli.load(folder, heads="mlm").heads == ("mlm",)
    with pytest.raises(BertcliError, match="no classifier head; it has pooler, mlm, nsp"):
        bertcli.load(folder, heads="classifier")


def test_a_classifier_of_tokens_is_told_from_one_of_sequences(tmp_path: Path) -> None:
    folder = make(tmp_path / "m", head="classifier")
    config = read_json(folder / "config.json")
    write_json(folder / "config.json", {**config, "architectures": ["BertForTokenClassification"]})
    assert bertcli.load(folder).heads == ("pooler", "token_classifier")


def test_a_missing_or_misshapen_tensor_is_named(tmp_path: Path) -> None:
    folder = make(tmp_path / "m")
    config = read_json(folder / "config.json")
    write_json(folder / "config.json", {**config, "num_hidden_layers": 3})
    with pytest.raises(BertcliError, match=r"lacks the tensor 'bert.encoder.layer.2.attention.self.query.weight'"):
        bertcli.load(folder)
    write_json(folder / "config.json", {**config, "intermediate_size": 63})
    with pytest.raises(BertcliError, match=r"intermediate.dense.weight' has shape \(64, 32\), .* requires \(63, 32\)"):
        bertcli.load(folder)


def test_a_head_whose_pooler_is_lost_names_it(tmp_path: Path) -> None:
    folder = make(tmp_path / "m", head="classifier", pooler=False)
    with pytest.raises(BertcliError, match=r"lacks the tensor 'bert.pooler.dense.weight'"):
        bertcli.load(folder)
    config = read_json(folder / "config.json")
    write_json(folder / "config.json", {**config, "architectures": []})
    assert bertcli.load(folder).heads == ("token_classifier",)  # as far as anybody can tell


def test_labels_that_are_counted_must_be_there(tmp_path: Path) -> None:
    folder = make(tmp_path / "m", head="classifier", num_labels=3)
    assert bertcli.load(folder).config.num_labels == 3
    config = read_json(folder / "config.json")
    write_json(folder / "config.json", {**config, "num_labels": 4})
    with pytest.raises(BertcliError, match=r"classifier.weight' has shape \(3, 32\), .* requires \(4, 32\)"):
        bertcli.load(folder)
    del config["num_labels"]
    write_json(folder / "config.json", config)
    assert bertcli.load(folder).config.num_labels == 3


@pytest.mark.parametrize(
    "use", [bertcli.params, lambda given: bertcli.trace(given).__enter__()], ids=["params", "trace"]
)
def test_a_name_is_no_model(use: Callable[[Any], object]) -> None:
    with pytest.raises(BertcliError, match=r"'bert-base' is not a model; create one: bertcli\.load"):
        use("bert-base")


@pytest.mark.parametrize("value", ["x", 2.5j, [None], object()])
@pytest.mark.parametrize(
    ("use", "option"),
    [
        *(("encode", option) for option in ("workers", "max_length", "batch_tokens", "chunk", "pooling", "layer")),
        *(("fill_mask", option) for option in ("top_k", "truncation")),
        *(("score", option) for option in ("target", "workers")),
        *((use, "max_length") for use in (bertcli.diff, bertcli.explain, bertcli.lens, bertcli.heads)),
        *((use, "batch_tokens") for use in (bertcli.explain, bertcli.heads)),
        (bertcli.diff, "tolerance"),
        (bertcli.variant, "weights"),
        (bertcli.variant, "sizes"),
    ],
)
def test_model_options_of_another_type_are_refused(use: Any, option: str, value: object, made: Made) -> None:
    model, text = bertcli.load(made(head="pretraining", seed=7)), "the [MASK]"
    given = {bertcli.variant: (), bertcli.diff: (model, model, text)}.get(use, (model, text))
    with pytest.raises(BertcliError):
        getattr(model, use)(text, **{option: value}) if isinstance(use, str) else use(*given, **{option: value})


@pytest.mark.parametrize("value", ["yes", 1, [True], np.array([1, 2])])
def test_model_switches_are_true_or_false(value: Any, made: Made) -> None:
    model, text = bertcli.load(made(head="pretraining", seed=7)), "the [MASK]"
    with pytest.raises(BertcliError, match="which is not True or False"):
        model.encode(text, normalize=value)
    with pytest.raises(BertcliError, match="which is not True or False"):
        model.fill_mask(text, joint=value)
    with pytest.raises(BertcliError, match="which is not True or False"):
        bertcli.lens(model, text, all_tokens=value)


def test_model_counts_may_be_those_of_numpy(made: Made) -> None:
    two: Any = np.int64(2)
    model = bertcli.load(made(head="pretraining", seed=7))
    assert len(model.fill_mask("the [MASK]", top_k=two)["masks"][0]["predictions"]) == 2
    assert model.encode("tea", layer=two, max_length=two, batch_tokens=two).shape == (32,)


def test_model_stays_itself_when_the_working_directory_changes(made: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = made(sentence=Sentence(("cls",), "legacy"))
    expected = bertcli.load(folder).encode(["tea"])
    monkeypatch.chdir(folder.parent)
    model = bertcli.load(folder.name)
    monkeypatch.chdir("/")
    assert np.array_equal(model.encode(["tea"]), expected)
    assert np.array_equal(pickle.loads(pickle.dumps(model)).encode(["tea"]), expected)


def test_model_that_was_changed_does_not_pickle_as_the_one_it_was(made: Made) -> None:
    model = bertcli.load(made())
    with pytest.raises(TypeError, match="pickles as its path"):
        pickle.dumps(dataclasses.replace(model, name="another"))


def test_model_refuses_weights_of_no_parameter() -> None:
    sizes = bertcli.BertConfig(
        vocab_size=9, hidden_size=8, num_hidden_layers=1, num_attention_heads=2, intermediate_size=8
    )
    arrays = {path: np.zeros(shape, np.float32) for path, shape in shapes(sizes).items()}
    assert bertcli.variant(config=sizes, weights=arrays, heads="none").has_weights
    with pytest.raises(BertcliError, match="no_such_path"):
        bertcli.variant(config=sizes, weights={**arrays, "no_such_path": [1]}, heads="none")
    with pytest.raises(BertcliError, match="seed"):
        bertcli.variant(config=sizes, weights=-1)
    assert bertcli.variant(config=sizes, weights=np.int64(3)).has_weights  # type: ignore[arg-type]


def shapes(config: bertcli.BertConfig) -> dict[str, tuple[int, ...]]:
    """Of every parameter of the encoder, by its path."""
    from bertcli.network.module import parameters

    found = bertcli.variant(config=config, heads="none").network
    return {parameter.path: parameter.array.shape for parameter in parameters(found)}


@pytest.mark.parametrize("watched", [False, True])
def test_model_runs_batches_without_a_token(made: Made, watched: bool) -> None:
    model = bertcli.load(made(head="pretraining"))
    for ids, mask in ((np.zeros((0, 4), int), None), ([[]], None), ([[2, 3]], [[0, 0]])):
        if watched:
            with bertcli.trace(model) as found:
                states = model.forward(ids, mask=mask)
            assert found.totals.macs == 0
        else:
            states = model.forward(ids, mask=mask)
        assert states.shape == (*np.shape(ids), model.config.hidden_size)
        assert not states.any()
    for ids in (np.zeros((0, 4), int), [[]]):
        with pytest.raises(BertcliError, match="no token"):
            model.outputs(ids)
