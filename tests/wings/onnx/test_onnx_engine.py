"""The engine onnx: what every task gives is what NumPy gives."""

import logging
import pickle
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from shutil import copytree
from typing import Any

import numpy as np
import pytest
from conftest import Made
from helpers.family_checkpoints import make_family
from helpers.json_files import read_json, write_json
from helpers.near import assert_near

import bertcli
from bertcli.engines import EngineChoice
from bertcli.errors import BertcliError
from bertcli.model import Model
from bertcli.tasks.encode import Pooling

TEXTS = ["the small cat", "a", "", "she went to the sea and came back " * 2, "the sea", "it was a long way home"]
MASKED = ["the [MASK] cat", "[MASK] went to the [MASK] and came back", "a [MASK]"]


@pytest.fixture(autouse=True)
def folder(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    place = tmp_path_factory.getbasetemp() / "graphs"
    monkeypatch.setenv("BERTCLI_CACHE", str(place))
    return place


def both(folder: Path) -> tuple[Model, Model]:
    return bertcli.load(folder), bertcli.load(folder, engine="onnx")


def close(one: Any, other: Any) -> None:
    """Equal records: the same words and order, numbers within 1e-5."""
    if isinstance(one, dict):
        assert one.keys() == other.keys()
        for key in one:
            close(one[key], other[key])
    elif isinstance(one, list | tuple):
        assert len(one) == len(other)
        for pair in zip(one, other, strict=True):
            close(*pair)
    elif isinstance(one, float):
        assert other == pytest.approx(one, abs=1e-5, rel=1e-5)
    else:
        assert one == other


@pytest.mark.parametrize("pooling", ["mean", "cls", "max", "lasttoken", "pooler"])
def test_onnx_engine_encodes_as_numpy_does(made: Made, pooling: Pooling) -> None:
    numpy, onnx = both(made())
    assert_near(onnx.encode(TEXTS, pooling=pooling), numpy.encode(TEXTS, pooling=pooling), 1e-5)


DOINGS: dict[str, tuple[str, Callable[[Model], Any]]] = {
    "encode, none": (
        "model",
        lambda model: [block.records() for block in model.encode_blocks(TEXTS, pooling="none")],
    ),
    "classify": ("classifier", lambda model: model.classify(TEXTS, "the sea")),
    "classify, nsp": ("nsp", lambda model: model.classify(TEXTS[:2], "the sea", head="nsp")),
    "fill-mask": ("mlm", lambda model: model.fill_mask(MASKED)),
    "fill-mask, targets": ("mlm", lambda model: model.fill_mask(MASKED, targets=["cat", "sea"])),
    "score": ("mlm", lambda model: model.score(TEXTS)),
    "tag": ("token_classifier", lambda model: model.tag(TEXTS, ignore=())),
    "answer": ("qa", lambda model: model.answer(["where did she go?"], "she went to the sea")),
    "rank": ("classifier", lambda model: model.rank("the sea", TEXTS)),
}


@pytest.mark.parametrize("name", DOINGS)
def test_onnx_engine_does_what_numpy_does(made: Made, name: str) -> None:
    head, run = DOINGS[name]
    folder = made(head=head, **({"num_labels": 1} if name == "rank" else {}))
    numpy, onnx = both(folder)
    close(run(numpy), run(onnx))


WINDOWS: dict[str, tuple[str, dict[str, Any]]] = {
    "modernbert": ("modernbert", {"local_attention": 20}),
    "gemma": ("gemma3_text", {"sliding_window": 20, "use_bidirectional_attention": True}),
    "gemma, causal": ("gemma3_text", {"sliding_window": 90, "use_bidirectional_attention": False}),
}


@pytest.mark.parametrize("name", WINDOWS)
def test_onnx_engine_cuts_long_texts_into_windows(tmp_path: Path, name: str) -> None:
    """Texts on both sides of the length from which blocks of queries are computed, and with tokens masked inside."""
    family, config = WINDOWS[name]
    numpy, onnx = both(make_family(tmp_path, family, sizes={"P": 400}, config=config))
    generator = np.random.default_rng(0)
    for lengths in ((84, 3), (300,), (65, 64, 257, 1)):
        ids = generator.integers(5, numpy.config.vocab_size, (len(lengths), max(lengths)))
        mask = (np.arange(max(lengths)) < np.array(lengths)[:, None]).astype(int)
        for _ in range(2):
            states = numpy.forward(ids, None, mask)
            # Random states of long texts reach 3: their rounding is a share of the largest number.
            assert_near(onnx.forward(ids, None, mask), states, 1e-5 * np.abs(states).max())
            mask[:, 1::3] = 0


def test_onnx_engine_leaves_out_masked_tokens(made: Made) -> None:
    numpy, onnx = both(made())
    generator = np.random.default_rng(0)
    ids, mask = generator.integers(0, numpy.config.vocab_size, (9, 20)), generator.integers(0, 2, (9, 20))
    mask[0], mask[1] = 0, 1
    assert_near(onnx.forward(ids, None, mask), numpy.forward(ids, None, mask), 1e-5)
    assert onnx.forward(np.empty((0, 5), int)).shape == (0, 5, numpy.config.hidden_size)


def test_onnx_engine_gives_other_layers_by_numpy_and_says_so(made: Made, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "bertcli")
    numpy, onnx = both(made())
    np.testing.assert_array_equal(onnx.encode(TEXTS, layer=[0, 1]), numpy.encode(TEXTS, layer=[0, 1]))
    assert [message for message in caplog.messages if "empty" not in message] == [
        "NumPy computes these layers: the graph of ONNX Runtime only gives the last."
    ]


def test_onnx_engine_leaves_a_network_of_ones_own_to_numpy(made: Made) -> None:
    """The session knows the checkpoint's network alone."""
    numpy, onnx = both(made())
    table = numpy.network.embeddings.token
    own = replace(numpy.network, embeddings=replace(numpy.network.embeddings, token=table[::-1].copy()))
    ids = [[2, 7, 9, 3]]
    expected = replace(numpy, network=own).forward(ids)
    assert not np.allclose(expected, numpy.forward(ids), atol=1e-2)
    np.testing.assert_array_equal(replace(onnx, network=own).forward(ids), expected)


def test_onnx_engine_is_traced_as_numpy(made: Made) -> None:
    numpy, onnx = both(made())
    traces = []
    for model in (numpy, onnx):
        with bertcli.trace(model) as trace:
            hidden = model.forward([[1, 2, 3]])
        traces.append((hidden, trace.steps, trace.totals))
    np.testing.assert_array_equal(traces[0][0], traces[1][0])
    assert traces[0][1:] == traces[1][1:]
    assert bertcli.params(onnx).record == bertcli.params(numpy).record


def test_onnx_engine_int8_is_near(made: Made) -> None:
    numpy = bertcli.load("bert-mini-sentiment")
    int8 = bertcli.load("bert-mini-sentiment", engine="onnx-int8")
    texts = ["What a wonderful film!", "Dull from the first minute to the last.", "I would see it again tomorrow."]
    one, other = (model.encode(texts, normalize=True) for model in (numpy, int8))
    cosines = (one * other).sum(axis=1)
    assert (cosines > 0.999).all()
    assert np.abs(one - other).max() > 1e-5  # it is another precision
    labels = [[record["labels"][0]["label"] for record in model.classify(texts)] for model in (numpy, int8)]
    assert labels[0] == labels[1] == ["positive", "negative", "positive"]


def test_onnx_engine_goes_with_a_pickled_model(made: Made) -> None:
    model = bertcli.load(made(), engine="onnx-int8")
    again = pickle.loads(pickle.dumps(model))
    assert again.engine == model.engine == EngineChoice("onnx-int8", "cpu")
    assert_near(again.encode(TEXTS), model.encode(TEXTS), 1e-6)


def test_onnx_engine_works_in_worker_processes(made: Made) -> None:
    model = bertcli.load(made(), engine="onnx")
    alone, shared = (model.encode(TEXTS * 20, batch_tokens=60, workers=count) for count in (1, 2))
    assert_near(alone, shared, 1e-6)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"engine": "torch"}, "There is no engine 'torch'; choose from numpy, onnx, onnx-int8"),
        ({"device": "cuda"}, "for another device use ONNX Runtime"),
        ({"engine": "onnx", "device": "gpu"}, "There is no device 'gpu'"),
    ],
)
def test_onnx_engine_refuses(made: Made, options: dict[str, str], message: str) -> None:
    with pytest.raises(BertcliError, match=message):
        bertcli.load(made(), **options)  # type: ignore[arg-type]


def test_onnx_engine_without_the_extra(made: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bertcli.wings.onnx.session.installed", lambda package: False)
    with pytest.raises(BertcliError, match=r"This needs onnx and onnxruntime: pip install 'bertcli\[onnx\]'"):
        bertcli.load(made(), engine="onnx")


def test_a_kept_graph_is_not_that_of_other_settings_with_the_same_weights(made: Made, tmp_path: Path) -> None:
    folder = copytree(made(seed=7), tmp_path / "model")
    config = read_json(folder / "config.json")
    vectors: list[Any] = []
    changes: tuple[dict[str, Any], ...] = (
        {}, {"layer_norm_eps": 0.1}, {"num_attention_heads": 4},
    )  # fmt: skip
    for change in changes:
        write_json(folder / "config.json", config | change)
        expected, found = (model.encode(["hot tea", "a cat"]) for model in both(folder))
        np.testing.assert_allclose(found, expected, atol=1e-5, err_msg=str(change))
        vectors.append(expected)
    assert all(np.abs(one - vectors[0]).max() > 1e-3 for one in vectors[1:])
