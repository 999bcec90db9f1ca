"""Sessions: which sentences are padded together, and what is said of a device that is not there, or fails."""

from typing import Any

import numpy as np
import onnxruntime
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bertcli.errors import BertcliError
from bertcli.onnx import session
from bertcli.onnx.session import MOST_PADDING, MOST_TOKENS, Session, alike, available_devices, provider_of

LENGTHS = st.lists(st.integers(1, 600), min_size=1, max_size=60)


@given(LENGTHS, st.integers(0, 3))
def test_onnx_session_pads_at_most_a_tenth(lengths: list[int], holes: int) -> None:
    widths = np.array(lengths) + holes
    groups = [*alike(widths, np.array(lengths))]
    assert sorted(index for group in groups for index in group.tolist()) == [*range(len(lengths))]
    for group in groups:
        padded = widths[group].max() * len(group)
        assert len(group) == 1 or np.array(lengths)[group].sum() >= (1 - MOST_PADDING) * padded
        assert len(group) == 1 or padded <= MOST_TOKENS


def test_onnx_session_keeps_equal_lengths_together() -> None:
    assert [group.tolist() for group in alike(np.full(5, 7), np.full(5, 7))] == [[0, 1, 2, 3, 4]]
    assert [group.tolist() for group in alike(np.array([2, 9, 2]), np.array([2, 9, 2]))] == [[1], [0, 2]]


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


def test_onnx_session_without_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "installed", lambda package: False)
    with pytest.raises(BertcliError, match=r"This needs onnxruntime: pip install 'bertcli\[onnx\]'"):
        Session(b"")
