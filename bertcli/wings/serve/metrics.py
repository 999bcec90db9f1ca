"""Metrics: counters and histograms in Prometheus' text format, with the names of text-embeddings-inference."""

import sys
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate
from pathlib import Path
from threading import Lock

# Upper bounds of the histograms' buckets.
SECONDS = (0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 60.0)
TOKENS = (8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 32768)
HISTOGRAMS = {
    "te_request_duration": ("Seconds from a request to its answer.", SECONDS),
    "te_request_tokenization_duration": (
        "Seconds until a request's texts were tokenized.",
        SECONDS,
    ),
    "te_request_queue_duration": ("Seconds that a request waited in the queue.", SECONDS),
    "te_request_inference_duration": ("Seconds from a request's first batch to its last.", SECONDS),
    "te_request_input_length": ("Tokens of a text.", TOKENS),
    "te_batch_next_size": ("Texts in a batch.", TOKENS),
    "te_batch_next_tokens": ("Tokens in a batch.", TOKENS),
}
# Help, and the name of the label; "" without one.
COUNTERS = {
    "te_request_count": ("Requests.", "method"),
    "te_request_success": ("Requests that were answered.", "method"),
    "te_request_failure": ("Requests that were refused or failed.", "err"),
    "bertcli_truncated_total": ("Texts that were cut.", ""),
}


class Metrics:
    """The server's counters and histograms; `text` writes them for Prometheus."""

    def __init__(self) -> None:
        self._counts: dict[str, Counter[str]] = {name: Counter() for name in COUNTERS}
        self._counts["bertcli_truncated_total"][""] = 0
        # Values in each bucket; the last one has those above all bounds.
        self._buckets = {name: [0] * (len(bounds) + 1) for name, (_, bounds) in HISTOGRAMS.items()}
        self._sums = dict.fromkeys(HISTOGRAMS, 0.0)
        self._lock = Lock()  # several threads count

    def count(self, name: str, label: str = "") -> None:
        """Add 1 to a counter, at this value of its label."""
        with self._lock:
            self._counts[name][label] += 1

    def observe(self, name: str, value: float) -> None:
        """Add a value to a histogram."""
        _, bounds = HISTOGRAMS[name]
        with self._lock:
            self._buckets[name][bisect_left(bounds, value)] += 1
            self._sums[name] += value

    def batch(self, size: int, tokens: int) -> None:
        """Add a batch of `size` texts to the histograms."""
        self.observe("te_batch_next_size", size)
        self.observe("te_batch_next_tokens", tokens)

    def text(self, queued: int) -> str:
        """All metrics as text, with the number of waiting requests and the memory of this process."""
        lines = [*_lines("te_queue_size", "gauge", "Requests in the queue.", {"": queued})]
        memory = resident_bytes()
        if memory is not None:
            lines += _lines("process_resident_memory_bytes", "gauge", "Resident memory.", {"": memory})
        for name, (help, label) in COUNTERS.items():
            lines += _lines(name, "counter", help, self._counter_values(name, label))
        for name, (help, bounds) in HISTOGRAMS.items():
            lines += _lines(name, "histogram", help, self._histogram_values(name, bounds))
        return "\n".join(lines) + "\n"

    def _counter_values(self, name: str, label: str) -> dict[str, float]:
        counts = self._counts[name]
        if not label:
            return {"": counts[""]}
        return {f'{{{label}="{value}"}}': count for value, count in counts.items()}

    def _histogram_values(self, name: str, bounds: Sequence[float]) -> dict[str, float]:
        # Prometheus' buckets are cumulative: each counts all values up to its bound.
        counts = [*accumulate(self._buckets[name])]
        values: dict[str, float] = {}
        for bound, count in zip((*bounds, "+Inf"), counts, strict=True):
            values[f'_bucket{{le="{bound}"}}'] = count
        return {**values, "_sum": self._sums[name], "_count": counts[-1]}


def _lines(name: str, metric_type: str, help: str, values: Mapping[str, float]) -> Iterator[str]:
    """The lines of one metric. values: by what follows its name, such as labels."""
    yield f"# HELP {name} {help}"
    yield f"# TYPE {name} {metric_type}"
    for suffix, value in values.items():
        yield f"{name}{suffix} {value}"


def resident_bytes() -> int | None:
    """Bytes of this process in memory; on macOS their maximum so far, on Windows None."""
    try:
        import resource
    except ImportError:
        return None
    statm = Path("/proc/self/statm")
    if statm.exists():
        _, resident_pages, *_ = statm.read_text().split()
        return int(resident_pages) * resource.getpagesize()
    # Bytes on macOS, elsewhere kilobytes.
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else most * 1024
