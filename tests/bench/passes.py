"""One forward call on a batch of ids: bertcli, PyTorch, ONNX Runtime."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

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
