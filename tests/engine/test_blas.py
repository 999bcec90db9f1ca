"""The library behind NumPy's products: which kernel it uses, and with how many threads."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from helpers.deadlines import SECONDS
from helpers.near import assert_near

import bertcli
from bertcli.engine import blas
from bertcli.engine.threads import THREAD_VARIABLES, usable_cores

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
    assert_near(expected, model.forward(ids), 1e-6)


def test_blas_is_not_loaded_by_importing_bertcli() -> None:
    program = "import sys, bertcli; sys.exit('numpy' in sys.modules)"
    subprocess.run([sys.executable, "-c", program], check=True, timeout=SECONDS)


WAITS = """
import os, sys
{first}
from bertcli.engine import blas
names = (blas.WAIT_VARIABLE, "OPENBLAS_NUM_THREADS")
import numpy
said = {{name: os.environ.get(name) for name in names}}
import bertcli.engine.kernels
print(said[blas.WAIT_VARIABLE], *(os.environ.get(name) for name in names), blas.threads() == {cores} or blas.threads())
"""
COMMAND = """
from bertcli.cli import main
sys.argv = ["bertcli", "--version"]
try:
    main()
except SystemExit:
    pass
"""


@pytest.mark.parametrize(
    ("first", "said", "found"),
    [
        (COMMAND, {}, "20 None None True"),  # of all cores, which sleep soon; programs started from here are as ever
        (COMMAND, {blas.WAIT_VARIABLE: "9"}, "9 9 None True"),
        ("import bertcli", {}, "None None None True"),
        (f"import numpy{COMMAND}", {}, "None None None True"),
    ],
)
def test_blas_threads_sleep_soon_in_a_command_and_nowhere_else(first: str, said: dict[str, str], found: str) -> None:
    if blas.threads() is None:
        pytest.skip("this NumPy's library does not say how many threads it uses")
    environment = {name: value for name, value in os.environ.items() if name not in (*THREAD_VARIABLES, *said)} | said
    program = WAITS.format(first=first, cores=usable_cores())
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True, timeout=SECONDS
    )
    assert done.stdout.splitlines()[-1] == found
