"""Sessions: which sentences are padded together, and what is said of a device that is not there, or fails."""

from itertools import combinations
from typing import Any

import numpy as np
import onnxruntime
import pytest
from conftest import Made
from helpers.near import assert_near
from hypothesis import given
from hypothesis import strategies as st

import bertcli
from bertcli.errors import BertcliError
from bertcli.wings.onnx.session import ATTENTION, MOST_TOKENS, Session, available_devices, groups, provider_of

WIDTHS = st.lists(st.integers(1, 600), min_size=1, max_size=60)
HIDDEN = 384  # of MiniLM


def cost(widths: Any, made: list[Any], overhead: int) -> float:
    """Of runs without the tokens of their sentences, in tokens."""
    attention = [int(widths[group].max()) ** 2 * len(group) / (ATTENTION * HIDDEN) for group in made]
    return overhead * len(made) + sum(attention)


@given(WIDTHS, st.sampled_from([0, 1, 16, 128]))
def test_onnx_session_runs_each_sentence_once_and_not_too_many_at_a_time(lengths: list[int], overhead: int) -> None:
    widths = np.array(lengths)
    made = [*groups(widths, overhead, HIDDEN)]
    assert sorted(index for group in made for index in group.tolist()) == [*range(len(lengths))]
    assert all(len(group) == 1 or widths[group].max() * len(group) <= MOST_TOKENS for group in made)


@given(st.lists(st.integers(1, 300), min_size=1, max_size=6), st.sampled_from([0, 3, 16, 64]))
def test_onnx_session_groups_so_that_the_time_is_least(lengths: list[int], overhead: int) -> None:
    """No other way to cut the sentences, sorted by width, takes less."""
    widths = np.array(sorted(lengths, reverse=True))
    found = cost(widths, [*groups(widths, overhead, HIDDEN)], overhead)
    places = range(1, len(widths))
    others = [
        [np.array(part) for part in np.split(np.arange(len(widths)), list(cuts))]
        for count in range(len(widths))
        for cuts in combinations(places, count)
    ]
    assert found == pytest.approx(min(cost(widths, other, overhead) for other in others)) or overhead == 0


def test_onnx_session_threads_wait_in_a_loop_for_a_fifth_of_a_millisecond(
    made: Made, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Longer, they take the cores from the threads that they wait for, if other programs are busy."""
    opened = onnxruntime.InferenceSession
    limits = []

    def watched(file: Any, options: Any, **given: Any) -> Any:
        limits.append(options.get_session_config_entry("session.intra_op.spin_duration_us"))
        return opened(file, options, **given)

    monkeypatch.setattr(onnxruntime, "InferenceSession", watched)
    bertcli.load(made(), engine="onnx")
    assert limits
    assert {*limits} == {"200"}


def test_onnx_session_computes_no_padding(made: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    """Three short sentences are one run, whose products have the rows of their tokens alone."""
    model = bertcli.load(made(), engine="onnx")
    texts = ["the small cat", "a", "she went to the sea and came back"]
    runs: list[dict[str, tuple[int, ...]]] = []
    run = Session.__call__

    def noted(self: Session, inputs: Any) -> Any:
        runs.append({name: values.shape for name, values in inputs.items()})
        return run(self, inputs)

    monkeypatch.setattr(Session, "__call__", noted)
    vectors = model.encode(texts)
    lengths = [len(tokens.ids) for tokens in model.tokenizer.encode(texts)]
    (shapes,) = runs
    assert shapes["input_ids"] == (sum(lengths),)
    assert shapes["attention_mask"] == (3, max(lengths)), "attention alone is padded"
    assert_near(vectors, bertcli.load(made()).encode(texts), 1e-5)


def test_onnx_session_knows_the_devices_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "cpu" in available_devices()
    assert provider_of("cpu") == "CPUExecutionProvider"
    there = ["TensorrtExecutionProvider", "CUDAExecutionProvider", "CPUExecutionProvider"]
    monkeypatch.setattr(onnxruntime, "get_available_providers", lambda: there)
    assert available_devices() == ["tensorrt", "cuda", "cpu"]
    assert provider_of("CUDA") == "CUDAExecutionProvider"
    with pytest.raises(BertcliError, match=r"There is no device 'gpu' .* choose from tensorrt, cuda, cpu, or install"):
        provider_of("gpu")


def test_onnx_session_refuses_what_is_no_graph() -> None:
    with pytest.raises(BertcliError, match="ONNX Runtime cannot open a graph on cpu: "):
        Session(b"this is no graph")


class Failing:
    """In place of ONNX Runtime's session: it starts with other providers than asked for, and fails."""

    def __init__(self, *_: Any, providers: list[str]) -> None:
        self.providers = providers

    def get_providers(self) -> list[str]:
        return self.providers

    def get_inputs(self) -> list[Any]:
        return []

    get_outputs = get_inputs

    def run(self, *_: Any) -> None:
        raise RuntimeError("CUDA failure 700: an illegal memory access\nat line 5")


def test_onnx_session_says_that_a_device_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(onnxruntime, "InferenceSession", Failing)
    with pytest.raises(BertcliError) as failed:
        Session(b"")({})
    assert str(failed.value) == "ONNX Runtime failed on cpu: CUDA failure 700: an illegal memory access."


def test_onnx_session_says_that_a_device_did_not_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(onnxruntime, "get_available_providers", lambda: ["CUDAExecutionProvider"])
    monkeypatch.setattr(onnxruntime, "InferenceSession", Failing)
    monkeypatch.setattr(Failing, "get_providers", lambda self: ["CPUExecutionProvider"])
    with pytest.raises(BertcliError, match="could not start cuda on this machine"):
        Session(b"", "cuda")
