"""Worker processes and the window tokenized ahead: the same results in the same order, and nothing left behind."""

import json
import multiprocessing
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pytest
from conftest import Made
from helpers.batches import compute_together
from helpers.deadlines import SECONDS
from helpers.deadlines import started as in_time
from helpers.json_files import write_json_lines
from helpers.lines import write_lines
from helpers.reading import from_files
from helpers.terminal import bertcli as run
from helpers.terminal import continued

import bertcli
from bertcli.engine import blas, threads
from bertcli.errors import BertcliError
from bertcli.files.read.line_reader import LineFile
from bertcli.files.texts import Item, Text, from_values
from bertcli.model import Model
from bertcli.tasks.classify import ClassifyOptions
from bertcli.tasks.compute import classify, fill_mask, score
from bertcli.tasks.compute.encode import Block
from bertcli.tasks.fill_mask import FillMaskOptions
from bertcli.tasks.options import ReadOptions
from bertcli.tasks.running import run as running
from bertcli.tasks.running import workers
from bertcli.tasks.running.task import Group, Record, Records, RecordTask, TokenizedGroup
from bertcli.tasks.score import ScoreOptions

WORDS = ["the", "cat", "sat", "on", "a", "mat", "and", "drank", "hot", "tea", "with", "[MASK]", "while", "rain"]
choose = random.Random(0)
TEXTS = [" ".join(["[MASK]"] * (i % 9 > 0) + choose.choices(WORDS, k=choose.randint(0, 60))) for i in range(40)]
SMALL = {"batch_tokens": 60, "keep_going": True, "truncation": "silent"}  # seven windows; texts too long for the model
Doing = Callable[[Model, Any], Any]
DOINGS: dict[str, Doing] = {
    "encode": lambda model, more: list(model.encode_blocks(TEXTS, **more)),
    "encode, cls": lambda model, more: list(model.encode_blocks(TEXTS, pooling="cls", layer=-1, **more)),
    "encode, none": lambda model, more: list(model.encode_blocks(TEXTS, pooling="none", **more)),
    "classify": lambda model, more: done(classify.plan(model, ClassifyOptions(**more)), pair="tea"),
    "fill-mask": lambda model, more: done(fill_mask.plan(model, FillMaskOptions(top_k=2, **more))),
    "score": lambda model, more: done(score.plan(model, ScoreOptions(**{**more, "batch_tokens": 20})), TEXTS[:12]),
}


def done(task: RecordTask, texts: Sequence[str] = TEXTS, pair: str | None = None) -> list[Records]:
    """All that a task makes of texts."""
    return list(running.results(task, from_values(texts, pair)))


@pytest.fixture
def model(made: Made) -> Model:
    return bertcli.load(made(head="pretraining", seed=7))


@pytest.fixture(autouse=True)
def two_threads() -> Iterator[None]:
    threads.set_thread_count(2)
    yield
    threads.set_thread_count(None)


@pytest.fixture(autouse=True)
def started(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[BaseProcess]]:
    """The worker processes that were started; they are killed after a minute, so that nothing waits for ever."""
    found: list[BaseProcess] = []
    original = workers.worker_processes

    @contextmanager
    def noted(work: Callable[[Group], Any], count: int) -> Iterator[workers.Submit[Any]]:
        def kill() -> None:
            for process in multiprocessing.active_children():
                process.kill()

        timer = threading.Timer(60, kill)
        timer.start()
        try:
            with original(work, count) as submit:
                try:
                    yield submit
                finally:
                    found.extend(multiprocessing.active_children())
        finally:
            timer.cancel()

    monkeypatch.setattr(workers, "worker_processes", noted)
    yield found
    assert multiprocessing.active_children() == []


def plain(result: Any) -> Any:
    """A block or records as values that can be compared."""
    if not isinstance(result, Block):
        return vars(result)
    items = [
        (item.index, item.text, item.tokens.ids, item.tokens.segments, item.tokens.lost, item.tokens.lost_masks,
         item.tokens.pieces, item.tokens.offsets, item.tokens.sides)
        for item in result.items
    ]  # fmt: skip
    return (
        items,
        [np.asarray(one).tolist() for one in result.vectors],
        [vars(one) for one in result.failures],
        result.progress,
    )


def threads_of_windows() -> list[threading.Thread]:
    """The threads that tokenize the next window."""
    return [thread for thread in threading.enumerate() if thread.name.startswith("bertcli_group")]


# ----------------------------------------------------------------------------------------------------------- the same


# A command on a machine of 16 cores, which does not wait for two seconds of work before it starts processes.
IN_TWO_PROCESSES = (
    "from bertcli.cli import main; from bertcli.tasks.running import run; "
    "run.SECONDS_BEFORE_WORKERS, run.core_count = 0.0, lambda: 16; main()"
)


def in_two_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let commands that run here use two processes, as on a machine of 16 cores."""
    monkeypatch.setattr(running, "SECONDS_BEFORE_WORKERS", 0.0)
    monkeypatch.setattr(running, "core_count", lambda: 16)


@pytest.mark.parametrize(("doing", "count"), [*((name, 2) for name in DOINGS), ("encode", 3)])
def test_workers_change_nothing(doing: str, count: int, model: Model, started: list[BaseProcess]) -> None:
    alone = DOINGS[doing](model, {**SMALL, "workers": 1})
    assert started == []
    assert len(alone) >= 5
    assert doing != "fill-mask" or alone[-1].progress.failed
    shared = DOINGS[doing](model, {**SMALL, "workers": count})
    assert [plain(one) for one in shared] == [plain(one) for one in alone]
    assert len(started) == count
    assert threads_of_windows() == []


@pytest.mark.skipif(blas.kernel() is None, reason="this NumPy does not multiply with OpenBLAS")
def test_workers_multiply_with_the_kernel_of_whoever_asks() -> None:
    """Also where NumPy was there first, so that bertcli could not choose the kernel."""
    program = (
        "import os, numpy as np, bertcli\nfrom bertcli.engine import threads\n"
        "os.environ.pop('OPENBLAS_CORETYPE', None)\n"
        "threads.set_thread_count(2)\nmodel = bertcli.load()\n"
        "texts = ['the cat sat on the mat ' * (i % 5 + 1) for i in range(30)]\n"
        "one, two = (model.encode(texts, pooling='cls', batch_tokens=20, workers=n) for n in (1, 2))\n"
        "assert np.array_equal(one, two)\n"
    )
    environment = {key: value for key, value in os.environ.items() if key != blas.KERNEL_VARIABLE}
    if "sse4_2" in blas.processor()[1]:
        environment[blas.KERNEL_VARIABLE] = "Nehalem"  # which no library chooses any more
    subprocess.run([sys.executable, "-c", program], check=True, timeout=SECONDS, env=environment)


def test_workers_imports_nothing_from_the_folder_it_runs_in(model: Model, tmp_path: Path) -> None:
    for name in ("signal", "selectors", "multiprocessing", "numpy"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('imported from here')", encoding="utf-8")
    (tmp_path / "in.txt").write_text("tea with rain\n" * 3000, encoding="utf-8")
    command = [sys.executable, "-P", "-c", IN_TWO_PROCESSES, "encode", "-m", str(model.path)]
    subprocess.run([*command, "-i", "in.txt", "-o", "v.npy"], check=True, timeout=SECONDS, cwd=tmp_path)
    assert len(np.load(tmp_path / "v.npy")) == 3000


def test_workers_ctrl_c_is_nothing_to_a_worker_from_its_first_moment() -> None:
    with workers._started_with({}):
        process = subprocess.Popen([sys.executable, "-c", "print('done')"], stdout=subprocess.PIPE)
    process.send_signal(signal.SIGINT)
    assert process.communicate(timeout=SECONDS)[0] == b"done\n"
    assert process.returncode == 0
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, [])


def test_workers_process_that_cannot_be_started_is_one_line(model: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    def submit(*arguments: Any) -> None:
        raise BlockingIOError(11, "Resource temporarily unavailable")

    monkeypatch.setattr("concurrent.futures.ProcessPoolExecutor.submit", submit)
    with pytest.raises(BertcliError, match=r"cannot be started \(Resource temporarily unavailable\): set workers"):
        model.encode(TEXTS, workers=2, batch_tokens=60)


def test_workers_file_is_the_same_byte_for_byte_and_can_be_gone_on_with_by_any_number(
    model: Model, started: list[BaseProcess], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    source, whole, target = tmp_path / "in.jsonl", tmp_path / "whole.npy", tmp_path / "v.npy"
    write_json_lines(source, ({"text": text} for text in TEXTS))
    assert model.path is not None
    arguments: list[str | Path] = ["encode", "-m", model.path, "-i", source]
    compute_together(60, monkeypatch)
    assert run(*arguments, "-o", whole).status == 0
    assert started == []
    in_two_processes(monkeypatch)
    original = workers.worker_processes

    @contextmanager
    def fatal(work: Callable[[Group], Any], count: int) -> Iterator[workers.Submit[Any]]:
        with original(work, count) as submit:

            def killing(group: Group) -> Any:
                if group.first > 20:
                    for process in multiprocessing.active_children():
                        process.kill()
                return submit(group)

            yield killing

    with monkeypatch.context() as patch:
        patch.setattr(workers, "worker_processes", fatal)
        broken = run(*arguments, "-o", target, "--resume")
    assert (broken.status, target.exists()) == (1, False)
    errors = [line for line in broken.err.splitlines() if line.startswith("Error: ")]
    assert errors == [
        "Error: A worker process ended unexpectedly, perhaps for lack of memory: try again with fewer workers, in a "
        'command with --threads 8. A script needs `if __name__ == "__main__":` around what it does with workers.'
    ]
    assert "texts are done: repeat the command to continue" in broken.err
    resumed = continued(*arguments, "-o", target, "--resume")
    assert resumed.status == 0, resumed.err
    assert target.read_bytes() == whole.read_bytes()


# ----------------------------------------------------------------------------------------------------------- in order


@pytest.mark.parametrize("workers", [1, 2])
def test_workers_error_comes_after_what_is_before_it(workers: int, model: Model, tmp_path: Path) -> None:
    """One of a text, and one of reading it, which happens before the windows in front are computed."""
    source = tmp_path / "in.jsonl"
    rows = [json.dumps({"text": "tea with rain"})] * 30
    for row, message in (("{", "line 31: not valid JSON"), (json.dumps({"text": "rain " * 60}), "tokens, more than")):
        write_lines(source, [*rows, row, *rows])
        blocks = iter(
            model.encode_blocks(from_files([str(source)]), batch_tokens=20, truncation="error", workers=workers)
        )
        before: list[int] = []
        with pytest.raises(BertcliError, match=message):
            before.extend(block.progress.texts for block in blocks)
        assert before[0] < before[-1] <= 30
        assert next(blocks, None) is None


@pytest.mark.parametrize("workers", [1, 2])
def test_workers_error_closes_the_file_of_the_texts(
    workers: int, model: Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = tmp_path / "in.txt"
    source.write_text("tea with rain\n" * 30 + "rain " * 60 + "\ntea" * 30_000, encoding="utf-8")
    streams: list[BinaryIO] = []
    original = LineFile._open

    def noted(file: LineFile) -> BinaryIO:
        streams.append(original(file))
        return streams[-1]

    monkeypatch.setattr(LineFile, "_open", noted)
    texts = from_files([str(source)])
    with pytest.raises(BertcliError, match="tokens, more than") as raised:
        list(model.encode_blocks(texts, batch_tokens=20, truncation="error", workers=workers))
    assert raised.value.__traceback__ is not None  # its frames are still there
    assert [stream.closed for stream in streams] == [True]


@dataclass(frozen=True, eq=False, repr=False)
class Noting(RecordTask):
    """Gives the text of each window; notes what happens, and waits in a window for what is to happen meanwhile."""

    batches_per_group = 1
    events: list[str]
    meanwhile: "Callable[[Noting, int], object]"

    def tokenize_group(self, group: Sequence[Text], first: int) -> TokenizedGroup:
        self.events.append(f"tokenize {first}")
        return super().tokenize_group(group, first)

    def records(self, items: list[Item]) -> list[Record]:
        first = items[0].index
        self.meanwhile(self, first)
        self.events.append(f"compute {first}")
        return [{"index": item.index} for item in items]


def nothing(task: Noting, first: int) -> None: ...


def wait_for(condition: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + SECONDS
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.001)
    return condition()


def test_workers_next_window_is_tokenized_while_one_is_computed(model: Model) -> None:
    def meanwhile(task: Noting, first: int) -> None:
        if 0 < first < 30:
            assert wait_for(lambda: f"tokenize {first + 10}" in task.events)

    texts = ["tea with rain and tea with rain"] * 40  # each is taken for ten tokens
    task = Noting(model, ReadOptions(batch_tokens=100), [], meanwhile)
    found = list(running.results(task, from_values(texts)))
    assert [one.progress.texts for one in found] == [10, 20, 30, 40]
    assert [event for event in task.events if event[0] == "c"] == [f"compute {first}" for first in (0, 10, 20, 30)]
    assert threads_of_windows() == []


def test_workers_one_window_starts_nothing(
    model: Model, started: list[BaseProcess], monkeypatch: pytest.MonkeyPatch
) -> None:
    def submit(*arguments: object) -> None:
        raise AssertionError("a thread was started")

    monkeypatch.setattr("concurrent.futures.ThreadPoolExecutor.submit", submit)
    for count in (None, 1, 2):
        assert len(model.fill_mask(["[MASK] sat", "hot [MASK]"], workers=count)) == 2
    assert started == []


# ---------------------------------------------------------------------------------------------------- as they come in


@pytest.mark.parametrize("workers", [None, 1])
def test_workers_no_iterator_is_read_before_what_is_done_is_given_out(workers: int | None, model: Model) -> None:
    task = Noting(model, ReadOptions(batch_tokens=100, workers=workers), [], nothing)

    def texts() -> Iterator[str]:
        for index in range(30):
            if index % 10 == 0:
                task.events.append(f"read {index}")
            yield "tea with rain and tea with rain"

    for found in running.results(task, from_values(texts())):
        task.events.append(f"given {found.progress.texts}")
    expected = [(f"read {i}", f"tokenize {i}", f"compute {i}", f"given {i + 10}") for i in (0, 10, 20)]
    assert task.events == [event for events in expected for event in events]


def test_workers_pipe_is_answered_before_it_is_written_on(model: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    read, write = os.pipe()
    with open(read, encoding="utf-8") as stdin, open(write, "wb", buffering=0) as pipe:
        monkeypatch.setattr(sys, "stdin", stdin)
        blocks = iter(model.encode_blocks(from_files(["-"]), batch_tokens=20, workers=2))
        for number in range(4):
            pipe.write(b"tea with rain\n" * 20)
            done = 0
            while done < 20 * (number + 1):
                done = next(blocks).progress.texts
        pipe.close()
        assert next(blocks, None) is None


# ---------------------------------------------------------------------------------------------------- nothing is left


def test_workers_end_when_no_more_is_wanted(model: Model, started: list[BaseProcess]) -> None:
    for more in ({"workers": 2}, {"workers": 1}):
        blocks = model.encode_blocks(TEXTS * 20, batch_tokens=60, truncation="silent", **more)  # type: ignore[arg-type]
        for _ in range(4):
            next(blocks)
        assert threads_of_windows() or more["workers"] == 2
        del blocks
        assert threads_of_windows() == []
    assert len(started) == 2


@pytest.mark.parametrize(("number", "status"), [("SIGINT", 130), ("SIGKILL", -9)])
def test_workers_end_with_signals(number: str, status: int, model: Model, tmp_path: Path) -> None:
    source = tmp_path / "in.txt"
    source.write_text("tea with rain\n" * 200_000, encoding="utf-8")
    command = [sys.executable, "-c", IN_TWO_PROCESSES, "encode", "-m", str(model.path), "-i", str(source)]
    with in_time(
        [*command, "--format", "jsonl"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
    ) as process:  # fmt: skip
        assert process.stdout is not None
        assert process.stderr is not None
        # Three windows and a few lines: both workers have given one. A worker that is killed while it starts says so.
        for _ in range(5_000):
            assert process.stdout.readline()
        if number == "SIGINT":  # from a terminal it goes to the workers too
            os.killpg(process.pid, signal.SIGINT)
        else:
            process.send_signal(getattr(signal, number))
        process.stdout.close()
        errors = process.stderr.read().decode()  # which ends when nobody has it any more, no worker either
    assert process.returncode == status
    assert errors == "Note: pooling mean, since the checkpoint specifies no pooling.\n"
    assert wait_for(lambda: not _alive(process.pid))


def _alive(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


# ------------------------------------------------------------------------------------------------------- how many


def test_workers_by_itself_it_is_one_process_for_every_eight_cores(
    model: Model, started: list[BaseProcess], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(running, "SECONDS_BEFORE_WORKERS", 0.0)
    how: dict[str, Any] = {"batch_tokens": 20, "truncation": "silent", "workers": "auto"}
    expected = model.score(TEXTS[:12], **how)
    assert started == []
    monkeypatch.setattr(running, "core_count", lambda: 9)
    assert model.score(TEXTS[:12], **{**how, "workers": None}) == expected
    assert started == []
    assert model.score(TEXTS[:12], **how) == expected
    assert len(started) == 2
    assert model.score(iter(TEXTS[:12]), **how) == expected
    monkeypatch.setattr(running, "SECONDS_BEFORE_WORKERS", 1000.0)
    assert model.score(TEXTS[:12], **how) == expected
    assert len(started) == 2


def test_workers_cores_are_shared_out(model: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[Any] = []

    class Pool:
        def __init__(self, count: int, context: Any, set_up: Any, setup: tuple[Any, ...]) -> None:
            given.append((count, *setup[2:]))

        def shutdown(self, cancel_futures: bool) -> None: ...

    monkeypatch.setattr(workers, "ProcessPoolExecutor", Pool)
    task = Noting(model, ReadOptions(), [], nothing)
    for total, count, share in ((8, 2, 4), (8, 3, 2), (2, 5, 1)):
        threads.set_thread_count(total)
        with workers.worker_processes(partial(running._of_group, task), count):
            assert given.pop() == (count, share, threads.thread_count())


def test_workers_what_cannot_be_opened_elsewhere_is_computed_here(model: Model, started: list[BaseProcess]) -> None:
    changed = replace(model, name="changed")
    assert len(changed.encode(TEXTS, batch_tokens=60)) == len(TEXTS)
    with pytest.raises(BertcliError, match=r"'changed' was changed after bertcli\.load\(\)"):
        changed.encode(TEXTS, workers=2)
    with pytest.raises(BertcliError, match="workers is 0; it must be at least 1"):
        model.encode(TEXTS, workers=0)
    assert started == []


def test_workers_trace_sees_all_of_it(model: Model, started: list[BaseProcess]) -> None:
    with bertcli.trace(model) as trace:
        model.encode(TEXTS[:4], workers=2, batch_tokens=20)
    assert trace.steps
    assert started == []
