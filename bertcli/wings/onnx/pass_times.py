"""Measure what a call of ONNX Runtime costs: the time of a pass of a short text, and of a longer one.

Measurements are kept beside the graph in the cache, in a file named after all that changes them: versions, OpenBLAS'
kernel, the number of threads.
"""

import json
import os
import platform
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

from bertcli._version import __version__
from bertcli.engine import blas
from bertcli.engine.packing import Packed, pack
from bertcli.engine.threads import thread_count
from bertcli.wings.onnx.session import OVERHEAD, Session, hidden_states, runtime

SECONDS = 0.5  # for the runs of one shape
SHORT, LONGER = (1, 16), (1, 128)  # sentences × tokens
# Runs of a shape: the fastest counts, since other programs disturb the others; the first warms up.
MOST_RUNS = 18
Times = tuple[float, float]


class _Sentence(NamedTuple):
    ids: list[int]
    segments: list[int]


def tokens_of_a_call(times: Times) -> int:
    """Return the number of padded tokens that cost as much as a call: a / b, for a time of a + b · tokens.

    times: of a short text and of a longer one. Rounded to a power of two, so that two measurements group sentences
    alike, and OVERHEAD at least: on a busy machine the longer run is disturbed more than the short one, and a call
    would seem to cost nothing.
    """
    short, longer = times
    slope = (longer - short) / (LONGER[1] - SHORT[1])
    if slope <= 0:
        return LONGER[1]
    tokens = min(max(short / slope - SHORT[1], OVERHEAD), LONGER[1])
    return int(2 ** round(float(np.log2(tokens))))


def measured_calls(session: Session, vocabulary: int, most_tokens: int) -> int:
    """Measure the `tokens_of_a_call` of a session, once."""

    def measure() -> list[float]:
        return [_fastest(session, _batch(shape, vocabulary, most_tokens)) for shape in (SHORT, LONGER)]

    short, longer = cached_measurement(session, "calls", measure, _are_times)
    return tokens_of_a_call((short, longer))


def _fastest(session: Session, batch: Packed) -> float:
    """Time the fastest of some runs, two at least."""
    fastest, started = np.inf, perf_counter()
    for number in range(MOST_RUNS):
        start = perf_counter()
        with np.errstate(all="ignore"):  # damaged weights are reported where their results are used
            hidden_states(session, batch)
        fastest = min(fastest, perf_counter() - start)
        if number and perf_counter() - started > SECONDS:
            break
    return float(fastest)


def _batch(shape: tuple[int, int], vocabulary: int, most_tokens: int) -> Packed:
    sentences, tokens = shape
    ids = np.random.default_rng(0).integers(vocabulary, size=(sentences, min(tokens, most_tokens)))
    return pack([_Sentence(row, [0] * len(row)) for row in ids.tolist()])


def _are_times(kept: Any) -> bool:
    if not isinstance(kept, list) or len(kept) != 2:
        return False
    return all(isinstance(time, float) and 0 < time < 1e6 for time in kept)


def cached_measurement(session: Session, what: str, measure: Callable[[], Any], is_valid: Callable[[Any], bool]) -> Any:
    """Read a measurement from its file beside the graph; if it is missing or damaged, measure and try to write it.

    is_valid: a function that checks the content of the file.
    """
    settings = (__version__, runtime().__version__, np.__version__, blas.kernel(), thread_count(), platform.processor())
    name = f"{what}-{sha256(repr(settings).encode()).hexdigest()[:16]}.json"
    file = None if session.folder is None else session.folder / name
    if file is not None:
        try:
            kept = json.loads(file.read_bytes())
        except (OSError, ValueError):
            kept = None
        if is_valid(kept):
            return kept
    measured = measure()
    if file is not None:
        _write(file, measured)
    return measured


def _write(file: Path, value: Any) -> None:
    """Write a small file atomically; ignore errors, since the next run then measures again."""
    draft = file.with_name(f".{file.name}.{os.getpid()}")
    try:
        draft.write_text(json.dumps(value), encoding="utf-8")
        os.replace(draft, file)
    except OSError:
        draft.unlink(missing_ok=True)
