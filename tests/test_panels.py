"""Weights in panels give the very numbers they give without: with OpenBLAS's AVX2 kernel, wherever that can be had."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bertcli import blas, team
from bertcli.memory import give_back
from bertcli.openblas import guarded, kept, plans
from bertcli.openblas.panels import FEW, MOST, Panels
from bertcli.openblas.routines import routines
from bertcli.parts import Array

USABLE = guarded.needed() and routines(blas.kernel() or "") is not None
SHAPES = ((96, 768), (768, 3072), (312, 320), (1024, 96), (260, 640), (800, 672))
avx2 = pytest.mark.skipif(not USABLE, reason="NumPy does not multiply with a kernel whose routines are known")
few = settings(max_examples=60, deadline=None)


@pytest.fixture
def threads() -> Iterator[None]:
    before = blas.threads() or 1
    yield
    blas.set_threads(before)


def some(rows: int, columns: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).standard_normal((rows, columns), dtype=np.float32)


def made(weight: Array) -> Panels | None:
    """The panels of a weight that is used often enough."""
    return [kept.panels(weight) for _ in range(kept.OFTEN)][-1]


def without(weight: Array, x: Array, bias: Array | None) -> Array:
    result = np.empty((len(weight), x.shape[1]), np.float32)
    with blas.single_threaded():
        guarded.multiply(weight, x, bias, result)
    return result


def by(panels: Panels, outputs: int, x: Array, bias: Array | None, first: int = 0) -> Array:
    result = np.full((outputs, x.shape[1]), np.nan, np.float32)
    panels.multiply(x, bias, result, first)
    return result


@pytest.mark.skipif(USABLE, reason="the tests below run in this process")
@pytest.mark.skipif("avx2" not in blas.processor()[1], reason="this processor has no AVX2")
def test_all_of_these_with_the_avx2_kernel() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", __file__],
        capture_output=True,
        text=True,
        check=False,
        cwd=Path(__file__).parent.parent,
        env={**os.environ, blas.KERNEL_VARIABLE: "Haswell"},
    )
    assert done.returncode == 0, done.stdout[-3000:]


@avx2
@few
@given(st.sampled_from(SHAPES), st.integers(1, 2 * FEW) | st.integers(1, 2 * MOST), st.integers(1, 3), st.booleans())
def test_a_product_is_the_same_to_the_last_bit(
    shape: tuple[int, int], columns: int, most_threads: int, biased: bool
) -> None:
    weight, x, bias = some(*shape), some(shape[1], columns, seed=1), some(1, shape[0], seed=2)[0] if biased else None
    panels = made(weight)
    assert panels is not None
    before = blas.threads() or 1
    blas.set_threads(min(before, most_threads))
    try:
        found = by(panels, len(weight), x, bias)
    finally:
        blas.set_threads(before)
    assert np.array_equal(found, without(weight, x, bias))


@avx2
@pytest.mark.parametrize("columns", [1, 20, FEW, FEW + 1, 300])
def test_some_outputs_of_columns_among_others(columns: int) -> None:
    """As threads of ours share out the outputs of a part of a batch."""
    weight, all_x = some(264, 320), some(320, 900, seed=1)
    panels, x = made(weight), all_x[:, 7 : 7 + columns]
    assert panels is not None
    whole = without(weight, x, None)
    assert np.array_equal(by(panels, 24, x, None, first=48), whole[48:72])
    assert np.array_equal(by(panels, 264 - 48, x, None, first=48), whole[48:])
    assert np.array_equal(by(panels, 264, np.asfortranarray(x), None), whole)


@avx2
def test_numbers_that_are_not_finite_stay_in_their_column() -> None:
    weight, x = some(264, 320), some(320, 70, seed=1)
    x[5, 3], x[9, 69] = np.inf, np.nan
    panels = made(weight)
    assert panels is not None
    found, expected = by(panels, 264, x, None), without(weight, x, None)
    assert np.array_equal(found, expected, equal_nan=True)
    assert np.isfinite(np.delete(found, [3, 69], axis=1)).all()


@avx2
def test_what_is_used_seldom_is_not_kept_and_what_is_gone_is_forgotten() -> None:
    weight = some(264, 320)
    assert all(kept.panels(weight) is None for _ in range(kept.OFTEN - 1))
    assert kept.panels(weight) is kept.panels(weight) is not None
    key = id(weight)
    assert key in kept._weights
    del weight
    gc.collect()
    assert key not in kept._weights


@avx2
@pytest.mark.parametrize(
    "weight",
    [some(8, 32_000), some(96, 96), some(300, 313), np.asfortranarray(some(264, 320))],
    ids=["fewer outputs than a panel", "small", "inputs that threads halve elsewhere", "stored the other way round"],
)
def test_what_cannot_have_panels(weight: Array) -> None:
    assert made(weight) is None


@avx2
def test_another_order_of_adding_up_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """As of a release of OpenBLAS that takes other portions."""
    monkeypatch.setattr(plans, "PORTION", 256)
    plans.plans.made.clear()
    try:
        assert made(some(264, 768)) is None
    finally:
        plans.plans.made.clear()


@avx2
def test_worker_processes_keep_nothing() -> None:
    team.set_size(1, 2)
    try:
        assert made(some(264, 320)) is None
    finally:
        team.set_size(None)


@avx2
def test_several_threads_at_once() -> None:
    weight, columns = some(768, 768), [1, 9, 16, 30, 64, 100] * 8
    panels = made(weight)
    assert panels is not None
    with ThreadPoolExecutor(6) as pool:
        found = list(pool.map(lambda count: by(panels, 768, some(768, count, seed=count), None), columns))
    for count, each in zip(columns, found, strict=True):
        assert np.array_equal(each, without(weight, some(768, count, seed=count), None))


@avx2
@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_forked_child_goes_on(threads: None) -> None:
    weight, x = some(768, 768), some(768, 16, seed=1)
    panels = made(weight)
    assert panels is not None
    expected = by(panels, 768, x, None)
    child = os.fork()
    if child == 0:
        os._exit(0 if np.array_equal(by(panels, 768, x, None), expected) else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert np.array_equal(by(panels, 768, x, None), expected)


def test_memory_given_back_is_read_again_from_the_file(tmp_path: Path) -> None:
    values = some(300, 400)
    values.tofile(tmp_path / "numbers")
    mapped = np.asarray(np.memmap(tmp_path / "numbers", np.float32, "r", shape=values.shape))
    give_back(mapped[10:200])
    assert np.array_equal(mapped, values)


def test_memory_of_no_file_is_not_given_back(tmp_path: Path) -> None:
    from bertcli.memory import pages

    values = pages(100_000)
    values[:] = 3
    give_back(values)
    assert (values == 3).all()
    values.tofile(tmp_path / "numbers")
    private = np.memmap(tmp_path / "numbers", np.float32, "c")
    private[:] = 4
    give_back(private)
    assert (private == 4).all()


@avx2
def test_without_room_for_panels_it_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(count: int) -> Array:
        raise MemoryError

    monkeypatch.setattr("bertcli.openblas.panels.pages", full)
    assert made(some(264, 320)) is None
