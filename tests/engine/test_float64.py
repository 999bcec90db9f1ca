"""No result needs a product of float64 matrices by BLAS: some of its kernels end the process (engine/float64.py)."""

import json
import platform
import signal
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from bertcli.engine import blas
from bertcli.engine.float64 import product, vector_product

TESTS = Path(__file__).parents[1]
pytestmark = pytest.mark.skipif(
    platform.machine() != "x86_64" or sys.platform != "linux" or blas.function("cblas_dgemm") is None,
    reason="the play changes OpenBLAS' code on x86-64 Linux",
)
SENTENCES = ["Hot tea", "Cold tea", "Warm milk", "A fast car", "A slow bus", "An old train", "Green tea", "A new car"]


def poisoned(folder: Path, *arguments: str) -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-m", "helpers.poisoned", *arguments]
    return subprocess.run(command, cwd=TESTS, capture_output=True, check=False)


def test_the_play_ends_a_process_at_a_float64_product(tmp_path: Path) -> None:
    """Else the next test would say nothing."""
    assert poisoned(tmp_path).returncode == -signal.SIGTRAP


def test_no_command_multiplies_float64_matrices_by_blas(tmp_path: Path) -> None:
    def write(name: str, *lines: str) -> str:
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        return str(path)

    labels = ["positive", "negative"]
    rows = [f"{text} {number},{labels[number % 2]}" for number in range(3) for text in SENTENCES]
    table = write("labelled.csv", "text,label", *rows)
    pairs = write("sts.csv", "text,text_pair,score", *(f"{a},{b},{len(a)}" for a, b in pairwise(SENTENCES)))
    write("beir/corpus.jsonl", *(json.dumps({"_id": str(i), "text": text}) for i, text in enumerate(SENTENCES)))
    write("beir/queries.jsonl", *(json.dumps({"_id": f"q{i}", "text": text}) for i, text in enumerate(SENTENCES[:3])))
    (tmp_path / "beir" / "qrels").mkdir()
    write("beir/qrels/test.tsv", "query-id\tcorpus-id\tscore", *(f"q{i}\t{i + 1}\t1" for i in range(3)))
    vectors = str(tmp_path / "v.npy")
    texts = write("texts.txt", *SENTENCES)
    many = write("many.txt", *(f"{text} {number}" for number in range(200) for text in SENTENCES))
    commands = [
        ["encode", "-i", texts, "-o", vectors],
        ["search", *SENTENCES[:3], "--in", vectors],
        ["search", "tea", "--in", vectors, "--format", "json"],
        ["similarity", *SENTENCES],
        ["similarity", "-i", many, "-o", str(tmp_path / "s.jsonl")],
        ["probe", "-i", table],
        ["evaluate", table],
        ["evaluate", pairs],
        ["evaluate", str(tmp_path / "beir")],
        ["neighbors", "tea"],
        ["heads", "Hot tea with [MASK]."],
        ["lens", "Hot [MASK]."],
        ["explain", "Hot tea was a joy."],
        ["patch", "Hot [MASK].", "Cold [MASK]."],
        ["fill-mask", "Hot [MASK]."],
        ["score", "Hot tea."],
        ["trace", "Hot tea.", "--stats"],
    ]
    done = poisoned(tmp_path, json.dumps(commands))
    assert done.returncode == 0, done.stderr.decode()[-2000:]


@pytest.mark.parametrize(
    "shapes", [((3, 7), (5, 7)), ((300, 129), (400, 129)), ((2, 30, 64), (2, 900, 64)), ((0, 4), (3, 4))]
)
def test_products_of_vectors_are_those_of_float64(shapes: tuple[tuple[int, ...], tuple[int, ...]]) -> None:
    random = np.random.default_rng(0)
    x, y = (random.standard_normal(shape).astype(np.float32) for shape in shapes)
    expected = np.einsum("...nk,...mk->...nm", x.astype(float), y.astype(float))
    lengths = np.linalg.norm(x, axis=-1)[..., None] * np.linalg.norm(y, axis=-1)[..., None, :]
    found = vector_product(x, y)
    assert found.dtype == np.float64
    assert found.shape == expected.shape
    assert (np.abs(found - expected) <= 2e-7 * lengths).all()
    np.testing.assert_allclose(product(x, y.swapaxes(-1, -2)), expected, rtol=1e-13, atol=1e-13)
