"""What a call of ONNX Runtime costs: how it is measured and kept; and how exact int8 is."""

import json
from pathlib import Path

import numpy as np
import pytest
from conftest import Made
from helpers.checkpoints import Sentence
from helpers.json_files import read_json
from helpers.terminal import bertcli

import bertcli as library
from bertcli import doctor
from bertcli.engine.packing import Packed
from bertcli.errors import BertcliError
from bertcli.tasks.parts.sample_sentences import SENTENCES
from bertcli.wings.onnx import engine, exactness, pass_times
from bertcli.wings.onnx.engine import OnnxEngine
from bertcli.wings.onnx.pass_times import SHORT, tokens_of_a_call
from bertcli.wings.onnx.session import Session

TEXTS = ["the small cat", "a", "she went to the sea and came back " * 6, "the sea"]


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("BERTCLI_CACHE", str(tmp_path / "cache"))
    # What else doctor measures takes a second.
    monkeypatch.setattr(doctor, "_best_of", lambda work, times: 1.0)
    return tmp_path / "cache"


def test_a_call_costs_as_much_as_so_many_tokens() -> None:
    assert tokens_of_a_call((0.0048, 0.0160)) == 32  # 0.1 ms a token, 3.2 ms a call
    assert tokens_of_a_call((0.0050, 0.0162)) == 32, "so much noise groups sentences alike"
    assert tokens_of_a_call((0.01, 0.009)) == 128
    assert tokens_of_a_call((0.0016, 0.0128)) == 16


def test_a_model_is_measured_once(made: Made, monkeypatch: pytest.MonkeyPatch, cache: Path) -> None:
    measured: list[int] = []

    def fastest(session: Session, batch: Packed) -> float:
        measured.append(len(batch.ids))
        return 0.0048 if len(batch.ids) == SHORT[1] else 0.0160

    monkeypatch.setattr(pass_times, "_fastest", fastest)
    folder = made(sizes={"max_position_embeddings": 128})
    for _ in range(2):
        assert opened(folder).overhead == 32
    assert measured == [16, 128]
    (file,) = cache.rglob("calls-*.json")
    for damaged in ("", "{}", "[0.1]", "[0.1, -1.0]", '["a", 0.1]'):
        file.write_text(damaged)
        assert opened(folder).overhead == 32
        assert read_json(file) == [0.0048, 0.0160]
    assert len(measured) == 12
    monkeypatch.setattr(pass_times, "thread_count", lambda: 77)
    opened(folder)
    assert len(measured) == 14, "other threads are measured by themselves"


def opened(folder: Path) -> Session:
    """The session of a model."""
    engine = library.load(folder, engine="onnx").other_engine
    assert isinstance(engine, OnnxEngine)
    return engine.session


def test_doctor_sends_who_asks_for_a_model_to_encode() -> None:
    assert "for a model, time bertcli encode with and without --engine onnx" in " ".join(
        bertcli("doctor", "-m", "bert-mini-mlm").err.replace("│", "").split()
    )


# ------------------------------------------------------------------------------------------------- int8


def test_int8_says_the_cosine_of_the_model_itself(made: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = made(tokenizer="both")
    options = ("encode", "-m", folder, "a mat", "--engine", "onnx-int8", "--format", "jsonl")
    said = " ".join(bertcli(*options).err.split())
    model = library.load(folder, engine="onnx-int8")
    exact = library.load(folder)
    texts = list(SENTENCES)
    assert len({*texts}) == 64
    pairs = [one.encode(texts, pooling="mean", normalize=True) for one in (model, exact)]
    cosine = float((pairs[0] * pairs[1]).sum(axis=1).mean())
    mean = float(said.partition("vectors have cosine ")[2].split()[0])
    assert mean == pytest.approx(cosine, abs=0.01)
    assert "(64 built-in sentences)" in said
    monkeypatch.setattr(exactness, "_cosines", None)  # calling it would be a TypeError
    assert bertcli(*options).status == 0, "it is kept beside the graph"


@pytest.mark.parametrize("pooling", ["cls", "lasttoken", "mean"])
def test_int8_is_measured_on_vectors_pooled_as_the_model_pools(pooling: str, made: Made, cache: Path) -> None:
    folder = made(sentence=Sentence((pooling,)), tokenizer="both")
    model = library.load(folder, engine="onnx-int8", force=True)
    exact = library.load(folder)
    (file,) = cache.rglob("cosine-*.json")
    mean = json.loads(file.read_bytes())
    cosines: list[float] = []
    for first in range(0, len(SENTENCES), exactness.TOGETHER):  # int8 has one scale for a batch
        texts = SENTENCES[first : first + exactness.TOGETHER]
        pairs = [one.encode(texts, normalize=True) for one in (model, exact)]
        cosines += (pairs[0] * pairs[1]).sum(axis=1).tolist()
    assert mean == pytest.approx(float(np.mean(cosines)), abs=1e-5)


def test_int8_that_is_far_off_is_refused(made: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = made(tokenizer="both")
    options = ("encode", "-m", folder, "a mat", "--engine", "onnx-int8", "--format", "jsonl")
    monkeypatch.setattr(engine, "LEAST", 1.05)
    assert "too far from it: use --engine onnx, or in Python force=True" in bertcli(*options).error
    with pytest.raises(BertcliError, match="too far"):
        library.load(folder, engine="onnx-int8")
    assert library.load(folder, engine="onnx-int8", force=True).other_engine is not None
