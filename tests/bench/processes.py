"""Whole processes, from start to exit: fill-mask on BERT-base, the bundled sample, params, beside the bare imports."""

import os
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from time import perf_counter, sleep
from typing import Any

Record = dict[str, Any]
TEXT = "the man and the woman [MASK] in the house ."
CLI = "import sys; from bertcli.cli import main; sys.exit(main())"
PIPELINE = "import sys; from transformers import pipeline; pipeline('fill-mask', sys.argv[1])(sys.argv[2])"


def processes(folder: Path, times: int, beside: Path | None = None) -> Iterator[Record]:
    """Seconds and peak memory of each, and the ratio to what it is held against."""
    numpy = whole(["-c", "import numpy"], times)
    yield {"what": "python -c 'import numpy'", **shown(numpy)}
    runs = {
        "fill-mask, base": ["-c", CLI, "fill-mask", "-m", str(folder), TEXT],
        "fill-mask, bundled sample": ["-c", CLI, "fill-mask", TEXT],
        "params --variant large": ["-c", CLI, "params", "--variant", "large"],
        "--help": ["-c", CLI, "--help"],
    }
    found = {}
    for name, arguments in runs.items():
        found[name] = measured = whole(arguments, times)
        if measured is not None:
            yield {"what": name, **shown(measured), "times numpy": round(measured[0] / numpy[0], 1) if numpy else None}
        else:
            yield {"what": name, "failed": True}
    if beside:
        there = f"import sys; sys.path.insert(0, {str(beside)!r}); {CLI}"
        other = whole(["-c", there, *runs["fill-mask, base"][2:]], times)
        yield {"what": f"fill-mask, base, {beside.name}", **shown(other)}
    if find_spec("transformers") and find_spec("torch"):
        peer, own = whole(["-c", PIPELINE, str(folder), TEXT], times), found["fill-mask, base"]
        record: Record = {"what": "transformers.pipeline, base", **shown(peer)}
        if peer and own:
            record |= {"vs pipeline": round(peer[0] / own[0], 1), "of its memory": round(own[1] / peer[1], 2)}
        yield record


def whole(arguments: list[str], times: int) -> tuple[float, float] | None:
    """Best seconds, and peak MiB, of Python with these arguments; None when it fails."""
    best, peak = float("inf"), 0.0
    for _ in range(times):
        start = perf_counter()
        process = subprocess.Popen(
            [sys.executable, *arguments], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment()
        )
        while process.poll() is None:
            peak = max(peak, peak_memory(process.pid))
            sleep(0.002)
        best = min(best, perf_counter() - start)
        if process.returncode:
            return None
    return best, peak


def peak_memory(process: int | str) -> float:
    """MiB a process has held at most so far; 0 where Linux does not say. (What wait4 says includes the parent's.)"""
    try:
        text = Path(f"/proc/{process}/status").read_text()
    except OSError:
        return 0.0
    return next((int(line.split()[1]) / 1024 for line in text.splitlines() if line.startswith("VmHWM")), 0.0)


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


def shown(measured: tuple[float, float] | None) -> Record:
    return {} if measured is None else {"ms": round(measured[0] * 1e3), "peak MiB": round(measured[1])}
