"""Memory that a batch leaves to the next one."""

import os
import platform
import subprocess
import sys

import pytest

FAULTS = """
import resource, sys
from threading import Thread
import numpy as np
import bertcli
from bertcli.engine.memory import one_arena
def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt
def several():
    return [np.ones(4 << 20, np.uint8) for _ in range(8)]
def batches():
    for _ in range(3): several()
    before = faults()
    for _ in range(20): several()
    print(faults() - before)
if "server" in sys.argv: one_arena()
if "model" in sys.argv: bertcli.load(text=False)
thread = Thread(target=batches)
thread.start()
thread.join()
"""


def faults(*what: str, **variables: str) -> int:
    """Pages that 20 batches in a thread get from the system, in a program that did `what` before."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MALLOC_")} | variables
    command = [sys.executable, "-c", FAULTS, *what]
    return int(subprocess.run(command, capture_output=True, text=True, check=True, env=environment).stdout)


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="another allocator")
def test_a_program_with_a_model_keeps_the_memory_of_a_batch_for_the_next_one() -> None:
    assert faults("model") < 20 < faults()
    assert faults("server", "model") < 20


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="another allocator")
def test_a_program_decides_by_itself_what_memory_it_keeps() -> None:
    assert faults("model", MALLOC_TRIM_THRESHOLD_="131072") > 20
