"""The library behind NumPy's products: which kernel it uses, and with how many threads."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from helpers.deadlines import SECONDS

import bertcli
from bertcli.engine import blas

PROCESSOR = "vendor_id\t: AuthenticAMD\nflags\t\t: fpu avx2 avx512f avx512dq avx512cd avx512bw avx512vl\n\n"


def chosen(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, text: str, loaded: bool = False) -> str | None:
    file = tmp_path / "cpuinfo"
    file.write_text(text)
    monkeypatch.setattr(blas, "CPU_INFO", str(file))
    monkeypatch.setattr(sys, "modules", {"numpy": np} if loaded else {})
    monkeypatch.setattr(blas, "_chosen", {})
    assert blas.choose_kernel() == (os.environ.get(blas.KERNEL_VARIABLE) == blas.AVX512_KERNEL)
    return os.environ.get(blas.KERNEL_VARIABLE)


def test_blas_kernel_is_chosen_where_it_is_safe(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(blas.KERNEL_VARIABLE, "")
    monkeypatch.delenv(blas.KERNEL_VARIABLE)
    assert chosen(monkeypatch, tmp_path, PROCESSOR) == "SKYLAKEX"
    blas.forget_choices()
    assert blas.KERNEL_VARIABLE not in os.environ  # programs started from here do not inherit it
    assert chosen(monkeypatch, tmp_path, PROCESSOR.replace("avx512dq ", "")) is None
    assert chosen(monkeypatch, tmp_path, PROCESSOR.replace("AuthenticAMD", "GenuineIntel")) is None
    assert chosen(monkeypatch, tmp_path, "") is None
    assert chosen(monkeypatch, tmp_path, PROCESSOR, loaded=True) is None


def test_blas_kernel_the_user_has_named_stays(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(blas.KERNEL_VARIABLE, "Haswell")
    file = tmp_path / "cpuinfo"
    file.write_text(PROCESSOR)
    monkeypatch.setattr(blas, "CPU_INFO", str(file))
    monkeypatch.setattr(sys, "modules", {})
    assert not blas.choose_kernel()
    blas.forget_choices()
    assert os.environ[blas.KERNEL_VARIABLE] == "Haswell"


def test_blas_without_a_processor_to_read_chooses_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(blas, "CPU_INFO", str(tmp_path / "none"))
    assert blas.processor() == ("", frozenset())


def test_blas_uses_one_thread_inside_and_as_many_as_before_after() -> None:
    before = blas.threads()
    with blas.single_threaded() as alone, blas.single_threaded():
        assert alone == (before is not None)
        assert blas.threads() in (None, 1)
    assert blas.threads() == before


def test_blas_that_cannot_be_told_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blas, "function", lambda name: None)
    with blas.single_threaded() as alone:
        assert not alone
    blas.set_threads(2)
    assert blas.threads() is None
    model = bertcli.variant("tiny", weights=0)
    ids = np.zeros((8, 128), dtype=int)
    expected = model.forward(ids)
    monkeypatch.undo()
    blas.kernel.cache_clear()
    np.testing.assert_allclose(expected, model.forward(ids), rtol=0, atol=1e-6)


def test_blas_is_not_loaded_by_importing_bertcli() -> None:
    program = "import sys, bertcli; sys.exit('numpy' in sys.modules)"
    subprocess.run([sys.executable, "-c", program], check=True, timeout=SECONDS)
