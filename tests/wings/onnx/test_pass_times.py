"""How long a pass takes in each engine: what is measured, how it is kept; and how exact int8 is."""

import json
from itertools import count, groupby
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import Made
from helpers.checkpoints import Sentence
from helpers.terminal import bertcli

import bertcli as library
from bertcli import doctor
from bertcli.errors import BertcliError
from bertcli.network.heads import Network
from bertcli.tasks.parts.sample_sentences import SENTENCES
from bertcli.wings.onnx import exactness, pass_times
from bertcli.wings.onnx.pass_times import BATCH, LONG, LONGER, SHORT, tokens_of_a_call
from bertcli.wings.onnx.session import hidden_states

TEXTS = ["the small cat", "a", "she went to the sea and came back " * 6, "the sea"]
SLOW = {SHORT: 0.004, LONGER: 0.020, BATCH: 0.040, LONG: 0.080}
FAST = {shape: time / 2 for shape, time in SLOW.items()}


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("BERTCLI_CACHE", str(tmp_path / "cache"))
    # What else doctor measures takes a second.
    monkeypatch.setattr(doctor, "_best_of", lambda work, times: 1.0)
    return tmp_path / "cache"


def measured(monkeypatch: pytest.MonkeyPatch, numpy: Any, onnx: Any) -> list[int]:
    """Let the engines take these times; how often they were measured."""
    calls: list[int] = []

    def times(runs: dict[str, Any], *arguments: Any) -> dict[str, Any]:
        calls.append(len(runs))
        return {name: {"numpy": numpy, "onnx": onnx}[name] for name in runs}

    monkeypatch.setattr(pass_times, "_times", times)
    return calls


def test_a_call_costs_as_much_as_so_many_tokens() -> None:
    assert tokens_of_a_call({SHORT: 0.0048, LONGER: 0.0160}) == 32  # 0.1 ms a token, 3.2 ms a call
    assert tokens_of_a_call({SHORT: 0.0050, LONGER: 0.0162}) == 32, "so much noise groups sentences alike"
    assert tokens_of_a_call({SHORT: 0.01, LONGER: 0.009}) == 128
    assert tokens_of_a_call({SHORT: 0.0016, LONGER: 0.0128}) == 16


def timed(folder: Path) -> list[dict[str, Any]]:
    """The table of `doctor -m`."""
    return list(json.loads(bertcli("doctor", "-m", folder, "--format", "json").out)["engines"])


def test_a_model_is_measured_once(made: Made, monkeypatch: pytest.MonkeyPatch, cache: Path) -> None:
    calls = measured(monkeypatch, SLOW, FAST)
    folder = made()
    for _ in range(2):
        timed(folder)
    assert calls == [1, 2], "a call of ONNX Runtime, then both engines"
    (file,) = cache.rglob("speeds-*.json")
    for damaged in ("", "{}", '{"numpy": 3, "onnx": {}}', '{"numpy": {"1x16": -1}, "onnx": {}}'):
        file.write_text(damaged)
        assert {row["faster"] for row in timed(folder)} == {"onnx"}
        assert json.loads(file.read_text())["onnx"]["1x16"] == FAST[SHORT]
    assert len(calls) == 6
    monkeypatch.setattr(pass_times, "thread_count", lambda: 77)
    timed(folder)
    assert len(calls) == 8, "other threads are measured by themselves"


@pytest.mark.parametrize(
    ("tick", "shapes"),
    [(1e-5, [SHORT, LONGER, BATCH, LONG]), (0.05, [SHORT, LONGER, BATCH]), (0.5, [SHORT, LONGER])],
)
def test_longer_shapes_are_measured_while_there_is_time(
    made: Made, monkeypatch: pytest.MonkeyPatch, tick: float, shapes: list[tuple[int, int]]
) -> None:
    """By a clock that goes on by a tick whenever it is read."""
    clock = count()
    monkeypatch.setattr(pass_times, "perf_counter", lambda: tick * next(clock))
    table = timed(made())
    assert [(row["sentences"], row["tokens"]) for row in table] == shapes
    assert all(row["numpy_ms"] > 0 and row["onnx_ms"] > 0 for row in table)


def test_each_engine_is_measured_several_times_in_a_row(made: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    """Since NumPy's first pass after one of ONNX Runtime is slower than those that follow."""
    order: list[str] = []
    by_session, by_network = hidden_states, Network.forward

    def onnx(*arguments: Any) -> Any:
        order.append("onnx")
        return by_session(*arguments)

    def numpy(*arguments: Any) -> Any:
        order.append("numpy")
        return by_network(*arguments)

    folder = made()
    library.load(folder, engine="onnx")  # its graph is made, for which the network is watched
    monkeypatch.setattr(pass_times, "hidden_states", onnx)
    monkeypatch.setattr(Network, "forward", numpy)
    timed(folder)
    turns = [len([*turn]) for _, turn in groupby(order)]
    assert {*order} == {"onnx", "numpy"}
    assert min(turns) >= 2


def test_doctor_says_why_only_numpy_runs(made: Made, cache: Path) -> None:
    cache.write_text("a file")
    said = " ".join(bertcli("doctor", "-m", made()).err.split())
    assert "NumPy alone can run this model here." in said
    assert "cannot be written" in said


def test_doctor_prints_the_times_of_a_model(made: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    measured(monkeypatch, SLOW, {SHORT: 0.001, LONGER: 0.030, BATCH: 0.050, LONG: 0.2})
    folder = made()
    rows = [line.split() for line in bertcli("doctor", "-m", folder).out.splitlines()[-4:]]
    assert rows[0] == ["1", "16", "4.00", "1.00", "onnx"]
    assert rows[1] == ["1", "128", "20.00", "30.00", "numpy"]
    record = json.loads(bertcli("doctor", "-m", folder, "--format", "json").out)["engines"]
    assert record[2] == {"sentences": 8, "tokens": 32, "numpy_ms": 40.0, "onnx_ms": 50.0, "faster": "numpy"}


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
    assert "at least (these and 64 words and short texts)" in said
    monkeypatch.setattr(exactness, "_cosines", None)  # calling it would be a TypeError
    assert bertcli(*options).status == 0, "it is kept beside the graph"


@pytest.mark.parametrize("pooling", ["cls", "lasttoken", "mean"])
def test_int8_is_measured_on_vectors_pooled_as_the_model_pools(pooling: str, made: Made, cache: Path) -> None:
    folder = made(sentence=Sentence((pooling,)), tokenizer="both")
    model = library.load(folder, engine="onnx-int8", force=True)
    exact = library.load(folder)
    (file,) = cache.rglob("exactness-*.json")
    mean, least = json.loads(file.read_bytes())
    cosines: list[float] = []
    assert len({*exactness.TEXTS}) == 128
    for first in range(0, 128, exactness.TOGETHER):  # int8 has one scale for a batch
        texts = exactness.TEXTS[first : first + exactness.TOGETHER]
        pairs = [one.encode(texts, normalize=True) for one in (model, exact)]
        cosines += (pairs[0] * pairs[1]).sum(axis=1).tolist()
    assert mean == pytest.approx(float(np.mean(cosines[: len(SENTENCES)])), abs=1e-5)
    assert least == pytest.approx(min(cosines), abs=1e-5)


def test_int8_that_is_far_off_is_warned_of_or_refused(made: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = made(tokenizer="both")
    options = ("encode", "-m", folder, "a mat", "--engine", "onnx-int8", "--format", "jsonl")
    monkeypatch.setattr(exactness, "WARNED", 1.1)
    warned = bertcli(*options)
    assert warned.status == 0
    assert "compare results on your own data" in " ".join(warned.err.split())
    monkeypatch.setattr(exactness, "REFUSED", 1.05)
    assert "too far from it: use --engine onnx, or in Python force=True" in bertcli(*options).error
    with pytest.raises(BertcliError, match="too far"):
        library.load(folder, engine="onnx-int8")
    assert library.load(folder, engine="onnx-int8", force=True).computing is not None
