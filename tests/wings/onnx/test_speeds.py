"""Which engine is faster: what is measured, how it is kept, and what follows from it."""

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
from bertcli.engine.packing import pack
from bertcli.errors import BertcliError
from bertcli.network.heads import Network
from bertcli.wings.onnx import exactness, speeds
from bertcli.wings.onnx.session import hidden_states
from bertcli.wings.onnx.speeds import BATCH, LONG, LONGER, SHORT, Speeds, seconds, tokens_of_a_call

TEXTS = ["the small cat", "a", "she went to the sea and came back " * 6, "the sea"]
SLOW = {SHORT: 0.004, LONGER: 0.020, BATCH: 0.040, LONG: 0.080}
FAST = {shape: time / 2 for shape, time in SLOW.items()}


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("BERTCLI_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def measured(monkeypatch: pytest.MonkeyPatch, numpy: Any, onnx: Any) -> list[int]:
    """Let the engines take these times; how often they were measured."""
    calls: list[int] = []

    def times(runs: dict[str, Any], *arguments: Any) -> dict[str, Any]:
        calls.append(len(runs))
        return {name: {"numpy": numpy, "onnx": onnx}[name] for name in runs}

    monkeypatch.setattr(speeds, "_times", times)
    return calls


def sentences(*lengths: int) -> Any:
    return pack([type("S", (), {"ids": [1] * n, "segments": [0] * n}) for n in lengths])  # type: ignore[misc]


# -------------------------------------------------------------------------------------------- what follows from times


def test_times_are_interpolated_over_tokens() -> None:
    for shape in (SHORT, LONGER, BATCH):
        assert seconds(SLOW, *shape) == pytest.approx(SLOW[shape])
    assert seconds(SLOW, 1, 72) == pytest.approx(0.012)  # halfway between 16 and 128
    assert seconds(SLOW, 2, 96) == pytest.approx(0.030)  # 192 tokens, halfway between 128 and 256
    assert seconds(SLOW, 1, 512) == pytest.approx(0.080), "a long text as it was measured"
    assert seconds(SLOW, 8, 64) == pytest.approx(0.080), "many short ones along the line: 0.04 + 256 × 0.02 / 128"
    assert seconds({SHORT: 0.004, LONGER: 0.020}, 1, 240) == pytest.approx(0.036)


def test_a_call_costs_as_much_as_so_many_tokens() -> None:
    assert tokens_of_a_call({SHORT: 0.0048, LONGER: 0.0160}) == 32  # 0.1 ms a token, 3.2 ms a call
    assert tokens_of_a_call({SHORT: 0.0050, LONGER: 0.0162}) == 32, "so much noise groups sentences alike"
    assert tokens_of_a_call({SHORT: 0.01, LONGER: 0.009}) == 128
    assert tokens_of_a_call({SHORT: 0.0016, LONGER: 0.0128}) == 16


def test_the_faster_engine_depends_on_the_batch() -> None:
    assert Speeds(SLOW, FAST).winner == "onnx"
    assert Speeds(FAST, SLOW).winner == "numpy"
    mixed = Speeds(SLOW, {SHORT: 0.001, LONGER: 0.030, BATCH: 0.050})
    mixed = Speeds({shape: SLOW[shape] for shape in mixed.onnx}, mixed.onnx)
    assert mixed.winner is None
    assert mixed.for_batches == "numpy"
    assert mixed.prefers_onnx(sentences(10), 384)
    assert not mixed.prefers_onnx(sentences(120), 384)
    assert not mixed.prefers_onnx(sentences(*[32] * 8), 384)


# ------------------------------------------------------------------------------------------------- in Python


def test_each_batch_goes_to_the_faster_engine(made: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = made()
    measured(monkeypatch, SLOW, {SHORT: 0.001, LONGER: 0.030, BATCH: 0.050, LONG: 0.2})
    model = library.load(folder, engine="auto")
    assert model.engine.name == "auto"
    runs: list[int] = []
    run = model.session.__class__.__call__

    def counted(session: Any, inputs: Any) -> Any:
        runs.append(inputs["input_ids"].size)
        return run(session, inputs)

    monkeypatch.setattr(model.session.__class__, "__call__", counted)
    expected = library.load(folder).encode(TEXTS)
    np.testing.assert_allclose(model.encode(TEXTS[:1]), expected[:1], atol=1e-5)
    assert runs, "a short text is ONNX Runtime's"
    runs.clear()
    many = [f"{'a ' * i}she went to the sea and came back and went again to the small sea" for i in range(8)]
    np.testing.assert_allclose(model.encode(many), library.load(folder).encode(many), atol=1e-5)
    assert not runs, "a batch is NumPy's"
    assert model.with_one_engine().engine.name == "numpy"
    assert model.with_one_engine("onnx").session is model.session


@pytest.mark.parametrize(("numpy", "onnx", "chosen"), [(SLOW, FAST, "onnx"), (FAST, SLOW, "numpy")])
def test_one_engine_that_is_always_faster_is_chosen_and_said(
    made: Made, monkeypatch: pytest.MonkeyPatch, numpy: Any, onnx: Any, chosen: str
) -> None:
    measured(monkeypatch, numpy, onnx)
    model = library.load(made(), engine="auto")
    assert model.engine.name == chosen
    assert (model.session is None) == (chosen == "numpy")
    (note,) = [note for note in model.notes if note.startswith("engine auto:")]
    who = {"onnx": "ONNX Runtime", "numpy": "NumPy"}[chosen]
    assert note.startswith(f"engine auto: {who} computes (1 × 16 tokens: ONNX Runtime ")
    assert f"{1000 * onnx[SHORT]:.1f} ms, NumPy {1000 * numpy[SHORT]:.1f}" in note


def test_a_model_is_measured_once(made: Made, monkeypatch: pytest.MonkeyPatch, cache: Path) -> None:
    calls = measured(monkeypatch, SLOW, FAST)
    folder = made()
    for _ in range(2):
        library.load(folder, engine="auto")
    assert len(calls) == 1
    (file,) = cache.rglob("speeds-*.json")
    for damaged in ("", "{}", '{"numpy": 3, "onnx": {}}', '{"numpy": {"1x16": -1}, "onnx": {}}'):
        file.write_text(damaged)
        assert library.load(folder, engine="auto").engine.name == "onnx"
        assert json.loads(file.read_text())["onnx"]["1x16"] == FAST[SHORT]
    assert len(calls) == 5
    monkeypatch.setattr(speeds, "thread_count", lambda: 77)
    library.load(folder, engine="auto")
    assert len(calls) == 6, "other threads are measured by themselves"


def test_a_real_measurement_has_the_shapes_and_ends_in_time(made: Made) -> None:
    model = library.load(made(), engine="auto")
    assert model.engine.speeds is not None
    assert {SHORT, LONGER} <= model.engine.speeds.numpy.keys() == model.engine.speeds.onnx.keys()
    assert all(
        0 < time < 2 for times in (model.engine.speeds.numpy, model.engine.speeds.onnx) for time in times.values()
    )


@pytest.mark.parametrize(
    ("tick", "shapes"),
    [(1e-5, [SHORT, LONGER, BATCH, LONG]), (0.05, [SHORT, LONGER, BATCH]), (0.5, [SHORT, LONGER])],
)
def test_longer_shapes_are_measured_while_there_is_time(
    made: Made, monkeypatch: pytest.MonkeyPatch, tick: float, shapes: list[tuple[int, int]]
) -> None:
    """By a clock that goes on by a tick whenever it is read."""
    clock = count()
    monkeypatch.setattr(speeds, "perf_counter", lambda: tick * next(clock))
    model = library.load(made(), engine="auto")
    assert model.engine.speeds is not None
    assert [*model.engine.speeds.numpy] == [*model.engine.speeds.onnx] == shapes


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
    monkeypatch.setattr(speeds, "hidden_states", onnx)
    monkeypatch.setattr(Network, "forward", numpy)
    library.load(folder, engine="auto")
    turns = [len([*turn]) for _, turn in groupby(order)]
    assert {*order} == {"onnx", "numpy"}
    assert min(turns) >= 2


def test_without_onnx_runtime_numpy_computes_and_the_reason_is_said(
    made: Made, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bertcli.wings.onnx.session.installed", lambda package: False)
    model = library.load(made(), engine="auto")
    assert (model.engine.name, model.session) == ("numpy", None)
    assert any("NumPy computes" in note and "pip install 'bertcli[onnx]'" in note for note in model.notes)


def test_a_cache_that_cannot_be_written_leaves_numpy(made: Made, monkeypatch: pytest.MonkeyPatch, cache: Path) -> None:
    cache.write_text("a file")
    model = library.load(made(), engine="auto")
    assert model.engine.name == "numpy"
    assert any("cannot be written" in note for note in model.notes)


def test_auto_is_float32_on_the_processor(made: Made) -> None:
    with pytest.raises(BertcliError, match="for others use ONNX Runtime"):
        library.load(made(), engine="auto", precision="int8")


# ------------------------------------------------------------------------------------------------- the command


def test_a_run_that_is_resumed_keeps_its_engine(made: Made, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Though by now the other one would be chosen."""
    from bertcli.files.write import resumable_output

    kept: list[Any] = []
    begin = resumable_output.ResumableOutput.__init__

    def noted(self: Any, file: str, fingerprint: Any = None, resume: bool = False) -> None:
        kept.append(fingerprint)
        begin(self, file, fingerprint, resume)

    monkeypatch.setattr(resumable_output.ResumableOutput, "__init__", noted)
    folder, texts, file = made(), tmp_path / "texts.txt", tmp_path / "out.jsonl"
    texts.write_text("\n".join(TEXTS))
    run = ("encode", "-m", folder, "-i", texts, "-o", file, "--engine")
    assert bertcli(*run, "numpy").status == 0
    first, fingerprint = file.read_bytes(), json.loads(json.dumps(kept[0]()))
    file.unlink()
    parts = tmp_path / ".out.jsonl.parts"
    parts.mkdir()
    (parts / "fingerprint.json").write_text(json.dumps(fingerprint))
    mixed = {SHORT: 0.001, LONGER: 0.010, BATCH: 0.010, LONG: 0.2}
    measured(monkeypatch, SLOW, mixed)
    left = bertcli(*run, "auto", "--resume")
    assert left.status == 0, left.err
    assert file.read_bytes() == first
    assert kept[-1]()["--engine"] == "numpy"


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
    options = ("encode", "-m", folder, "a mat", "--engine", "onnx", "--precision", "int8", "--format", "jsonl")
    said = " ".join(bertcli(*options).err.split())
    model = library.load(folder, engine="onnx", precision="int8")
    exact = library.load(folder)
    texts = list(exactness.SENTENCES)
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
    model = library.load(folder, engine="onnx", precision="int8", force=True)
    exact = library.load(folder)
    (file,) = cache.rglob("exactness-*.json")
    mean, least = json.loads(file.read_bytes())
    cosines: list[float] = []
    for first in range(0, len(exactness.SENTENCES), exactness.TOGETHER):  # int8 has one scale for a batch
        texts = exactness.SENTENCES[first : first + exactness.TOGETHER]
        pairs = [one.encode(texts, normalize=True) for one in (model, exact)]
        cosines += (pairs[0] * pairs[1]).sum(axis=1).tolist()
    assert mean == pytest.approx(float(np.mean(cosines)), abs=1e-5)
    assert least == pytest.approx(min(cosines), abs=1e-5)


def test_int8_that_is_far_off_is_warned_of_or_refused(made: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = made(tokenizer="both")
    options = ("encode", "-m", folder, "a mat", "--engine", "onnx", "--precision", "int8", "--format", "jsonl")
    monkeypatch.setattr(exactness, "WARNED", 1.1)
    warned = bertcli(*options)
    assert warned.status == 0
    assert "compare results on your own data" in " ".join(warned.err.split())
    monkeypatch.setattr(exactness, "REFUSED", 1.05)
    assert "too far from it: leave out int8, or take it as it is (--force)" in bertcli(*options).error
    assert bertcli(*options, "--force").status == 0
    with pytest.raises(BertcliError, match="too far"):
        library.load(folder, engine="onnx", precision="int8")
    assert library.load(folder, engine="onnx", precision="int8", force=True).session is not None
