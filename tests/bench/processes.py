"""Whole processes, from start to exit: fill-mask on BERT-base, the bundled sample, params, beside the bare imports."""

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage
from time import perf_counter, sleep
from typing import Any, NamedTuple

Record = dict[str, Any]
TEXT = "the man and the woman [MASK] in the house ."
CLI = "import sys; from bertcli.cli import main; sys.exit(main())"
PIPELINE = "import sys; from transformers import pipeline; pipeline('fill-mask', sys.argv[1])(sys.argv[2])"
NUMPY = "python -c 'import numpy'"
BASE, SAMPLE, PARAMS, HELP = "fill-mask, base", "fill-mask, bundled sample", "params --variant large", "--help"
PEER = "transformers.pipeline, base"


class Whole(NamedTuple):
    """The fastest run of a process, and the memory of one that is looked at."""

    seconds: float
    processor: float  # seconds that its threads have worked together
    peak: float  # MiB
    own: float  # MiB of it that are no mapped file's

    @property
    def shown(self) -> Record:
        return {
            "ms": round(self.seconds * 1e3),
            "processor over wall": round(self.processor / self.seconds, 2),
            "peak MiB": round(self.peak),
            "without files": round(self.own),
        }


def processes(folder: Path, times: int, beside: Path | None = None) -> Iterator[Record]:
    """Seconds and peak memory of each, and the ratio to what it is held against."""
    runs = {
        NUMPY: ["-c", "import numpy"],
        BASE: ["-c", CLI, "fill-mask", "-m", str(folder), TEXT],
        SAMPLE: ["-c", CLI, "fill-mask", TEXT],
        PARAMS: ["-c", CLI, "params", "--variant", "large"],
        HELP: ["-c", CLI, "--help"],
    }
    if beside:
        there = f"import sys; sys.path.insert(0, {str(beside)!r}); {CLI}"
        runs |= {f"{name}, {beside.name}": ["-c", there, *runs[name][2:]] for name in (BASE, SAMPLE, PARAMS, HELP)}
    if find_spec("transformers") and find_spec("torch"):
        runs[PEER] = ["-c", PIPELINE, str(folder), TEXT]
    found = whole(runs, times)
    for name, measured in found.items():
        if measured is None:
            yield {"what": name, "failed": True}
            continue
        record: Record = {"what": name, **measured.shown}
        if numpy := found[NUMPY]:
            record["times numpy"] = round(measured.seconds / numpy.seconds, 2)
        if name == PEER and (own := found[BASE]):
            record |= {"vs pipeline": round(measured.seconds / own.seconds, 1)}
            record |= {"of its memory": round(own.peak / measured.peak, 2)}
        yield record


def whole(runs: Mapping[str, Sequence[str]], times: int) -> dict[str, Whole | None]:
    """Python with each of these arguments, so many times in turn; None for one that fails.

    Before that once each, for its memory: looking at a process while it runs makes it slower, a short one by a third.
    """
    memories = {name: _run(arguments, look=True) for name, arguments in runs.items()}
    found: dict[str, list[Whole | None]] = {name: [] for name in runs}
    for _ in range(times):
        for name, arguments in runs.items():
            found[name].append(_run(arguments))
    return {name: _best(some, memories[name]) for name, some in found.items()}


def _best(runs: list[Whole | None], looked_at: Whole | None) -> Whole | None:
    ended = [run for run in runs if run is not None]
    if looked_at is None or len(ended) < len(runs):
        return None
    return min(ended)._replace(peak=looked_at.peak, own=looked_at.own)


def _run(arguments: Sequence[str], look: bool = False) -> Whole | None:
    peak = own = 0.0
    before, start = getrusage(RUSAGE_CHILDREN), perf_counter()
    process = subprocess.Popen(
        [sys.executable, *arguments], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment()
    )
    while look and process.poll() is None:
        peak, own = max(peak, memory(process.pid, "VmHWM")), max(own, memory(process.pid, "RssAnon"))
        sleep(0.002)
    failed = process.wait()
    seconds, after = perf_counter() - start, getrusage(RUSAGE_CHILDREN)
    processor = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
    return None if failed else Whole(seconds, processor, peak, own)


def memory(process: int | str, name: str) -> float:
    """MiB of a process, by the name that Linux gives them; 0 where it does not say."""
    try:
        text = Path(f"/proc/{process}/status").read_text()
    except OSError:
        return 0.0
    return next((int(line.split()[1]) / 1024 for line in text.splitlines() if line.startswith(name)), 0.0)


def environment() -> dict[str, str]:
    """The environment of a process that imports the checkout beside this file, and what stands here.

    Its compiled modules are kept from the first run, as those of an installed package are.
    """
    here = Path(__file__).parent
    before = os.environ.get("PYTHONPATH")
    places = [str(here.parents[1]), str(here.parent), *([before] if before else [])]
    found = {**os.environ, "PYTHONPATH": os.pathsep.join(places)}
    found.pop("PYTHONDONTWRITEBYTECODE", None)
    return found
