"""A text's vector is the same whatever it is batched with: on the bundled model, in a process as users start it.

With OpenBLAS's AVX-512 kernel it is the same to the last bit, but for [CLS] alone; other kernels round a product's
columns by their place. In this process NumPy came before bertcli, so the kernel would not be the one users get.
"""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

PROGRAM = """
import json, sys
import bertcli
import numpy as np
from bertcli.blas import AVX512, processor
model = bertcli.load()
words = "the old man and a small dog went home through rain because it was late in autumn".split()
texts = [" ".join(words[i % 5 : i % 5 + 1 + i * 7 % 11] * (1 + i % 4)) for i in range(40)] + ["", "a"]
worst = {}
for pooling in ("mean", "max", "cls"):
    alone = np.concatenate([model.encode([text], pooling=pooling) for text in texts])
    order = np.random.default_rng(0).permutation(len(texts))
    for batch_tokens in (None, 1, 50, 100_000):
        together = model.encode([texts[i] for i in order], pooling=pooling, batch_tokens=batch_tokens)
        worst[pooling] = max(worst.get(pooling, 0), float(np.abs(together - alone[order]).max()))
json.dump({"avx512": AVX512 <= processor()[1], "worst": worst}, sys.stdout)
"""


@pytest.mark.parametrize("threads", ["1", "2"])
def test_the_same_vector_whatever_it_is_batched_with(threads: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        capture_output=True,
        text=True,
        check=True,
        env={"OPENBLAS_NUM_THREADS": threads, "PATH": ""},
    )
    found = json.loads(done.stdout)
    if not found["avx512"]:
        pytest.skip(f"no AVX-512 here; largest differences: {found['worst']}")
    assert found["worst"]["mean"] == 0
    assert found["worst"]["max"] == 0
    assert found["worst"]["cls"] <= 1e-6
