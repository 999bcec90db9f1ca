"""A text's vector is the same whatever it is batched with: on the bundled model, in a process as users start it.

It is the same to the last bit with both of OpenBLAS's kernels for today's x86-64; of [CLS] alone that is known of one.
The kernel is chosen when NumPy is loaded, so each has a process of its own.
"""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from bertcli.blas import processor

PROGRAM = """
import json, sys
import bertcli
import numpy as np
from bertcli.blas import kernel
from bertcli.ops import each, linear
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
scored = [record["loss"] for record in model.score(texts[:12])]
masked = model.fill_mask([text + " [MASK]" for text in texts[:12]])
for text, loss, record in zip(texts, scored, masked):
    (alone,) = model.score([text])
    (filled,) = model.fill_mask([text + " [MASK]"])
    pairs = zip(filled["masks"][0]["predictions"], record["masks"][0]["predictions"])
    apart = [abs(one["score"] - other["score"]) for one, other in pairs]
    worst["records"] = max(worst.get("records", 0), abs((alone["loss"] or 0) - (loss or 0)), *apart)
# TinyBERT's inner size: what OpenBLAS sums up at a time leaves a rest of it that several threads halve elsewhere
weight, x = (np.random.default_rng(0).normal(size=size).astype(np.float32) for size in ((312, 1200), (200, 1200)))
halves = {}
each(lambda rows: halves.update({rows.start: linear(x[rows], weight)}), [slice(0, 100), slice(100, 200)])
worst["odd"] = float(np.abs(linear(x, weight) - np.concatenate([halves[0], halves[100]])).max())
worst["columns"] = 0.0  # of a product: alone, few, many, in one block, in several; outputs that leave a rest, or none
cuts = (0, 1), (3, 2), (9, 7), (0, 15), (5, 16), (1, 31), (2, 128), (7, 304), (1, 305), (90, 609), (4, 616)
for outputs, inputs in ((2, 64), (12, 768), (64, 256), (256, 64), (312, 312), (768, 768), (3072, 768), (2048, 64)):
    weight, x = (np.random.default_rng(0).normal(size=(rows, inputs)).astype(np.float32) for rows in (outputs, 1300))
    whole = linear(x, weight)
    for first, count in cuts:
        apart = linear(x[first : first + count], weight) - whole[first : first + count]
        worst["columns"] = max(worst["columns"], float(np.abs(apart).max()))
json.dump({"kernel": kernel(), "worst": worst}, sys.stdout)
"""


@pytest.mark.parametrize("threads", ["1", "2"])
@pytest.mark.parametrize(("kernel", "feature"), [("Haswell", "avx2"), ("SkylakeX", "avx512vl")])
def test_the_same_vector_whatever_it_is_batched_with(kernel: str, feature: str, threads: str) -> None:
    if feature not in processor()[1]:
        pytest.skip(f"this processor has no {feature}")
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
        env={"OPENBLAS_CORETYPE": kernel, "OPENBLAS_NUM_THREADS": threads, "PATH": ""},
    )
    found = json.loads(done.stdout)
    if found["kernel"] != kernel:
        pytest.skip(f"this NumPy multiplies with {found['kernel']}; largest differences: {found['worst']}")
    assert found["worst"]["mean"] == 0
    assert found["worst"]["max"] == 0
    assert found["worst"]["odd"] == 0
    assert found["worst"]["cls"] <= 1e-6
    assert found["worst"]["records"] <= 1e-6
    if kernel == "Haswell":
        assert found["worst"]["cls"] == 0
        assert found["worst"]["records"] == 0
        assert found["worst"]["columns"] == 0
