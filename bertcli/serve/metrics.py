"""The metrics of `/metrics` in Prometheus' text format, with the names of text-embeddings-inference."""

import sys
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import accumulate
from pathlib import Path
from threading import Lock

SECONDS = (0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 60.0)
TOKENS = (8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 32768)
HISTOGRAMS = {
    "te_request_duration": ("Seconds a request took.", SECONDS),
    "te_request_tokenization_duration": ("Seconds until a request's texts were tokens.", SECONDS),
    "te_request_queue_duration": ("Seconds a request waited for its turn.", SECONDS),
    "te_request_inference_duration": ("Seconds in which a request was computed.", SECONDS),
    "te_request_input_length": ("Tokens of a text.", TOKENS),
    "te_batch_next_size": ("Texts of a batch.", TOKENS),
    "te_batch_next_tokens": ("Tokens of a batch.", TOKENS),
}
COUNTERS = {  # with the name of their label
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
        self._counted = {name: [0] * (len(bounds) + 1) for name, (_, bounds) in HISTOGRAMS.items()}
        self._sums = dict.fromkeys(HISTOGRAMS, 0.0)
        self._lock = Lock()  # several threads count

    def count(self, name: str, label: str = "") -> None:
        with self._lock:
            self._counts[name][label] += 1

    def observe(self, name: str, value: float) -> None:
        with self._lock:
            self._counted[name][bisect_left(HISTOGRAMS[name][1], value)] += 1
            self._sums[name] += value

    def batch(self, size: int, tokens: int) -> None:
        self.observe("te_batch_next_size", size)
        self.observe("te_batch_next_tokens", tokens)

    def text(self, queued: int) -> str:
        """All metrics as text, with the number of waiting requests and the memory of this process."""
        lines = [*_shown("te_queue_size", "gauge", "Requests that wait.", {"": queued})]
        memory = resident()
        if memory is not None:
            lines += _shown("process_resident_memory_bytes", "gauge", "Memory.", {"": memory})
        for name, (help, label) in COUNTERS.items():
            counts = {f'{{{label}="{value}"}}' if label else "": count for value, count in self._counts[name].items()}
            lines += _shown(name, "counter", help, counts)
        for name, (help, bounds) in HISTOGRAMS.items():
            below = dict(zip((*bounds, "+Inf"), accumulate(self._counted[name]), strict=True))
            buckets = {f'_bucket{{le="{bound}"}}': count for bound, count in below.items()}
            values = {**buckets, "_sum": self._sums[name], "_count": below["+Inf"]}
            lines += _shown(name, "histogram", help, values)
        return "\n".join(lines) + "\n"


def _shown(name: str, kind: str, help: str, values: Mapping[str, float]) -> Iterator[str]:
    """The lines of one metric; `values` are by the labels that follow its name."""
    yield f"# HELP {name} {help}"
    yield f"# TYPE {name} {kind}"
    for end, value in values.items():
        yield f"{name}{end} {value}"


def resident() -> int | None:
    """Bytes of this process in memory; on macOS their maximum so far, on Windows None."""
    try:
        import resource
    except ImportError:
        return None
    statm = Path("/proc/self/statm")
    if statm.exists():
        return int(statm.read_text().split()[1]) * resource.getpagesize()
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else most * 1024
