"""Measure the time of a pass in ONNX Runtime: what a call costs; for `doctor -m` also in NumPy.

A short text, a longer one, a small batch and, if there is time, a long text are measured. Measurements are kept beside
the graph in the cache, in a file named after all that changes them: versions, OpenBLAS' kernel, the number of threads.
"""

import json
import os
import platform
from collections.abc import Callable, Mapping
from hashlib import sha256
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

from bertcli._version import __version__
from bertcli.engine import blas
from bertcli.engine.packing import Packed, pack
from bertcli.engine.threads import thread_count
from bertcli.tracing.dispatch import Array
from bertcli.wings.onnx.session import OVERHEAD, Session, hidden_states, runtime

SECONDS = 2.0  # for all measurements together
SHORT, LONGER, BATCH, LONG = (1, 16), (1, 128), (8, 32), (1, 512)  # sentences × tokens
SHAPES = (SHORT, LONGER, BATCH, LONG)
# Each engine has so many turns at most, of so many runs in a row: after the other engine's, its own weights are in no
# cache, and its threads share a core for up to 0.1 s (NumPy's pass of 128 tokens took 45 instead of 27 ms).
TURNS, IN_A_ROW = 3, 6
Shape = tuple[int, int]
Times = dict[Shape, float]
Record = dict[str, Any]


class _Sentence(NamedTuple):
    ids: list[int]
    segments: list[int]


def tokens_of_a_call(times: Mapping[Shape, float]) -> int:
    """Return the number of padded tokens that cost as much as a call: a / b, for a time of a + b · tokens.

    Rounded to a power of two, so that two measurements group sentences alike, and OVERHEAD at least: on a busy machine
    the longer run is disturbed more than the short one, and a call would seem to cost nothing.
    """
    if not {SHORT, LONGER} <= times.keys():
        return OVERHEAD
    slope = (times[LONGER] - times[SHORT]) / (LONGER[1] - SHORT[1])
    if slope <= 0:
        return LONGER[1]
    tokens = min(max(times[SHORT] / slope - SHORT[1], OVERHEAD), LONGER[1])
    return int(2 ** round(float(np.log2(tokens))))


# ------------------------------------------------------------------------------------------------------- measurements


def measured_calls(session: Session, vocabulary: int, most_tokens: int) -> int:
    """Measure the `tokens_of_a_call` of a session, once."""

    def measure() -> Any:
        return _as_json(_times({"onnx": _run_of(session)}, (SHORT, LONGER), vocabulary, most_tokens))

    return tokens_of_a_call(_read(cached_measurement(session, "calls", measure, _has_times_of("onnx")))["onnx"])


def rows(session: Session, network: Callable[[Packed], Array], vocabulary: int, most_tokens: int) -> list[Record]:
    """Measure both engines, once; a row of the table that `bertcli doctor -m MODEL` prints for each shape."""
    runs: dict[str, Callable[[Packed], Array]] = {"numpy": network, "onnx": _run_of(session)}

    def measure() -> Any:
        return _as_json(_times(runs, SHAPES, vocabulary, most_tokens))

    kept = _read(cached_measurement(session, "speeds", measure, _has_times_of("numpy", "onnx")))
    table = []
    for shape, in_numpy in kept["numpy"].items():
        in_onnx = kept["onnx"][shape]
        row = {
            "sentences": shape[0],
            "tokens": shape[1],
            "numpy_ms": round(1000 * in_numpy, 2),
            "onnx_ms": round(1000 * in_onnx, 2),
            "faster": "onnx" if in_onnx < in_numpy else "numpy",
        }
        table.append(row)
    return table


def _run_of(session: Session) -> Callable[[Packed], Array]:
    return lambda batch: hidden_states(session, batch)


def _times(
    runs: Mapping[str, Callable[[Packed], Array]], shapes: tuple[Shape, ...], vocabulary: int, most_tokens: int
) -> dict[str, Times]:
    """Time the fastest run of each shape in each engine; they take turns, so that other load hits both."""
    begun = perf_counter()
    times_of: dict[str, Times] = {name: {} for name in runs}  # by engine
    for shape in shapes:
        batch = _batch(shape, vocabulary, most_tokens)
        if shape not in (SHORT, LONGER):
            tokens = shape[0] * shape[1]
            expected = sum(times[LONGER] * tokens / LONGER[1] for times in times_of.values())
            if perf_counter() - begun + 2 * expected > SECONDS:  # it runs twice at least
                break
        fastest, started = dict.fromkeys(runs, np.inf), perf_counter()
        for _ in range(TURNS):
            for name, run in runs.items():
                fastest[name] = min(fastest[name], _fastest(run, batch))
            if perf_counter() - started > SECONDS / len(SHAPES):
                break
        for name, time in fastest.items():
            times_of[name][shape] = float(time)
    return times_of


def _fastest(run: Callable[[Packed], Array], batch: Packed) -> float:
    """Time the fastest of a few runs in a row; two at least, the first of which warms up."""
    fastest, started = np.inf, perf_counter()
    for number in range(IN_A_ROW):
        start = perf_counter()
        with np.errstate(all="ignore"):  # damaged weights are reported where their results are used
            run(batch)
        fastest = min(fastest, perf_counter() - start)
        if number and perf_counter() - started > SECONDS / len(SHAPES) / 4:
            break
    return float(fastest)


def _batch(shape: Shape, vocabulary: int, most_tokens: int) -> Packed:
    sentences, tokens = shape
    ids = np.random.default_rng(0).integers(vocabulary, size=(sentences, min(tokens, most_tokens)))
    return pack([_Sentence(row, [0] * len(row)) for row in ids.tolist()])


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


def _as_json(times_of: Mapping[str, Times]) -> dict[str, dict[str, float]]:
    """Times with shapes as texts, such as "8x32", which a JSON object can have as keys."""
    record = {}
    for engine, times in times_of.items():
        record[engine] = {f"{sentences}x{tokens}": time for (sentences, tokens), time in times.items()}
    return record


def _read(kept: Any) -> dict[str, Times]:
    """Parse times that `_as_json` has converted. Errors: ValueError, TypeError, AttributeError for anything else."""
    times_of: dict[str, Times] = {}
    for engine, record in kept.items():
        times: Times = {}
        for key, time in record.items():
            sentences, _, tokens = key.partition("x")
            shape = (int(sentences), int(tokens))
            if shape not in SHAPES or not 0 < float(time) < 1e6:
                raise ValueError("a time that was never measured")
            times[shape] = float(time)
        if not {SHORT, LONGER} <= times.keys():
            raise ValueError("a shape is missing")
        times_of[engine] = times
    return times_of


def _has_times_of(*engines: str) -> Callable[[Any], bool]:
    """A check of what a file holds: times of these engines."""

    def is_valid(kept: Any) -> bool:
        try:
            return {*_read(kept)} == {*engines}
        except (ValueError, TypeError, AttributeError):
            return False

    return is_valid
