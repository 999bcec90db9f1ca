"""How many threads there are, and how they share the pieces of one step."""

import json
import math
import os
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from helpers.deadlines import SECONDS

from bertcli.engine import blas, threads

HERE = threads.cores()
FORKED = """
import os, signal, sys, threading
from bertcli.engine import blas, threads
blas.set_threads(2)
threads.set_thread_count(2)
threads.run_pieces(lambda _: None, range(4))
before, inside = blas.threads(), threading.Event()

def stay() -> None:
    with blas.single_threaded():
        inside.set()
        threading.Event().wait()

threading.Thread(target=stay, daemon=True).start()
assert inside.wait(60)
child = os.fork()
if child:
    sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
signal.alarm(90)  # what hangs ends
both, names = threading.Barrier(2, timeout=60), []

def work(_: int) -> None:
    both.wait()  # breaks unless another thread is here as well
    names.append(threading.current_thread().name)

threads.run_pieces(work, range(2))
assert sorted(names) == ["MainThread", "bertcli_0"], names
assert blas.threads() == before
with blas.single_threaded():
    assert blas.threads() in (None, 1)
assert blas.threads() == before
"""


@pytest.fixture
def two_threads() -> Iterator[None]:
    threads.set_thread_count(2)
    yield
    threads.set_thread_count(None)


# --------------------------------------------------------------------------------------------------------- how many


def limited(monkeypatch: pytest.MonkeyPatch, folder: Path, groups: str, files: dict[str, str]) -> float:
    """The limit of a process in these control groups, with these files."""
    (folder / "groups").write_text(groups)
    for name, text in files.items():
        file = folder / "mount" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    monkeypatch.setattr(threads, "GROUPS", str(folder / "groups"))
    monkeypatch.setattr(threads, "MOUNT", str(folder / "mount"))
    return threads.cpu_quota()


@pytest.mark.parametrize(
    ("groups", "files", "limit"),
    [
        ("0::/\n", {"cpu.max": "150000 100000\n"}, 1.5),
        ("0::/\n", {"cpu.max": "max 100000\n"}, math.inf),
        ("0::/\n", {}, math.inf),
        ("0::/a/b\n", {"a/b/cpu.max": "max 100000\n", "a/cpu.max": "50000 100000\n"}, 0.5),
        ("0::/a/b\n", {"a/b/cpu.max": "300000 100000\n", "a/cpu.max": "400000 100000\n"}, 3.0),
        ("0::/../b\n", {"cpu.max": "200000 100000\n"}, 2.0),
        ("4:cpu,cpuacct:/d\n0::/e\n", {"e/cpu.max": "50000 100000\n"}, 0.5),
        ("0::/\n", {"cpu.max": "100000 0\n"}, math.inf),
        ("0::/\n", {"cpu.max": ""}, math.inf),
        ("nonsense\n", {"cpu.max": "100000 100000\n"}, math.inf),
    ],
)  # fmt: skip
def test_threads_limit_of_a_container(
    groups: str, files: dict[str, str], limit: float, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert limited(monkeypatch, tmp_path, groups, files) == limit


@pytest.mark.parametrize(
    ("time", "usable"), [("10000", 1), ("100000", 1), ("110000", min(2, HERE)), ("99900000", HERE)]
)
def test_threads_a_part_of_a_core_is_one_more(
    time: str, usable: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    limited(monkeypatch, tmp_path, "0::/\n", {"cpu.max": f"{time} 100000\n"})
    assert threads.usable_cores() == usable


def test_threads_without_control_groups_all_cores_are_usable(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(threads, "GROUPS", str(tmp_path / "none"))
    assert threads.cpu_quota() == math.inf
    assert threads.usable_cores() == HERE


PROGRAM = """
import json, os, sys
from bertcli.engine import blas, threads
threads.GROUPS, threads.MOUNT = sys.argv[1:]
chosen = threads.choose_threads()
import bertcli.engine.kernels
names = [name for name in threads.THREAD_VARIABLES if name in os.environ]
json.dump([chosen, blas.threads(), threads.core_count(), names], sys.stdout)
"""


@pytest.mark.skipif(HERE < 2, reason="this machine has one core")
@pytest.mark.parametrize(
    ("said", "found"),
    [({}, [True, 1, 1, []]), ({"OMP_NUM_THREADS": "2"}, [False, 2, 1, ["OMP_NUM_THREADS"]])],
)
def test_threads_limit_is_kept_from_the_first_product(
    said: dict[str, str], found: list[object], tmp_path: Path
) -> None:
    (tmp_path / "groups").write_text("0::/\n")
    (tmp_path / "cpu.max").write_text("100000 100000\n")
    environment = {name: value for name, value in os.environ.items() if name not in threads.THREAD_VARIABLES}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(tmp_path / "groups"), str(tmp_path)],
        capture_output=True, text=True, check=True, timeout=SECONDS, env=environment | said,
    )  # fmt: skip
    reported = json.loads(done.stdout)
    if reported[1] is None:
        pytest.skip("this NumPy's library does not say how many threads it uses")
    assert reported == found


def test_threads_cannot_be_chosen_once_numpy_is_loaded() -> None:
    assert "numpy" in sys.modules
    assert not threads.choose_threads()


# ---------------------------------------------------------------------------------------------------------- sharing


@pytest.mark.usefixtures("two_threads")
def test_threads_do_every_piece_once() -> None:
    for count in (0, 1, 2, 3, 100):
        done: list[int] = []
        threads.run_pieces(done.append, range(count))
        assert sorted(done) == list(range(count))


@pytest.mark.usefixtures("two_threads")
def test_threads_work_at_the_same_time_and_know_it() -> None:
    both = threading.Barrier(2, timeout=SECONDS)

    def work(_: int) -> None:
        both.wait()  # breaks unless another thread is here as well
        assert threads.sharing()

    threads.run_pieces(work, range(2))
    assert not threads.sharing()


@pytest.mark.usefixtures("two_threads")
def test_threads_do_work_within_work_in_place() -> None:
    names: list[bool] = []

    def work(_: int) -> None:
        here = threading.current_thread()
        threads.run_pieces(lambda _: names.append(threading.current_thread() is here), range(5))

    threads.run_pieces(work, range(4))
    assert names == [True] * 20


@pytest.mark.usefixtures("two_threads")
@pytest.mark.parametrize("failing", [0, 7])
def test_threads_raise_an_error_and_end_the_work(failing: int) -> None:
    begun: list[int] = []

    def work(piece: int) -> None:
        begun.append(piece)
        if piece == failing:
            raise ValueError(f"piece {piece}")

    with pytest.raises(ValueError, match=f"piece {failing}"):
        threads.run_pieces(work, range(1000))
    assert len(begun) < 1000
    threads.run_pieces(begun.append, range(3))  # and the team goes on


@pytest.mark.usefixtures("two_threads")
def test_threads_raise_an_error_of_a_helper() -> None:
    both = threading.Barrier(2, timeout=SECONDS)

    def work(_: int) -> None:
        both.wait()  # so that each of two threads has one piece
        if threading.current_thread() is not threading.main_thread():
            raise ValueError("of a helper")

    with pytest.raises(ValueError, match="of a helper"):
        threads.run_pieces(work, range(2))


@pytest.mark.usefixtures("two_threads")
def test_threads_wait_for_no_helper_that_has_not_begun() -> None:
    """Two callers share one helper: while it works for one, the other does all of its own work, and ends."""
    helping, released, done = threading.Event(), threading.Event(), list[int]()

    def keep(_: int) -> None:
        if threading.current_thread().name.startswith("bertcli"):
            helping.set()
        assert helping.wait(SECONDS)
        assert released.wait(SECONDS)

    with ThreadPoolExecutor() as pool:
        keeping = pool.submit(threads.run_pieces, keep, range(2))
        assert helping.wait(SECONDS)
        threads.run_pieces(done.append, range(100))
        assert done == [*range(100)]
        released.set()
        keeping.result(SECONDS)


@pytest.mark.usefixtures("two_threads")
def test_threads_go_on_after_an_interrupt_of_the_caller() -> None:
    """The helper ends its piece, and begins no other."""
    both, begun = threading.Barrier(2, timeout=SECONDS), list[int]()

    def work(piece: int) -> None:
        begun.append(piece)
        if piece < 2:
            both.wait()
            if threading.current_thread() is threading.main_thread():
                raise KeyboardInterrupt
        time.sleep(0.001)

    with pytest.raises(KeyboardInterrupt):
        threads.run_pieces(work, range(1000))
    assert len(begun) < 1000
    done: list[int] = []
    threads.run_pieces(done.append, range(100))
    assert sorted(done) == [*range(100)]


@pytest.mark.usefixtures("two_threads")
def test_threads_have_numpys_error_settings() -> None:
    def work(_: int) -> None:
        assert np.geterr()["over"] == "raise"

    with np.errstate(over="raise"):
        threads.run_pieces(work, range(20))


def test_threads_of_a_forked_child_are_its_own() -> None:
    """And finds no lock taken: of threads that do not cross the fork, one is in the middle of everything."""
    subprocess.run([sys.executable, "-W", "ignore", "-c", FORKED], check=True, timeout=SECONDS)


def test_threads_that_set_the_librarys_number_are_waited_for_by_a_fork() -> None:
    inside, released = threading.Event(), threading.Event()

    def hold() -> None:
        with blas._lock:
            inside.set()
            released.wait(0.2)
            released.set()

    with ThreadPoolExecutor() as pool, warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of Python 3.12: there are several threads
        pool.submit(hold)
        assert inside.wait(SECONDS)
        child = os.fork()
        if not child:
            os._exit(not released.is_set())
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


# ---------------------------------------------------------------------------------------------------------- the model
