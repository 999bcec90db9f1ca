"""`bertcli.Columns` that writes down, for each batch, who computed it, when, and how much memory that took."""

import json
import os
import re
from pathlib import Path
from time import time
from typing import Any

from bertcli import columns
from bertcli.engine.threads import thread_count

LOG = "BERTCLI_TEST_LOG"  # the folder; workers inherit it


class Logged(columns.Columns):
    """Writes a line in the file of its process."""

    def __call__(self, batch: Any) -> Any:
        begun = time()
        found = super().__call__(batch)
        line = {
            "pid": os.getpid(),
            "parent": os.getppid(),
            "begun": begun,
            "ended": time(),
            "rows": len(found["text"]),
            "opened": columns._loaded.cache_info().misses,
            "threads": thread_count(),
            "share": share(os.getpid()),
        }
        with open(Path(os.environ[LOG]) / str(os.getpid()), "a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")
        return found


def share(pid: int) -> int:
    """A process's share of the memory, in bytes: a page that n processes have counts 1/n in each."""
    text = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="utf-8")
    return 1024 * sum(int(size) for size in re.findall(r"^Pss: +(\d+) kB", text, re.MULTILINE))


def lines(folder: Path) -> list[dict[str, Any]]:
    """What all processes have written, whole lines only, in the order of time."""
    texts = [file.read_text(encoding="utf-8") for file in folder.iterdir()]
    every = [json.loads(line) for text in texts for line in text.splitlines(True) if line.endswith("\n")]
    return sorted(every, key=lambda line: float(line["ended"]))
