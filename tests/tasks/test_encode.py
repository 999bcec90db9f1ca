"""encode and similarity: vectors equal those computed by hand from hidden states; wrong options are refused."""

from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from conftest import Made
from helpers.checkpoint_files import write_safetensors
from helpers.checkpoints import Dense, Sentence, make
from helpers.forward import states
from helpers.near import assert_near
from helpers.terminal import bertcli as command
from numpy.typing import NDArray

import bertcli
from bertcli.errors import BertcliError
from bertcli.folder.files import Folder
from bertcli.model import Model
from bertcli.tasks.compute.similarity import similarity
from bertcli.tasks.encode import Pooling
from bertcli.weights.tensors import open_tensors

TEXTS = ("The cat sat on the mat.", "", "tea", "She poured a cup of hot coffee, and he drank it.")
Array = NDArray[Any]
BY_HAND: dict[str, Callable[[Array], Array]] = {
    "mean": lambda x: x.mean(axis=0), "cls": lambda x: x[0], "max": lambda x: x.max(axis=0)
}  # fmt: skip


@pytest.mark.parametrize("layer", [-3, (2, 1, 0)])
@pytest.mark.parametrize("pooling", ["mean", "cls", "max"])
def test_encode_poolings_and_layers(pooling: Pooling, layer: int | tuple[int, ...], mlm: Model) -> None:
    found = mlm.encode(TEXTS, pooling=pooling, layer=layer)
    numbers = (layer,) if isinstance(layer, int) else layer
    for vector, text in zip(found, TEXTS, strict=True):
        expected = np.concatenate([BY_HAND[pooling](states(mlm, text)[number]) for number in numbers])
        assert_near(vector, expected, 1e-5)


def test_encode_vectors_of_tokens(mlm: Model) -> None:
    (block,) = mlm.encode_blocks(TEXTS, pooling="none", layer=(1, 2))
    for item, vectors in zip(block.items, block.vectors, strict=True):
        expected = np.concatenate(states(mlm, item.text.text)[1:], axis=1)
        assert_near(vectors, expected, 1e-5)
    records = list(block.records())
    assert records[1]["tokens"] == ["[CLS]", "[SEP]"]
    assert np.shape(records[1]["embeddings"]) == (2, 64)
    with pytest.raises(BertcliError, match="encode_blocks"):
        mlm.encode(TEXTS, pooling="none")


def test_encode_normalized_vectors_have_length_one(mlm: Model) -> None:
    plain, unit = (mlm.encode(TEXTS, normalize=normalize) for normalize in (None, True))
    assert_near(unit, plain / np.linalg.norm(plain, axis=1, keepdims=True), 1e-6)
    assert_near(np.linalg.norm(unit, axis=1), 1, 1e-6)
    (block,) = mlm.encode_blocks(["tea"], pooling="none", normalize=True)
    assert_near(np.linalg.norm(block.vectors[0], axis=1), 1, 1e-6)


def test_encode_zero_vectors_stay_zero(made: Made) -> None:
    from bertcli.kinds.vectors import unit
    from bertcli.tasks.compute.similarity import cosines

    zero = np.zeros((2, 4), np.float32)
    assert np.array_equal(unit(zero), zero)
    assert np.array_equal(np.concatenate(list(cosines(zero))), np.eye(2))


@pytest.mark.parametrize("choice", [{"pooling": "mean"}, {"layer": (0, 1)}])
def test_encode_applies_or_refuses_a_dense_layer(choice: dict[str, Any], made: Made) -> None:
    model = bertcli.load(made(sentence=Sentence(pooling=("cls", "mean"), dense=(Dense(10),))))
    with pytest.raises(BertcliError, match="Dense layer takes vectors of length 64"):
        model.encode(TEXTS, **choice)
    assert model.encode(TEXTS, pooling="mean", layer=(0, 1)).shape == (4, 10)


def test_encode_refuses_no_layer_at_all(mlm: Model) -> None:
    with pytest.raises(BertcliError) as refused:
        mlm.encode(TEXTS, layer=[])
    assert str(refused.value) == "layer (--layer) is empty: give at least one, such as -1."


def test_encode_layers_are_any_whole_numbers(mlm: Model) -> None:
    np.testing.assert_array_equal(mlm.encode(["tea"], layer=np.int64(-1)), mlm.encode(["tea"]))  # type: ignore[arg-type]


def test_encode_pooler_needs_the_last_layer_and_a_pooler(mlm: Model, made: Made) -> None:
    with pytest.raises(BertcliError, match="only works on the last layer"):
        mlm.encode(TEXTS, pooling="pooler", layer=1)
    with pytest.raises(BertcliError, match=r"needs a pooler, which .* does not have; its heads: mlm"):
        bertcli.load(made(head="mlm")).encode(TEXTS, pooling="pooler")
    with pytest.raises(BertcliError, match="no pooling 'sum'"):
        mlm.encode(TEXTS, pooling="sum")  # type: ignore[arg-type]


def test_encode_no_texts_no_vectors(mlm: Model) -> None:
    assert mlm.encode([]).shape == (0, 32)
    assert mlm.encode([], layer=(0, 1)).shape == (0, 64)
    assert list(similarity([])) == []


def test_encode_takes_one_text(mlm: Model) -> None:
    assert np.array_equal(mlm.encode("tea"), mlm.encode(["tea"])[0])
    assert mlm.encode("tea " * 30, chunk=12).ndim == 2


def test_encode_names_its_own_word_for_an_option_of_another_library(mlm: Model) -> None:
    encode: Any = mlm.encode
    for name, answer in (
        ("batch_size", "as they fit"),
        ("sentences", "it is called texts"),
        ("convert_to_numpy", "is a NumPy array"),
        ("normalize_embeddings", "it is called normalize"),
        ("show_progress_bar", "nothing is printed"),
    ):
        with pytest.raises(TypeError, match=rf"encode\(\) has no option '{name}': .*{answer}"):
            encode(["tea"], **{name: True})
    with pytest.raises(TypeError, match=r"has no option 'zzz'\. Choose from texts, "):
        encode(["tea"], zzz=1)
    tag: Any = mlm.tag
    with pytest.raises(TypeError, match=r"no option 'aggregation_strategy': it is called aggregation\."):
        tag("tea", aggregation_strategy="first")
    for holder, name, answer in (
        (mlm, "encode_query", r"encode\(texts, prompt_name='query'\)"),
        (mlm, "run_with_cache", r"bertcli\.trace\(model, text, keep=.*\.arrays"),
        (bertcli, "AnalyzerEngine", r"bertcli\.load opens a model, which has the method tag"),
        (bertcli, "head_view", r"bertcli heads TEXT -o FILE\.html"),
        (mlm, "run_with_hooks", r"bertcli\.heads\(model, text, ablate=True\)"),
        (bertcli, "pipeline", "a model has the tasks as methods"),
    ):
        with pytest.raises(AttributeError, match=rf"has no attribute '{name}': {answer}"):
            getattr(holder, name)
    with pytest.raises(AttributeError, match=r"'Model' object has no attribute 'zzz'$"):
        _ = mlm.zzz


def test_model_similarity_is_that_of_the_folder(made: Made) -> None:
    model = bertcli.load(made(head="pretraining", seed=7))
    vectors = model.encode(TEXTS)
    directions = vectors.astype(np.float64) / np.linalg.norm(vectors, axis=1, keepdims=True)
    assert_near(model.similarity(vectors, vectors[:1]), directions @ directions[:1].T, 1e-6)
    assert model.similarity(vectors[0], vectors[0]).shape == (1, 1)
    assert model.similarity(vectors[0], vectors[0])[0, 0] == pytest.approx(1, abs=1e-6)
    with pytest.raises(BertcliError, match="compare equal ones"):
        model.similarity(vectors, vectors[:, :3])


def test_similarity_is_the_cosine(mlm: Model) -> None:
    vectors = mlm.encode(TEXTS).astype(np.float64)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    blocks = list(mlm.encode_blocks(TEXTS))
    records = list(similarity(blocks))
    assert_near([record["cosine"] for record in records], vectors @ vectors.T, 1e-6)
    assert [list(record) for record in records] == [["index", "text", "cosine"]] * len(TEXTS)
    assert [(record["index"], record["text"]) for record in records] == list(enumerate(TEXTS))
    with patch("bertcli.tasks.compute.similarity.NUMBERS", len(TEXTS) * 2):
        for one, other in zip(
            similarity(blocks), records, strict=True
        ):  # products of other sizes: the last bit differs
            assert_near(one.pop("cosine"), other["cosine"], 1e-6)
            assert one == {key: value for key, value in other.items() if key != "cosine"}


def test_encode_lower_cases_both_texts_of_a_pair(made: Made) -> None:
    folder = made(sentence=Sentence(do_lower_case=True), lower_case=False)
    model = bertcli.load(folder)
    assert np.array_equal(model.encode(["THE"], ["TEA"]), model.encode(["the"], ["tea"]))


def test_encode_no_pooling_is_the_checkpoints_own(made: Made) -> None:
    model = bertcli.load(made(sentence=Sentence(("cls",), "legacy")))
    assert np.array_equal(model.encode(["tea"], pooling=None), model.encode(["tea"], pooling="cls"))


def test_encode_applies_a_checkpoints_own_truncate_dim(tmp_path: Path) -> None:
    folder = make(tmp_path / "m", sentence=Sentence(("mean",), "legacy", normalize=True))
    model = bertcli.load(folder)
    whole = model.encode(["tea", "a cat"])
    (folder / "config_sentence_transformers.json").write_text('{"truncate_dim": 8}')
    short = bertcli.load(folder)
    assert np.array_equal(short.encode(["tea", "a cat"]), whole[:, :8])  # not normalized once more
    unit = whole[:, :8] / np.linalg.norm(whole[:, :8], axis=1, keepdims=True)
    assert_near(short.encode(["tea", "a cat"], normalize=True), unit, 1e-6)  # unless asked for
    (asked,) = short.encode_blocks(["tea"], truncate_dim=4)
    assert np.linalg.norm(np.asarray(asked.vectors)) == pytest.approx(1, abs=1e-6)
    assert np.asarray(asked.vectors).shape == (1, 4)
    (folder / "config_sentence_transformers.json").write_text('{"truncate_dim": "8"}')
    with pytest.raises(BertcliError, match="truncate_dim"):
        bertcli.load(folder).encode(["tea"])


@pytest.mark.parametrize(
    ("name", "shape", "architecture", "message"),
    [
        ("linear.weight", (12, 32), "HF_ColBERT", "a vector for each token"),
        ("linear.weight", (12, 32), "BertModel", "layer 'linear.weight', which bertcli does not"),
        ("projection.dense.weight", (7, 32), "BertModel", "layer 'projection.dense.weight', which bertcli does not"),
        ("cls.seq_relationship.weight", (2, 32), "BertModel", None),  # of pre-training
        ("bert.embeddings.other.weight", (2, 32), "BertModel", None),
        ("linear.weight", (12, 31), "BertModel", None),
    ],
)
def test_encode_does_not_replace_a_layer_after_the_network_by_a_mean(
    name: str, shape: tuple[int, int], architecture: str, message: str | None, tmp_path: Path
) -> None:
    folder = make(tmp_path, pooler=False, config={"architectures": [architecture]})
    stored = {one: (tensor.dtype, np.array(tensor.array)) for one, tensor in open_tensors(Folder(folder)).items()}
    write_safetensors(folder / "model.safetensors", stored | {name: ("F32", np.ones(shape, np.float32))})
    model = bertcli.load(folder)
    if message is None:
        assert model.encode(["tea"]).shape == (1, 32)
    else:
        with pytest.raises(BertcliError, match=message):
            model.encode(["tea"])
    assert model.encode(["tea"], pooling="mean").shape == (1, 32)


@pytest.mark.parametrize(("ending", "left_out"), [(".npy", True), (".safetensors", False)])
def test_encode_says_where_scales_of_int8_are_left_out(ending: str, left_out: bool, tmp_path: Path) -> None:
    ran = command("encode", "tea", "--dtype", "int8", "-o", tmp_path / f"v{ending}")
    assert ran.status == 0
    assert ("a .npy file holds one array, so the int8 scales are left out" in ran.err) == left_out
