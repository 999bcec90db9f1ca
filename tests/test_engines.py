"""The examples on the engines themselves, on this machine: every row comes once, as `bertcli encode` computes it.

They take hundreds of megabytes and minutes, so a plain run leaves them out:

    .venv/bin/pip install -e ".[test,engines]" && .venv/bin/pytest -m engines

Ray and Spark lose a worker in the middle, and Ray a node. Spark needs Java 17.
"""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from multiprocessing import get_context
from multiprocessing.synchronize import Barrier
from pathlib import Path
from threading import Thread
from time import monotonic, sleep
from typing import Any

import numpy as np
import pytest
from helpers import logged_columns
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
    """A folder of 8 Parquet files with ROWS texts in all, one of which is null."""
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    folder = tmp_path_factory.mktemp("source")
    texts: list[str | None] = [
        " ".join(WORDS[(i * 7 + j * j) % len(WORDS)] for j in range(3 + i % 7)) for i in range(ROWS)
    ]
    texts[ROWS // 3] = None
    for number, part in enumerate(np.array_split(np.arange(ROWS), 8)):
        table = arrow.table({"id": part, "text": [texts[i] for i in part]})
        parquet.write_table(table, folder / f"{number}.parquet")
    return folder


@pytest.fixture(scope="module")
def expected(source: Path, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The vectors that the command computes, zeros for the text that is null."""
    target = tmp_path_factory.mktemp("expected") / "vectors.npy"
    command = [sys.executable, "-m", "bertcli", "encode", "-m", MODEL, "--keep-going", "-o", str(target)]
    begun = monotonic()
    subprocess.run([*command, "-i", str(source / "*.parquet")])  # fails, since a row did; the file is there
    print(f"\nbertcli encode, whole command: {ROWS / (monotonic() - begun):,.0f} rows/s")
    return np.load(target)


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where `Logged` writes, which the examples use here; workers find it and these modules."""
    folder = tmp_path / "log"
    folder.mkdir()
    path = os.pathsep.join([str(HERE), str(HERE / "examples"), str(HERE.parent)])
    for name, value in (("PYTHONPATH", path), ("PYSPARK_PYTHON", sys.executable), (logged_columns.LOG, str(folder))):
        monkeypatch.setenv(name, value)
    monkeypatch.syspath_prepend(str(HERE / "examples"))
    monkeypatch.setattr(bertcli, "Columns", logged_columns.Logged, raising=False)
    return folder


def check(target: Path, expected: Any, log: Path) -> None:
    """Every row is there once with the command's vector, and each process has opened the model once."""
    parquet = pytest.importorskip("pyarrow.parquet")
    table = parquet.read_table(target).sort_by("id")
    assert table["id"].to_pylist() == list(range(ROWS))
    missing = [i for i, vector in enumerate(table["embedding"]) if not vector.is_valid]
    assert missing == [ROWS // 3]
    assert "is null, which is not a text" in table["embedding_error"][ROWS // 3].as_py()
    found = table.filter(table["embedding"].is_valid())["embedding"].combine_chunks().flatten().to_numpy()
    assert np.abs(found.reshape(ROWS - 1, -1) - np.delete(expected, missing, axis=0)).max() < 1e-6
    lines = logged_columns.lines(log)
    assert {line["opened"] for line in lines} == {1}
    workers, seconds = len({line["pid"] for line in lines}), lines[-1]["ended"] - min(line["begun"] for line in lines)
    print(f"\n{workers} processes, {sum(line['rows'] for line in lines) / seconds:,.0f} rows/s between first and last")


class Accident(Thread):
    """Once so many batches are there, does something to the process that has written the last one."""

    def __init__(self, log: Path, batches: int, action: Callable[[int], object]) -> None:
        super().__init__(daemon=True)
        self.log, self.batches, self.action, self.pid = log, batches, action, 0

    def run(self) -> None:
        end = monotonic() + PATIENCE
        while monotonic() < end and len(lines := logged_columns.lines(self.log)) < self.batches:
            sleep(0.05)
        self.pid = lines[-1]["pid"]
        self.action(self.pid)


def killed(pid: int) -> None:
    os.kill(pid, signal.SIGKILL)


# ---------------------------------------------------------------------------------------------------------------- ray


@pytest.fixture
def cluster(log: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Ray on two nodes of this machine, each with a raylet of its own; the second may be stopped."""
    monkeypatch.setenv("RAY_worker_niceness", "0")  # else workers wait while anything else runs here
    ray, utils, _ = (
        pytest.importorskip("ray"),
        pytest.importorskip("ray.cluster_utils"),
        pytest.importorskip("ray.data"),
    )
    size = {"num_cpus": 4, "object_store_memory": 200 << 20}
    found = utils.Cluster(initialize_head=True, head_node_args={**size, "include_dashboard": False})
    try:
        second = found.add_node(**size)
        ray.init(address=found.address, log_to_driver=False, logging_level="error")
        ray.data.DataContext.get_current().scheduling_strategy = "SPREAD"  # a worker on each
        yield lambda: found.remove_node(second, allow_graceful=False)
    finally:
        ray.shutdown()
        found.shutdown()


def test_engines_ray_survives_a_killed_worker_and_a_stopped_node(
    source: Path, expected: Any, log: Path, cluster: Callable[[], None], tmp_path: Path
) -> None:
    kill = Accident(log, ROWS // 6000, killed)
    stop = Accident(log, ROWS // 2500, lambda pid: cluster())
    kill.start()
    stop.start()
    import_module("ray_batches").embed(MODEL, str(source), str(tmp_path / "out"), workers=2)
    assert kill.pid
    assert not stop.is_alive()
    lines = logged_columns.lines(log)
    assert len({line["pid"] for line in lines}) >= 3  # two at first, and one that took over
    assert len({line["parent"] for line in lines}) == 2  # the raylets: both nodes have worked
    assert {line["threads"] for line in logged_columns.lines(log)} == {1}
    check(tmp_path / "out", expected, log)


# -------------------------------------------------------------------------------------------------------------- spark


def test_engines_spark_survives_a_killed_worker(source: Path, expected: Any, log: Path, tmp_path: Path) -> None:
    sql, spark_home = pytest.importorskip("pyspark.sql"), Path(pytest.importorskip("pyspark").__file__).parent
    os.environ["SPARK_HOME"] = str(spark_home)
    builder = sql.SparkSession.builder.master("local-cluster[2,1,1024]")  # two executors, each with one core
    for name, value in (("driver.host", "127.0.0.1"), ("ui.enabled", "false"), ("executor.memory", "512m")):
        builder = builder.config(f"spark.{name}", value)
    spark = builder.config("spark.sql.execution.arrow.maxRecordsPerBatch", "1024").getOrCreate()
    try:
        kill = Accident(log, ROWS // 6000, killed)
        kill.start()
        import_module("spark_batches").embed(spark, MODEL, str(source), str(tmp_path / "out"))
    finally:
        spark.stop()
    assert kill.pid
    assert {line["threads"] for line in logged_columns.lines(log)} == {1}
    check(tmp_path / "out", expected, log)


# --------------------------------------------------------------------------------------------------- dask and datasets


def test_engines_dask(source: Path, expected: Any, log: Path, tmp_path: Path) -> None:
    pytest.importorskip("dask.dataframe")
    import_module("dask_batches").embed(MODEL, str(source), str(tmp_path / "out"))
    check(tmp_path / "out", expected, log)


def test_engines_datasets(
    source: Path, expected: Any, log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("datasets").config.HF_DATASETS_CACHE = tmp_path / "cache"
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    import_module("datasets_batches").embed(MODEL, str(source / "*.parquet"), str(tmp_path / "out.parquet"), workers=2)
    assert {line["threads"] for line in logged_columns.lines(log)} == {1}
    check(tmp_path / "out.parquet", expected, log)
    assert len(list(log.iterdir())) == 2


# ------------------------------------------------------------------------------------------------------------- memory


def encoded(model: str, done: Barrier) -> None:
    """What a worker does: a batch, then wait."""
    bertcli.Columns("encode", model)({"text": ["the cat sat on the mat"] * 8})
    done.wait(PATIENCE)  # measure
    done.wait(PATIENCE)


def test_engines_workers_share_the_weights(tmp_path: Path) -> None:
    sizes = {"hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12, "intermediate_size": 3072}
    folder = make(tmp_path, sizes=sizes)  # as BERT-base
    weights, totals, context = (folder / "model.safetensors").stat().st_size, [], get_context("spawn")
    for count in (1, 3):
        done = context.Barrier(count + 1)
        workers = [context.Process(target=encoded, args=(str(folder), done)) for _ in range(count)]
        for worker in workers:
            worker.start()
        done.wait(PATIENCE)
        totals.append(sum(logged_columns.share(worker.pid or 0) for worker in workers))
        done.wait(PATIENCE)
        for worker in workers:
            worker.join()
    print(f"\nweights {weights >> 20} MB; one worker has {totals[0] >> 20} MB, three {totals[1] >> 20} MB together")
    assert totals[0] > weights
    assert totals[1] - totals[0] < weights / 2
