"""One forward call on a batch of ids: bertcli, PyTorch, ONNX Runtime; and what takes the time."""

import re
from collections import defaultdict
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import bertcli
from bench.machine import compared, in_turn
from bench.peers import forwards

Record = dict[str, Any]
SHAPES = ((1, 16), (1, 128), (8, 128), (32, 64), (2, 512))


def passes(folder: Path, quick: bool, beside: Path | None = None) -> Iterator[Record]:
    """Times and ratios of a whole forward call, the share of the machine's matrix rate, the largest difference."""
    runs = forwards(folder, beside)
    for batch, tokens in SHAPES:
        ids = np.random.default_rng(0).integers(5, 30000, (batch, tokens))
        mask = np.ones_like(ids)
        states = {name: run(ids, mask) for name, run in runs.items()}
        times = max(3, min(15, 6000 // (batch * tokens))) // (3 if quick else 1)
        calls = {name: partial(run, ids, mask) for name, run in runs.items()}
        best, rate = in_turn(calls, max(1, times))
        work = 24 * (7_077_888 * tokens + 2 * 768 * tokens**2) * batch  # of the products of twelve layers
        record = compared(f"({batch}, {tokens})", best)
        record["of matrix rate"] = f"{work / best['bertcli'] / rate:.0%}"
        if tokens * batch <= 128:  # every weight is read once, 340 MB
            record["GB/s of weights"] = round(85e6 * 4 / best["bertcli"] / 1e9, 1)
        others = [np.abs(states["bertcli"] - other).max() for other in list(states.values())[1:]]
        record["largest difference"] = f"{max(others):.1e}" if others else None
        yield record


def where_time_goes(folder: Path) -> Iterator[Record]:
    """Time of each kind of step of an (8, 128) pass, as a trace measures them: one thread computes the whole."""
    model = bertcli.load(folder)
    ids = np.random.default_rng(0).integers(5, 30000, (8, 128))
    model.forward(ids)
    with bertcli.trace(model, time=True) as trace:
        model.forward(ids)
    seconds: dict[str, float] = defaultdict(float)
    for step in trace.steps:
        kind = re.sub(r"_\d+$", "", step.path.split(".", 3)[-1]) if "layers" in step.path else "embeddings"
        seconds[kind] += step.seconds or 0.0
    total = sum(seconds.values())
    for kind, spent in sorted(seconds.items(), key=lambda item: -item[1]):
        yield {"what": kind, "ms": round(spent * 1e3, 1), "share": f"{spent / total:.1%}"}
