"""The examples on the engines themselves, on this machine: every row comes once, as `bertcli encode` computes it.

They take hundreds of megabytes and minutes, so a plain run leaves them out:

    .venv/bin/pip install -e ".[test,engines]" && .venv/bin/pytest -m engines

Spark needs Java 17.
"""

import os
import re
import subprocess
import sys
from importlib import import_module
from multiprocessing import get_context
from multiprocessing.synchronize import Barrier
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.checkpoints import make

import bertcli

pytestmark = [pytest.mark.engines, pytest.mark.filterwarnings("default")]
HERE = Path(__file__).resolve().parent
MODEL = "bert-mini-mlm"
ROWS = int(os.environ.get("BERTCLI_TEST_ROWS", "20000"))
WORDS = "the cat sat on a mat with tea and some old books in rainy london while dogs ran far away".split()  # noqa: SIM905
PATIENCE = 300.0  # seconds that the first batches may take


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of 8 Parquet files with ROWS texts in all."""
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    folder = tmp_path_factory.mktemp("source")
    texts = [" ".join(WORDS[(i * 7 + j * j) % len(WORDS)] for j in range(3 + i % 7)) for i in range(ROWS)]
    for number, part in enumerate(np.array_split(np.arange(ROWS), 8)):
        table = arrow.table({"id": part, "text": [texts[i] for i in part]})
        parquet.write_table(table, folder / f"{number}.parquet")
    return folder


@pytest.fixture(scope="module")
def expected(source: Path, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The vectors that the command computes."""
    target = tmp_path_factory.mktemp("expected") / "vectors.npy"
    command = [sys.executable, "-m", "bertcli", "encode", "-m", MODEL, "-o", str(target)]
    subprocess.run([*command, "-i", str(source / "*.parquet")], check=True)
    return np.load(target)


@pytest.fixture(autouse=True)
def _examples(monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers find the examples and this package."""
    path = os.pathsep.join([str(HERE), str(HERE / "examples"), str(HERE.parent)])
    monkeypatch.setenv("PYTHONPATH", path)
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    monkeypatch.syspath_prepend(str(HERE / "examples"))


def check(target: Path, expected: Any) -> None:
    """Every row is there once with the command's vector."""
    parquet = pytest.importorskip("pyarrow.parquet")
    table = parquet.read_table(target).sort_by("id")
    assert table["id"].to_pylist() == list(range(ROWS))
    vectors = table["embedding"].combine_chunks().flatten().to_numpy().reshape(ROWS, -1)
    assert np.abs(vectors - expected).max() < 1e-6


def test_engines_ray(source: Path, expected: Any, tmp_path: Path) -> None:
    ray = pytest.importorskip("ray")
    ray.init(num_cpus=4, include_dashboard=False, log_to_driver=False)
    try:
        import_module("ray_batches").embed(MODEL, str(source), str(tmp_path / "out"), workers=2)
    finally:
        ray.shutdown()
    check(tmp_path / "out", expected)


def test_engines_spark(source: Path, expected: Any, tmp_path: Path) -> None:
    sql, spark_home = pytest.importorskip("pyspark.sql"), Path(pytest.importorskip("pyspark").__file__).parent
    os.environ["SPARK_HOME"] = str(spark_home)
    builder = sql.SparkSession.builder.master("local-cluster[2,1,1024]")  # two executors, each with one core
    for name, value in (("driver.host", "127.0.0.1"), ("ui.enabled", "false"), ("executor.memory", "512m")):
        builder = builder.config(f"spark.{name}", value)
    spark = builder.getOrCreate()
    try:
        import_module("spark_batches").embed(spark, MODEL, str(source), str(tmp_path / "out"))
    finally:
        spark.stop()
    check(tmp_path / "out", expected)


def test_engines_dask(source: Path, expected: Any, tmp_path: Path) -> None:
    pytest.importorskip("dask.dataframe")
    import_module("dask_batches").embed(MODEL, str(source), str(tmp_path / "out"))
    check(tmp_path / "out", expected)


def test_engines_datasets(source: Path, expected: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("datasets").config.HF_DATASETS_CACHE = tmp_path / "cache"
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    import_module("datasets_batches").embed(MODEL, str(source / "*.parquet"), str(tmp_path / "out.parquet"), workers=2)
    check(tmp_path / "out.parquet", expected)


# ------------------------------------------------------------------------------------------------------------- memory


def encoded(model: bertcli.Model, done: Barrier) -> None:
    """What a worker does: a batch, then wait."""
    model.encode(["the cat sat on the mat"] * 8)
    done.wait(PATIENCE)  # measure
    done.wait(PATIENCE)


def memory_share(pid: int) -> int:
    """A process's share of the memory, in bytes: a page that n processes have counts 1/n in each."""
    text = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="utf-8")
    return 1024 * sum(int(size) for size in re.findall(r"^Pss: +(\d+) kB", text, re.MULTILINE))


def test_engines_workers_share_the_weights(tmp_path: Path) -> None:
    sizes = {"hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12, "intermediate_size": 3072}
    folder = make(tmp_path, sizes=sizes)  # as BERT-base
    model = bertcli.load(folder)
    weights, totals, context = (folder / "model.safetensors").stat().st_size, [], get_context("spawn")
    for count in (1, 3):
        done = context.Barrier(count + 1)
        workers = [context.Process(target=encoded, args=(model, done)) for _ in range(count)]
        for worker in workers:
            worker.start()
        done.wait(PATIENCE)
        totals.append(sum(memory_share(worker.pid or 0) for worker in workers))
        done.wait(PATIENCE)
        for worker in workers:
            worker.join()
    print(f"\nweights {weights >> 20} MB; one worker has {totals[0] >> 20} MB, three {totals[1] >> 20} MB together")
    assert totals[0] > weights
    assert totals[1] - totals[0] < weights / 2
