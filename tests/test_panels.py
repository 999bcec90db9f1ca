"""Weights in panels give the very numbers they give without, with OpenBLAS's kernel for this processor.

With its AVX2 kernel, too, wherever that can be had.
"""

from __future__ import annotations

import gc
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryFile

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bertcli import blas, products, team
from bertcli.memory import give_back, is_mapped, pages
from bertcli.openblas import kept, layouts, routines
from bertcli.openblas.layouts import AVX2, AVX512, Layout, layout
from bertcli.openblas.panels import UNGUARDED, Panels
from bertcli.parts import Array

USABLE = kept.usable() is not None
SHAPES = ((96, 768), (768, 3072), (312, 320), (1024, 96), (260, 640), (800, 672))
usable = pytest.mark.skipif(not USABLE, reason="NumPy does not multiply with a kernel whose routines are known")
few = settings(max_examples=60, deadline=None)


def some(rows: int, columns: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).standard_normal((rows, columns), dtype=np.float32)


def mapped(values: Array) -> Array:
    """The same as a checkpoint's weights are: mapped from a file."""
    with TemporaryFile() as file:
        values.tofile(file)
        file.flush()
        return np.asarray(np.memmap(file, np.float32, "r", shape=values.shape))


def made(weight: Array) -> Panels | None:
    """The panels of a weight that is used often enough."""
    return [kept.panels(weight) for _ in range(kept.OFTEN)][-1]


@cache
def weight_and_panels(rows: int, columns: int) -> tuple[Array, Panels]:
    weight = mapped(some(rows, columns))
    panels = made(weight)
    assert panels is not None
    return weight, panels


def without(weight: Array, x: Array, bias: Array | None) -> Array:
    result = np.empty((len(weight), x.shape[1]), np.float32)
    with blas.single_threaded():
        kept.ordinary(weight, x, result)
    return result if bias is None else result + bias[:, None]


def by(panels: Panels, outputs: int, x: Array, bias: Array | None = None, first: int = 0) -> Array:
    result = np.full((outputs, x.shape[1]), np.nan, np.float32)
    panels.multiply(x, bias, result, first)
    return result


def same_bits(found: Array, expected: Array) -> bool:
    return np.array_equal(found.view(np.uint32), expected.view(np.uint32))


@pytest.fixture
def threads() -> Iterator[Callable[[int], object]]:
    """Sets how many threads OpenBLAS has, in one test."""
    before = blas.threads() or 1
    yield blas.set_threads
    blas.set_threads(before)


@pytest.mark.skipif(os.environ.get(blas.KERNEL_VARIABLE) == AVX2.kernel, reason="the tests are below")
@pytest.mark.skipif((blas.kernel() or "").upper() == AVX2.kernel, reason="the tests are below")
@pytest.mark.skipif("avx2" not in blas.processor()[1], reason="this processor has no AVX2")
def test_all_of_these_with_the_avx2_kernel() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", __file__],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
        cwd=Path(__file__).parent.parent,
        env={**os.environ, blas.KERNEL_VARIABLE: AVX2.kernel},
    )
    assert done.returncode == 0, done.stdout[-3000:]
    passed = re.search(r"(\d+) passed", done.stdout)
    if passed is None or int(passed[1]) < 12:
        pytest.skip("the routines of this NumPy's library are not known")


@pytest.mark.parametrize(
    ("layout", "inputs", "portions"),
    [
        (AVX2, 320, [320]),
        (AVX2, 768, [320, 224, 224]),
        (AVX2, 3072, [320] * 8 + [256, 256]),
        (AVX512, 64, [64]),
        (AVX512, 768, [384, 384]),
        (AVX512, 3072, [448] * 5 + [416, 416]),
        (AVX512, 458, [240, 218]),
    ],
    ids=str,
)
def test_inputs_are_added_up_in_openblas_portions(layout: Layout, inputs: int, portions: list[int]) -> None:
    assert [size for _, size in layout.portions(inputs)] == portions


@given(st.sampled_from([AVX2, AVX512]), st.integers(1, 5000))
def test_portions_are_all_inputs_in_order_and_a_rest_is_halved(layout: Layout, inputs: int) -> None:
    portions = list(layout.portions(inputs))
    sizes = [size for _, size in portions]
    assert [start for start, _ in portions] == [sum(sizes[:i]) for i in range(len(sizes))]
    assert sum(sizes) == inputs
    assert max(sizes) <= layout.portion
    assert all(0 <= before - size < 2 * layout.tile for before, size in pairwise(sizes) if before < layout.portion)
    assert min(sizes[:-1], default=layout.portion) > layout.portion // 2


def test_what_our_threads_share_out_are_whole_panels() -> None:
    assert all(products.TILE % layout.panel == 0 for layout in layouts.KNOWN.values())


@given(st.sampled_from([AVX2, AVX512]), st.integers(1, 4000), st.integers(1, 64))
def test_threads_have_whole_panels_and_all_outputs(layout: Layout, outputs: int, threads: int) -> None:
    shares = layout.shares(outputs, threads)
    assert len(shares) <= threads
    assert [first for first, _ in shares] == [sum(count for _, count in shares[:i]) for i in range(len(shares))]
    assert sum(count for _, count in shares) == outputs
    assert all(count % layout.panel == 0 for _, count in shares[:-1])


@usable
@few
@given(
    st.sampled_from(SHAPES),
    st.integers(1, 2 * UNGUARDED) | st.integers(1, 2 * AVX2.most),
    st.integers(1, 5),
    st.booleans(),
)
def test_a_product_is_the_same_to_the_last_bit(
    shape: tuple[int, int], columns: int, used_threads: int, biased: bool
) -> None:
    weight, panels = weight_and_panels(*shape)
    x, bias = some(shape[1], columns, seed=1), some(1, shape[0], seed=2)[0] if biased else None
    x[::7] *= -0.0
    before = blas.threads() or 1
    blas.set_threads(used_threads)
    try:
        found = by(panels, len(weight), x, bias)
    finally:
        blas.set_threads(before)
    assert same_bits(found, without(weight, x, bias))


@usable
@pytest.mark.parametrize("columns", [1, 20, UNGUARDED, UNGUARDED + 1, 300])
def test_some_outputs_of_columns_among_others(columns: int) -> None:
    """As threads of ours share out the outputs of a part of a batch."""
    weight, panels = weight_and_panels(264, 320)
    x = some(320, 900, seed=1)[:, 7 : 7 + columns]
    whole = without(weight, x, None)
    assert same_bits(by(panels, 24, x, first=48), whole[48:72])
    assert same_bits(by(panels, 264 - 48, x, first=48), whole[48:])
    assert same_bits(by(panels, 264, np.asfortranarray(x)), whole)
    assert same_bits(by(panels, 264, x.astype(np.float64)), whole)


@usable
def test_nothing_to_compute() -> None:
    _, panels = weight_and_panels(264, 320)
    assert by(panels, 264, some(320, 0)).shape == (264, 0)
    assert by(panels, 0, some(320, 5)).shape == (0, 5)


@usable
@pytest.mark.parametrize(
    ("inputs", "outputs", "first"), [(319, 264, 0), (320, 276, 0), (320, 24, 252), (320, 24, 6)], ids=str
)
def test_what_does_not_fit_is_refused(inputs: int, outputs: int, first: int) -> None:
    _, panels = weight_and_panels(264, 320)
    with pytest.raises(ValueError, match="weight 264 × 320"):
        by(panels, outputs, some(inputs, 5), first=first)


@usable
def test_numbers_that_are_not_finite_stay_in_their_column() -> None:
    weight, panels = weight_and_panels(264, 320)
    x = some(320, 70, seed=1)
    x[5, 3], x[9, 69] = np.inf, np.nan
    found = by(panels, 264, x)
    assert np.array_equal(found, without(weight, x, None), equal_nan=True)
    assert np.isfinite(np.delete(found, [3, 69], axis=1)).all()


@usable
def test_what_is_used_seldom_is_not_kept_and_what_is_gone_is_forgotten() -> None:
    weight = mapped(some(264, 320))
    assert all(kept.panels(weight) is None for _ in range(kept.OFTEN - 1))
    assert kept.panels(weight) is kept.panels(weight) is not None
    key = id(weight)
    assert key in kept._weights
    del weight
    gc.collect()
    assert key not in kept._weights


@usable
@pytest.mark.parametrize(
    "weight",
    [mapped(some(8, 32_000)), mapped(some(96, 96)), mapped(some(300, 313)), mapped(some(320, 264)).T, some(264, 320)],
    ids=[
        "less than a panel",
        "small",
        "inputs that threads halve elsewhere",
        "the other way round",
        "can be written to",
    ],
)
def test_what_cannot_have_panels(weight: Array) -> None:
    assert made(weight) is None


@usable
def test_what_is_in_memory_twice_has_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """As weights that were widened from 16 bits; what is gone makes room."""
    gc.collect()
    monkeypatch.setattr(kept, "TWICE", 2 * some(264, 320).nbytes)
    weights = [some(264, 320, seed) for seed in range(3)]
    for weight in weights:
        weight.setflags(write=False)
    assert [made(weight) is not None for weight in weights] == [True, True, False]
    assert made(mapped(weights[2])) is not None
    del weights[0]
    gc.collect()
    del weight
    third = weights[1].copy()
    third.setflags(write=False)
    assert made(third) is not None


@usable
def test_another_order_of_adding_up_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """As of a release of OpenBLAS that takes other portions."""
    known = layout(blas.kernel())
    assert known is not None
    monkeypatch.setattr(kept, "layout", lambda _: known._replace(portion=256))
    assert made(mapped(some(264, 768))) is None


@usable
@pytest.mark.parametrize("taking", ["pages", "room"])
def test_without_room_for_panels_it_goes_on(taking: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(count: int) -> Array:
        raise MemoryError

    monkeypatch.setattr(f"bertcli.openblas.panels.{taking}", full)
    assert made(mapped(some(260, 320))) is None  # a result with a panel that is not full needs room of its own


@usable
def test_worker_processes_keep_nothing() -> None:
    team.set_thread_count(1, 2)
    try:
        assert made(mapped(some(264, 320))) is None
    finally:
        team.set_thread_count(None)


@usable
def test_several_threads_at_once() -> None:
    """One of them making the panels, others setting how many threads there are."""
    weight, columns = mapped(some(768, 768)), [1, 9, 16, 30, 64, 100] * 8

    def product(count: int) -> bool:
        panels, x = kept.panels(weight), some(768, count, seed=count)
        expected = without(weight, x, None)
        return panels is None or same_bits(by(panels, 768, x), expected)

    with ThreadPoolExecutor(6) as pool:
        assert all(pool.map(product, columns))
    assert kept.panels(weight) is not None


@usable
@pytest.mark.parametrize("when", [1, 2, 3])
def test_a_product_within_a_product(when: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """As of a signal handler, that comes between two calls of OpenBLAS's routines."""
    weight, panels = weight_and_panels(264, 640)
    x, y = some(640, 20, seed=1), some(640, 20, seed=2)
    execute, done = routines._execute(), 0
    inner: list[Array] = []
    assert execute is not None

    def interrupted(calls: int, entry: int) -> None:
        nonlocal done
        execute(calls, entry)
        done += 1
        if done == when:
            inner.append(by(panels, 264, y))

    monkeypatch.setattr(routines, "_execute", lambda: interrupted)
    outer = by(panels, 264, x)
    assert same_bits(outer, without(weight, x, None))
    assert same_bits(inner[0], without(weight, y, None))


@usable
@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_forked_child_goes_on(threads: Callable[[int], object]) -> None:
    weight, panels = weight_and_panels(768, 768)
    threads(2)
    x = some(768, 16, seed=1)
    expected = by(panels, 768, x)
    child = os.fork()
    if child == 0:
        code = 1
        try:
            code = 0 if same_bits(by(panels, 768, x), expected) else 2
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert same_bits(by(panels, 768, x), without(weight, x, None))


def resident(file: Path) -> int:
    """Bytes of a mapped file that are in this process's memory."""
    maps = Path("/proc/self/smaps").read_text()
    found = re.search(rf"{re.escape(str(file))}\n(?:.*\n)*?Rss: +(\d+) kB", maps)
    assert found is not None
    return int(found[1]) * 1024


@pytest.mark.skipif(not Path("/proc/self/smaps").exists(), reason="only Linux says what is resident")
def test_memory_given_back_is_read_again_from_the_file(tmp_path: Path) -> None:
    values, file = some(300, 4000), tmp_path / "numbers"
    values.tofile(file)
    numbers = np.asarray(np.memmap(file, np.float32, "r", shape=values.shape))
    assert is_mapped(numbers)
    assert np.array_equal(numbers, values)
    before = resident(file)
    give_back(numbers[100:200])
    assert before - resident(file) > numbers[100:200].nbytes - 10_000
    assert np.array_equal(numbers, values)
    assert resident(file) == before


def test_memory_of_no_file_is_not_given_back(tmp_path: Path) -> None:
    own = pages(100_000)
    own[:] = 3
    own.tofile(tmp_path / "numbers")
    private = np.memmap(tmp_path / "numbers", np.float32, "c")
    private[:] = 4
    for numbers, value in ((own, 3), (private, 4)):
        assert not is_mapped(numbers)
        give_back(numbers)
        assert (numbers == value).all()
