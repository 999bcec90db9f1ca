"""Threads that share work, memory used again, and the library behind NumPy's products."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from conftest import Made
from hypothesis import given
from hypothesis import strategies as st

import bertcli
from bertcli import blas, memory, team
from bertcli.parts import Array, watching

FORKED = """
import os, signal, sys, threading
from bertcli import blas, team
blas.set_threads(2)
team.set_thread_count(2)
team.share(lambda _: None, range(4))
before, inside = blas.threads(), threading.Event()

def stay() -> None:
    with blas.single_threaded(), team._making, blas._single:
        inside.set()
        threading.Event().wait()

threading.Thread(target=stay, daemon=True).start()
assert inside.wait(30)
child = os.fork()
if child:
    sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
signal.alarm(30)  # what hangs ends
both, names = threading.Barrier(2, timeout=10), []

def work(_: int) -> None:
    both.wait()  # breaks unless another thread is here as well
    names.append(threading.current_thread().name)

team.share(work, range(2))
assert sorted(names) == ["MainThread", "bertcli"], names
assert blas.threads() == before
with blas.single_threaded():
    assert blas.threads() in (None, 1)
assert blas.threads() == before
"""
PROCESSOR = "vendor_id\t: AuthenticAMD\nflags\t\t: fpu avx2 avx512f avx512dq avx512cd avx512bw avx512vl\n\n"


@pytest.fixture
def two_threads() -> Iterator[None]:
    team.set_thread_count(2)
    yield
    team.set_thread_count(None)


# ------------------------------------------------------------------------------------------------------------ threads


@pytest.mark.usefixtures("two_threads")
def test_every_piece_is_done_once() -> None:
    for count in (0, 1, 2, 3, 100):
        done: list[int] = []
        team.share(done.append, range(count))
        assert sorted(done) == list(range(count))


@pytest.mark.usefixtures("two_threads")
def test_two_threads_work_at_the_same_time_and_know_it() -> None:
    both = threading.Barrier(2, timeout=30)

    def work(_: int) -> None:
        both.wait()  # breaks unless another thread is here as well
        assert team.sharing()

    team.share(work, range(2))
    assert not team.sharing()


@pytest.mark.usefixtures("two_threads")
def test_work_within_work_is_done_in_place() -> None:
    names: list[bool] = []

    def work(_: int) -> None:
        here = threading.current_thread()
        team.share(lambda _: names.append(threading.current_thread() is here), range(5))

    team.share(work, range(4))
    assert names == [True] * 20


@pytest.mark.usefixtures("two_threads")
@pytest.mark.parametrize("failing", [0, 7])
def test_an_error_is_raised_and_ends_the_work(failing: int) -> None:
    begun: list[int] = []

    def work(piece: int) -> None:
        begun.append(piece)
        if piece == failing:
            raise ValueError(f"piece {piece}")

    with pytest.raises(ValueError, match=f"piece {failing}"):
        team.share(work, range(1000))
    assert len(begun) < 1000
    team.share(begun.append, range(3))  # and the team goes on


@pytest.mark.usefixtures("two_threads")
def test_what_numpy_is_told_to_ignore_holds_in_every_thread() -> None:
    def work(_: int) -> None:
        assert np.geterr()["over"] == "raise"

    with np.errstate(over="raise"):
        team.share(work, range(20))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_a_forked_child_makes_threads_of_its_own() -> None:
    """And finds no lock taken: of threads that do not cross the fork, one is in the middle of everything."""
    subprocess.run([sys.executable, "-W", "ignore", "-c", FORKED], check=True, timeout=60)


# ---------------------------------------------------------------------------------------------------------- the model


@pytest.mark.parametrize("shape", [(8, 128), (3, 200), (1, 500), (9, 61)])
def test_parts_threads_and_watching_leave_a_batch_what_it_is(shape: tuple[int, int]) -> None:
    model = bertcli.variant("mini", weights=3)
    generator = np.random.default_rng(0)
    ids = generator.integers(0, model.config.vocab_size, shape)
    mask = np.arange(shape[1]) < generator.integers(shape[1] // 2, shape[1] + 1, (shape[0], 1))
    found = []
    for size in (1, 2, 3):
        team.set_thread_count(size)
        found.append(model.forward(ids, mask=mask))
        with bertcli.trace(model):
            assert np.array_equal(model.forward(ids, mask=mask), found[-1])
    team.set_thread_count(None)
    alone = [model.forward(one[None, :][:, seen])[0] for one, seen in zip(ids, mask, strict=True)]
    for batch in found:
        np.testing.assert_allclose(batch[mask], np.concatenate(alone), rtol=0, atol=1e-6)
        assert not batch[~mask].any()


def test_results_keep_their_numbers_when_the_model_runs_again(made: Made) -> None:
    model = bertcli.load(made())
    ids = np.random.default_rng(0).integers(0, model.config.vocab_size, (40, 48))
    first = [model.forward(ids), *(np.asarray(one) for one in model.outputs(ids) if one is not None)]
    before = [one.copy() for one in first]
    for _ in range(3):
        model.forward(ids[::-1])
        model.outputs(ids[::-1])
    assert all(np.array_equal(one, other) for one, other in zip(first, before, strict=True))


# ------------------------------------------------------------------------------------------------------------- memory


class _Watcher:
    def op(self, *_: object) -> None: ...

    def module(self, *_: object) -> None: ...


def test_memory_is_used_again_only_when_nobody_holds_it() -> None:
    memory._shelf.arrays.clear()
    one = memory.room(100_000)
    view = one[5:7]
    one[...] = 1
    del one
    other = memory.room(100_000)
    other[...] = 2
    assert (view == 1).all()
    assert not np.shares_memory(view, other)
    address = other.ctypes.data
    del other
    assert memory.room(90_000).ctypes.data == address  # the same, as it is free


def test_batches_of_changing_size_need_no_more_memory_than_the_largest() -> None:
    """Sizes as layers ask for them: six rows of hidden states at a time, then three with a row four times as long."""
    memory._shelf.arrays.clear()
    rows, fewest = 256, memory.SMALLEST
    for tokens in [456, 883, 887, 882, 913, 860, 931, 470, 640, 999] * 5:
        held = [memory.room(rows * tokens) for _ in range(6)]
        del held[3:]
        held.append(memory.room(4 * rows * tokens))
        del held
        assert len(memory._shelf.arrays) <= memory.SHELF
    most, longest = -(-rows * 1000 // fewest) * fewest, -(-4 * rows * 1000 // fewest) * fewest
    assert sum(array.size for array in memory._shelf.arrays) <= 2 * (6 * most + longest)
    memory._shelf.arrays.clear()


@given(st.lists(st.tuples(st.integers(1 << 15, 1 << 17), st.integers(0, 40)), max_size=60))
def test_the_shelf_is_bounded_and_lends_nothing_twice(requests: list[tuple[int, int]]) -> None:
    memory._shelf.arrays.clear()
    held: list[Array] = []
    for count, keep in requests:
        array = memory.room(count)
        array[:] = len(held)
        held = [*held, array][-keep or len(held) :]
        for number, other in enumerate(held):
            other[:] = number
        assert [int(other[0]) for other in held] == list(range(len(held)))
        assert len(memory._shelf.arrays) <= memory.SHELF
    memory._shelf.arrays.clear()


def test_no_memory_left_is_a_memory_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object, **__: object) -> None:
        raise OSError(12, "Cannot allocate memory")

    memory._shelf.arrays.clear()
    monkeypatch.setattr("mmap.mmap", refused)
    with pytest.raises(MemoryError):
        memory.room(100_000)


def test_much_memory_stands_on_a_cache_line() -> None:
    for count in (1, 1000, memory.SMALLEST, 50_000, memory.LARGEST + 1):
        assert memory.room(count).ctypes.data % 64 == 0 or count < memory.SMALLEST
        assert memory.room(count).size == count


def test_a_watched_pass_has_memory_of_its_own() -> None:
    memory._shelf.arrays.clear()
    address = memory.room(70_000).ctypes.data
    with watching(_Watcher()):  # type: ignore[arg-type]
        assert memory.room(70_000).ctypes.data != address
        assert len(memory._shelf.arrays) == 1
    assert memory.room(70_000).ctypes.data == address


def test_the_shelf_holds_a_bounded_number_of_arrays() -> None:
    held = [memory.room(40_000 + 40_000 * i) for i in range(30)]
    del held
    memory.room(memory.LARGEST)
    assert len(memory._shelf.arrays) <= memory.SHELF


# --------------------------------------------------------------------------------------------------------------- BLAS


def chosen(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, text: str, loaded: bool = False) -> str | None:
    file = tmp_path / "cpuinfo"
    file.write_text(text)
    monkeypatch.setattr(blas, "CPU_INFO", str(file))
    monkeypatch.setattr(sys, "modules", {"numpy": np} if loaded else {})
    monkeypatch.setattr(blas, "_chosen", {})
    assert blas.choose_kernel() == (os.environ.get(blas.KERNEL_VARIABLE) == blas.AVX512_KERNEL)
    return os.environ.get(blas.KERNEL_VARIABLE)


def test_the_kernel_is_chosen_where_it_is_safe(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(blas.KERNEL_VARIABLE, "")
    monkeypatch.delenv(blas.KERNEL_VARIABLE)
    assert chosen(monkeypatch, tmp_path, PROCESSOR) == "SKYLAKEX"
    blas.forget_choices()
    assert blas.KERNEL_VARIABLE not in os.environ  # programs started from here do not inherit it
    assert chosen(monkeypatch, tmp_path, PROCESSOR.replace("avx512dq ", "")) is None
    assert chosen(monkeypatch, tmp_path, PROCESSOR.replace("AuthenticAMD", "GenuineIntel")) is None
    assert chosen(monkeypatch, tmp_path, "") is None
    assert chosen(monkeypatch, tmp_path, PROCESSOR, loaded=True) is None


def test_what_the_user_has_said_stays(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(blas.KERNEL_VARIABLE, "Haswell")
    file = tmp_path / "cpuinfo"
    file.write_text(PROCESSOR)
    monkeypatch.setattr(blas, "CPU_INFO", str(file))
    monkeypatch.setattr(sys, "modules", {})
    assert not blas.choose_kernel()
    blas.forget_choices()
    assert os.environ[blas.KERNEL_VARIABLE] == "Haswell"


def test_without_a_processor_to_read_nothing_is_chosen(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(blas, "CPU_INFO", str(tmp_path / "none"))
    assert blas.processor() == ("", frozenset())


def test_products_use_one_thread_inside_and_as_many_as_before_after() -> None:
    before = blas.threads()
    with blas.single_threaded() as alone, blas.single_threaded():
        assert alone == (before is not None)
        assert blas.threads() in (None, 1)
    assert blas.threads() == before


def test_a_library_that_cannot_be_told_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blas, "function", lambda name: None)
    with blas.single_threaded() as alone:
        assert not alone
    assert blas.threads() is None
    assert not blas.set_threads(2)
    model = bertcli.variant("tiny", weights=0)
    ids = np.zeros((8, 128), dtype=int)
    expected = model.forward(ids)
    monkeypatch.undo()
    np.testing.assert_allclose(expected, model.forward(ids), rtol=0, atol=1e-6)


def test_importing_bertcli_imports_no_numpy() -> None:
    program = "import sys, bertcli; sys.exit('numpy' in sys.modules)"
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)
