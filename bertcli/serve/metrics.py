"""What has been served, as Prometheus reads it, with the names of text-embeddings-inference."""

import resource
import sys
from collections import Counter
from pathlib import Path

BOUNDS = (0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 60.0)  # seconds
TOKENS = (8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 32768)
HISTOGRAMS = {
    "te_request_duration": ("Seconds a request took.", BOUNDS),
    "te_request_tokenization_duration": ("Seconds until a request's texts were tokens.", BOUNDS),
    "te_request_queue_duration": ("Seconds a request waited for its turn.", BOUNDS),
    "te_request_inference_duration": ("Seconds of the batches that a request was in.", BOUNDS),
    "te_request_input_length": ("Tokens of a text.", TOKENS),
    "te_batch_next_size": ("Texts of a batch.", TOKENS),
    "te_batch_next_tokens": ("Tokens of a batch.", TOKENS),
}
COUNTERS = {
    "te_request_count": ("Requests.", "method"),
    "te_request_success": ("Requests that were answered.", "method"),
    "te_request_failure": ("Requests that were refused or failed.", "err"),
    "bertcli_truncated_total": ("Texts that were cut.", ""),
}


class Metrics:
    """Counts and histograms; `text` shows them."""

    def __init__(self) -> None:
        self._counts: dict[str, Counter[str]] = {name: Counter() for name in COUNTERS}
        self._below = {name: [0] * (len(bounds) + 1) for name, (_, bounds) in HISTOGRAMS.items()}
        self._sums = dict.fromkeys(HISTOGRAMS, 0.0)

    def count(self, name: str, label: str = "", by: int = 1) -> None:
        self._counts[name][label] += by

    def observe(self, name: str, value: float) -> None:
        bounds = HISTOGRAMS[name][1]
        place = next((place for place, bound in enumerate(bounds) if value <= bound), len(bounds))
        self._below[name][place] += 1
        self._sums[name] += value

    def text(self, queued: int) -> str:
        """All of them, with the number of requests that wait, and the memory of this process."""
        lines = []
        for name, (help, label) in COUNTERS.items():
            lines += [f"# HELP {name} {help}", f"# TYPE {name} counter"]
            counts = self._counts[name] if label else self._counts[name] or {"": 0}
            lines += [
                f'{name}{{{label}="{value}"}} {count}' if label else f"{name} {count}"
                for value, count in counts.items()
            ]
        for name, (help, bounds) in HISTOGRAMS.items():
            lines += [f"# HELP {name} {help}", f"# TYPE {name} histogram"]
            below = 0
            for bound, count in zip((*bounds, "+Inf"), self._below[name], strict=True):
                below += count
                lines.append(f'{name}_bucket{{le="{bound}"}} {below}')
            lines += [f"{name}_sum {self._sums[name]}", f"{name}_count {below}"]
        gauges = {
            "te_queue_size": ("Requests that wait.", queued),
            "process_resident_memory_bytes": ("Memory.", resident()),
        }
        for name, (help, value) in gauges.items():
            lines += [f"# HELP {name} {help}", f"# TYPE {name} gauge", f"{name} {value}"]
        return "\n".join(lines) + "\n"


def resident() -> int:
    """Bytes of this process in memory; where the system does not say it, the most that there were."""
    statm = Path("/proc/self/statm")
    if statm.exists():
        return int(statm.read_text().split()[1]) * resource.getpagesize()
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else most * 1024
