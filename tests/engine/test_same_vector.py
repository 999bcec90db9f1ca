"""A text's vector changes by at most a millionth of its largest number, whatever it is batched with.

The vector of a single token, which averages nothing, changes by at most two millionths: float32's own rounding in
products of different sizes, which grows with the layers (measured on the bundled model: 1.1).

On the bundled model, in a process as users start it, with both of OpenBLAS's kernels for today's x86-64: the kernel is
chosen when NumPy is loaded, so each has a process of its own.

All of tests/engine, tests/tasks/test_batches.py and tests/test_model.py passed in November 2026 on an Intel processor
with AMX, with the kernels Haswell, Prescott, Nehalem, SkylakeX and the one that the library chooses there: NumPy 2.1.3
(OpenBLAS 0.3.27) and 2.5.5 (0.3.34) from PyPI; with Haswell, Prescott and its own choice NumPy 2.2.4 of Debian 13 on
openblas-openmp (0.3.29). NumPy 2.4.6 (0.3.31) runs every day. Every run says what it ran on.
"""

import json
import os
import subprocess
import sys

import pytest

from bertcli.engine.blas import processor

PROGRAM = """
import json, sys
import bertcli
import numpy as np
from bertcli.engine.blas import kernel
from bertcli.engine.threads import set_thread_count
from bertcli.network.ops import linear
model = bertcli.load()
words = "the old man and a small dog went home through rain because it was late in autumn".split()
texts = [" ".join(words[i % 5 : i % 5 + 1 + i * 7 % 11] * (1 + i % 4)) for i in range(40)] + ["", "a"]
worst = {}

def compare(what, found, expected):
    change = np.abs(found - expected).max(axis=-1) / np.abs(expected).max(axis=-1)
    worst[what] = max(worst.get(what, 0), float(change.max()))

order = np.random.default_rng(0).permutation(len(texts))
for pooling in ("mean", "max", "cls"):
    alone = np.concatenate([model.encode([text], pooling=pooling) for text in texts])
    for threads, batch_tokens in ((None, None), (1, 1), (2, 50), (3, 100_000)):
        set_thread_count(threads)
        together = model.encode([texts[i] for i in order], pooling=pooling, batch_tokens=batch_tokens)
        compare(pooling, together, alone[order])
again = model.encode([texts[i] for i in order], pooling=pooling, batch_tokens=batch_tokens)
assert again.tobytes() == together.tobytes()
set_thread_count(None)
scored = np.array([[record["loss"] or 0] for record in model.score(texts[:12])])
compare("loss", np.array([[model.score([text])[0]["loss"] or 0] for text in texts[:12]]) + 1, scored + 1)
cuts = (0, 1), (3, 2), (9, 7), (0, 15), (5, 16), (1, 31), (2, 128), (7, 304), (1, 305), (90, 609), (4, 616)
for outputs, inputs in ((2, 64), (12, 768), (64, 256), (312, 1200), (768, 768), (3072, 768), (768, 3072)):
    weight, x = (np.random.default_rng(0).normal(size=(rows, inputs)).astype(np.float32) for rows in (outputs, 1300))
    whole = linear(x, weight)
    for first, count in cuts:
        compare("product", linear(x[first : first + count], weight).ravel(), whole[first : first + count].ravel())
json.dump({"kernel": kernel(), "worst": worst}, sys.stdout)
"""


# OpenBLAS has one thread with the one kernel and two with the other; how many threads bertcli has, the program varies.
@pytest.mark.parametrize(
    ("kernel", "feature", "threads"), [("Haswell", "avx2", "1"), ("SkylakeX", "avx512vl", "2")], ids=str
)
def test_same_vector_whatever_it_is_batched_with(kernel: str, feature: str, threads: str) -> None:
    """Where the processor or its library has no such kernel, the one that multiplies instead is judged."""
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": threads}
    if feature in processor()[1]:
        environment["OPENBLAS_CORETYPE"] = kernel
    command = [sys.executable, "-c", PROGRAM]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=300, env=environment)
    found = json.loads(done.stdout)
    assert found["worst"].keys() == {"mean", "max", "cls", "loss", "product"}
    assert found["worst"].pop("cls") <= 2e-6, found
    assert max(found["worst"].values()) <= 1e-6, found
