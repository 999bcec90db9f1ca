"""The README's figures of speed, measured in one run: its table, what it is of, and the sentence below it."""

from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from textwrap import wrap
from typing import Any

from bench.engines import SESSION_PASS, first_results
from bench.passes import passes
from bench.processes import HELP, NUMPY, PARAMS, PEER, SAMPLE, processes
from bench.stream import stream
from bertcli.doctor import examine
from bertcli.engine.blas import CPU_INFO

WIDTH = 120
SHAPES = ("(1, 16)", "(1, 128)", "(8, 128)", "(2, 512)")


def readme(folder: Path, quick: bool) -> Iterator[str]:
    """The lines, in Markdown. Everything has to be installed that bertcli is held against."""
    yield from wrap(
        "The best time of the other program divided by bertcli's (above 1 bertcli is faster), with a random BERT-base "
        f"in float32, all in one run on {processor()} (`python tests/bench --readme`).",
        WIDTH,
    )
    yield ""
    yield f"| | PyTorch {_release('torch')} (`transformers`) | ONNX Runtime {_release('onnxruntime')}, fused graph |"
    yield "|---|---|---|"
    of_shapes = {record["what"]: record for record in passes(folder, quick)}
    for shape in SHAPES:
        record, size = of_shapes[shape], shape.strip("()").replace(", ", " × ")
        yield _row(f"one forward call, {size} tokens", record["vs torch"], record["vs onnxruntime"])
    (texts,) = stream(folder, 120 if quick else 600, None)
    yield _row(
        "texts of mixed length, encoded",
        f"{texts['vs sentence-transformers']} (`sentence-transformers`)",
        f"{texts['vs onnxruntime']} (sorted, padded batches of 32)",
    )
    times = 2 if quick else 7
    of_processes = {record["what"]: record for record in processes(folder, times)}
    session = next(record for record in first_results(folder, times) if record["what"] == SESSION_PASS)
    yield _row(
        "`fill-mask`, whole process",
        f"{of_processes[PEER]['vs pipeline']} (`transformers.pipeline`)",
        f"{session['vs numpy']} (session opened, one pass)",
    )
    yield ""
    times_numpy = [of_processes[name]["times numpy"] for name in (HELP, PARAMS, SAMPLE)]
    sentence = (
        "Where `import numpy` takes {} ms, `bertcli --help` takes {} times as long, `params --variant large` {} times "
        "and `fill-mask` with the bundled model {} times, with {} seconds of processor time a second."
    )
    busy = of_processes[SAMPLE]["processor over wall"]
    yield from wrap(sentence.format(of_processes[NUMPY]["ms"], *times_numpy, busy), WIDTH)


def processor() -> str:
    """The processor and how many of its cores are used, with OpenBLAS's kernel for it."""
    said: dict[str, str] = {}
    for line in Path(CPU_INFO).read_text(encoding="utf-8").splitlines():
        name, _, value = line.partition(":")
        said.setdefault(name.strip(), value.strip())
    found = examine()
    model = f"{said['model name']} (family {said['cpu family']}, model {said['model']})"
    return f"{found['threads']} cores of {model} with OpenBLAS's {found['kernel']} kernel"


def _release(package: str) -> str:
    return ".".join(version(package).split("+")[0].split(".")[:2])


def _row(what: str, *values: Any) -> str:
    return f"| {what} | {' | '.join(map(str, values))} |"
