"""Rounds of fuzzing: each in a process of its own, with a bound on its memory and on the time of each case."""

import contextlib
import mmap
import os
import pickle
import resource
import select
import shutil
import signal
import struct
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from hypothesis import HealthCheck, Phase, given, seed, settings

STATE = 1 << 20  # bytes of shared memory that hold the case at hand
MESSAGE_LIMIT = 2000  # letters


class TooSlow(BaseException):
    """A case took longer than it may; no `except Exception` takes it for an error of its own."""


class Limits(NamedTuple):
    """What a case may take: `seconds`, and bytes of address space beyond those of an idle process."""

    seconds: float
    memory: int


class Outcomes:
    """What has come of the cases of a part."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.found: dict[str, tuple[str, Any]] = {}  # signature -> (traceback, files)
        self.slowest = 0.0
        self.peak = 0  # bytes resident beyond the process's at its start

    def add(self, other: "Outcomes") -> None:
        self.counts += other.counts
        self.found |= other.found
        self.slowest, self.peak = max(self.slowest, other.slowest), max(self.peak, other.peak)


@contextlib.contextmanager
def timed(limit: float) -> Iterator[None]:
    def stop(number: int, frame: object) -> None:
        raise TooSlow

    previous = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, limit)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)


def write_files(folder: Path, files: Any) -> None:
    for old in folder.iterdir():
        shutil.rmtree(old) if old.is_dir() else old.unlink()
    for name, data in files.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_bytes(data)


def judge(read: Callable[[Path], object], folder: Path, seconds: float) -> tuple[str, str]:
    """The outcome of a case ("read", "refused" or "found") and, of what was found, the traceback."""
    from bertcli.errors import BertcliError

    try:
        with timed(seconds):
            read(folder)
    except BertcliError as error:
        if len(str(error)) > MESSAGE_LIMIT:
            return "found", f"a message of {len(str(error))} letters: {error!s:.200}"
        return "refused", ""
    except BaseException:  # a panic of the tokenizers library is no Exception
        return "found", traceback.format_exc()
    return "read", ""


def signature(report: str) -> str:
    """The same for the same fault: the last line of ours, and the kind of exception."""
    lines = [line.strip() for line in report.splitlines()]
    ours = [line for line in lines if line.startswith("File ") and ("bertcli" in line or "tests/fuzz" in line)]
    return f"{lines[-1][:60]} @ {ours[-1] if ours else ''}"


class Round(NamedTuple):
    """Cases of a part to run."""

    part: Any
    seed: int
    cases: int
    limits: Limits


def run(this: Round, state: mmap.mmap, deliver: Callable[[Outcomes], None]) -> None:
    """Run cases in this process, which is given up afterwards."""
    part, limits = this.part, this.limits
    outcomes = Outcomes()
    folder = Path(tempfile.mkdtemp(prefix="fuzz"))
    start = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    size = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (size + limits.memory,) * 2)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))

    @seed(this.seed)
    @settings(max_examples=this.cases, database=None, phases=[Phase.generate], deadline=None,
              suppress_health_check=list(HealthCheck))  # fmt: skip
    @given(files=part.cases)
    def one(files: Any) -> None:
        write_files(folder, files)
        data = pickle.dumps(dict(files))
        began = time.perf_counter()
        state[: 16 + len(data)] = struct.pack("<dQ", time.monotonic(), len(data)) + data
        outcome, report = judge(part.read, folder, limits.seconds)
        state[:8] = struct.pack("<d", 0)
        outcomes.counts[outcome] += 1
        outcomes.slowest = max(outcomes.slowest, time.perf_counter() - began)
        if outcome == "found":
            outcomes.found.setdefault(signature(report), (report, dict(files)))

    one()
    outcomes.peak = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - start) * 1024
    shutil.rmtree(folder)
    deliver(outcomes)


def guarded(this: Round) -> Outcomes:
    """A round in a child, which may crash or hang."""
    state = mmap.mmap(-1, STATE)
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        run(this, state, lambda outcomes: leave(writing, outcomes))
    os.close(writing)
    data, hung = b"", False
    with open(reading, "rb", buffering=0) as pipe:
        while True:
            if select.select([pipe], [], [], 0.5)[0]:
                if not (chunk := pipe.read(1 << 16)):
                    break
                data += chunk
            (began,) = struct.unpack("<d", state[:8])
            if began and not hung and time.monotonic() - began > 4 * this.limits.seconds:  # in C: no signal is answered
                os.kill(child, signal.SIGKILL)
                hung = True
    status = os.waitpid(child, 0)[1]
    if data and not hung:
        outcomes: Outcomes = pickle.loads(data)
        return outcomes
    outcomes = Outcomes()
    outcomes.counts["found"] = 1
    (size,) = struct.unpack("<Q", state[8:16])
    what = "hung" if hung else f"ended with wait status {status}"
    outcomes.found[what] = (what, pickle.loads(state[16 : 16 + size]) if size else {})
    return outcomes


def leave(pipe: int, outcomes: Outcomes) -> None:
    """Hand outcomes to the parent, and end without what an interpreter does at its end."""
    with open(pipe, "wb") as stream:
        pickle.dump(outcomes, stream)
    os._exit(0)
