"""The limits everything else is held against."""

from collections.abc import Iterator
from time import perf_counter, sleep
from typing import Any

from bertcli.doctor import examine, matrix_rate

Record = dict[str, Any]
PAUSE = 0.2  # seconds: after a product, peers' threads keep a core spinning for a while


def machine() -> Iterator[Record]:
    """Kernel, threads, matrix and memory rate."""
    found = examine()
    yield {
        "what": f"{found['processor']}, {found['threads']} threads",
        "kernel": found["kernel"],
        "GFLOP/s": found["matrix_gflops"],
        "GB/s": found["memory_gb_per_second"],
    }


def in_turn(runs: dict[str, Any], times: int) -> tuple[dict[str, float], float]:
    """Best seconds of each, taken in turn with pauses; and the best matrix rate measured in between."""
    best = dict.fromkeys(runs, float("inf"))
    rate = 0.0
    for run in runs.values():
        run()
    for _ in range(times):
        sleep(PAUSE)
        rate = max(rate, matrix_rate())
        for name, run in runs.items():
            sleep(PAUSE)
            start = perf_counter()
            run()
            best[name] = min(best[name], perf_counter() - start)
    return best, rate


def compared(what: str, best: dict[str, float], unit: float = 1e3, name: str = "ms") -> Record:
    """A record of times and of the ratios of others to the first."""
    own, *others = best
    record: Record = {"what": what, f"{own} {name}": round(best[own] * unit, 1)}
    for other in others:
        record[f"{other} {name}"] = round(best[other] * unit, 1)
        record[f"vs {other}"] = round(best[other] / best[own], 2)
    return record
