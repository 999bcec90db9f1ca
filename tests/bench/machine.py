"""The limits everything else is held against."""

from collections.abc import Iterator
from time import perf_counter, sleep
from typing import Any

from bertcli.doctor import examine, matrix_rate, product_times
from bertcli.engine.product_rules import product_rule

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


TOKENS = (2, 8, 16, 32, 48, 64, 96, 128, 256, 512, 1024, 1536)
WEIGHTS = ((768, 768), (3072, 768), (768, 3072), (384, 384), (1536, 384), (384, 1536))  # [out, in]


def products(times: int) -> Iterator[Record]:
    """Microseconds of a product by weight and tokens, in each way: what product_rules.py is made from.

    In strips and plain with one thread; with all threads as the library divides it, and as bertcli does. `plain vs
    strips` above 1: strips are faster; `library vs bertcli` above 1: bertcli's division is.
    """
    yield {"what": "the rule in force", "rule": product_rule()}
    for weight in WEIGHTS:
        for tokens in TOKENS:
            found = product_times(tokens, weight, times)
            record = {"what": f"[{weight[0]}, {weight[1]}], {tokens} tokens", **found}
            del record["tokens"]
            if found["strips_us"]:
                record["plain vs strips"] = round(found["plain_us"] / found["strips_us"], 2)
            record["library vs bertcli"] = round(found["library_us"] / found["bertcli_us"], 2)
            yield record


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
