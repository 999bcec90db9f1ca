"""What speed depends on: the command that shows it."""

import json
import os
import subprocess
import sys

import pytest
from helpers.little_doctor import MEASURE_LITTLE
from helpers.terminal import bertcli

from bertcli import doctor
from bertcli.engine import blas

AVX2 = {"OPENBLAS_CORETYPE": "Haswell"}


def run(*arguments: str, **variables: str) -> str:
    program = f"import sys; from bertcli.cli import main\n{MEASURE_LITTLE}\nsys.exit(main())"
    found = subprocess.run(
        [sys.executable, "-c", program, *arguments],
        check=True, capture_output=True, text=True, timeout=120, env={**os.environ, **variables},
    )  # fmt: skip
    return found.stdout


def test_doctor_table_and_the_record_say_the_same() -> None:
    record = json.loads(run("doctor", "--format", "json"))
    table = run("doctor")
    for name in ("numpy", "blas", "kernel", "threads", "processor"):
        assert str(record[name]) in table
    assert (record["matrix_gflops"], record["memory_gb_per_second"]) == (1.0, 1.0)
    assert "onnx_matrix_gflops" not in record
    assert record["threads"] <= (os.cpu_count() or 1)


def test_doctor_says_only_what_it_measures_here() -> None:
    record = doctor.examine()
    assert record["matrix_gflops"] > 0
    assert record["memory_gb_per_second"] > 0
    assert not {"onnx_slower_than_numpy", "onnx_int8"} & record.keys()
    assert "takes 0.5 s longer to start and is faster on many texts" in " ".join(
        run("encode", "--help", COLUMNS="300").split()
    )


@pytest.mark.skipif(blas.kernel() is None or not blas.processor()[1], reason="no OpenBLAS on x86-64 Linux")
def test_doctor_slow_kernel_that_was_asked_for_stays_and_is_named() -> None:
    record = json.loads(run("doctor", "--format", "json", **AVX2))
    assert (record["kernel"], record["kernel_chosen_by"]) == ("Haswell", "the environment")
    assert (record["advice"] is not None) == (blas.processor()[1] >= blas.AVX512)


@pytest.mark.skipif(blas.kernel() is None or not blas.processor()[1], reason="no OpenBLAS on x86-64 Linux")
def test_doctor_kernel_the_library_does_not_know_was_not_chosen_by_the_environment() -> None:
    record = json.loads(run("doctor", "--format", "json", **{blas.KERNEL_VARIABLE: "bogus"}))
    assert record["kernel_chosen_by"] == "the library"


def test_doctor_advice_is_given_only_where_something_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(blas.KERNEL_VARIABLE, raising=False)
    for kernel, features, expected in (
        ("Haswell", blas.AVX512, "SKYLAKEX"),
        ("Haswell", frozenset(), None),
        ("SkylakeX", blas.AVX512, None),
        (None, blas.AVX512, None),
    ):
        monkeypatch.setattr(blas, "kernel", lambda kernel=kernel: kernel)
        found = doctor.advice(frozenset(features))
        assert found is None if expected is None else found and expected in found


@pytest.mark.parametrize(
    ("kernel", "version", "dangerous"),
    [
        ("Haswell", "0.3.34.1", True),
        ("Zen", "0.3.34", True),
        ("Haswell", "0.3.33", False),
        ("SkylakeX", "0.3.34", False),
    ],
)
def test_doctor_says_that_a_pinned_kernel_is_dangerous(
    kernel: str, version: str, dangerous: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(blas, "kernel", lambda: kernel)
    monkeypatch.setattr(blas, "processor", lambda: ("AuthenticAMD", blas.AVX512))
    monkeypatch.setattr(doctor, "blas_version", lambda: version)
    monkeypatch.setattr(doctor, "_best_of", lambda work, times: 1.0)
    found = bertcli("doctor", "--format", "json", environment={blas.KERNEL_VARIABLE: kernel.upper()})
    assert ("is dangerous with OpenBLAS 0.3.34" in (found.json["advice"] or "")) == dangerous
