"""The engine onnx beside NumPy and beside ONNX Runtime on its own fused graph; exports; what int8 costs in accuracy."""

import csv
import tempfile
from collections.abc import Iterator, Sequence
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

import bertcli
from bench.machine import compared, in_turn
from bench.passes import SHAPES
from bench.peers import onnx_file, onnx_forward
from bench.processes import CLI, TEXT, whole
from bench.stream import padded, texts_of

Record = dict[str, Any]
SESSION_PASS = "session of that file, one pass"
SESSION = """
import sys, numpy, onnxruntime
session = onnxruntime.InferenceSession(sys.argv[1], providers=["CPUExecutionProvider"])
ids = numpy.ones((1, 12), numpy.int64)
given = {"input_ids": ids, "attention_mask": ids, "token_type_ids": ids * 0}
print(session.run(None, {one.name: given[one.name] for one in session.get_inputs()})[0].argmax())
"""


def engines(folder: Path, quick: bool) -> Iterator[Record]:
    """Whole forward calls, warm: the engine in float32 and int8, ONNX Runtime on a fused graph, NumPy."""
    if not find_spec("onnxruntime"):
        return
    calls: dict[str, Any] = {
        "engine onnx": bertcli.load(folder, engine="onnx", text=False).forward,
        "int8": bertcli.load(folder, engine="onnx-int8", text=False).forward,
        "numpy": bertcli.load(folder, text=False).forward,
    }
    if graph := onnx_file(folder):
        run = onnx_forward(graph)
        calls["fused graph"] = lambda ids: run(ids, np.ones_like(ids))
    for batch, tokens in SHAPES:
        ids = np.random.default_rng(0).integers(5, 30000, (batch, tokens))
        times = max(3, min(15, 6000 // (batch * tokens))) // (3 if quick else 1)
        best, _ = in_turn({name: partial(call, ids) for name, call in calls.items()}, max(1, times))
        yield compared(f"({batch}, {tokens})", best)


def engines_stream(folder: Path, count: int) -> Iterator[Record]:
    """Mean-pooled vectors of mixed texts; ONNX Runtime alone gets them sorted and padded, 32 at a time."""
    if not find_spec("onnxruntime"):
        return
    texts, own = texts_of(count), bertcli.load(folder)
    models = {
        "engine onnx": bertcli.load(folder, engine="onnx"),
        "int8": bertcli.load(folder, engine="onnx-int8"),
        "numpy": own,
    }
    runs = {name: partial(one.encode, texts, pooling="mean", normalize=False) for name, one in models.items()}
    if graph := onnx_file(folder):
        tokens = [one.ids for one in own.tokenizer.encode(texts, max_length=512)]
        runs["fused graph"] = partial(padded, onnx_forward(graph), tokens)
    best, _ = in_turn(runs, 2)
    yield compared(f"{count} texts", best, 1, "s")


def first_results(folder: Path, times: int) -> Iterator[Record]:
    """Whole processes: fill-mask by each engine, an export, a session of the exported file and one pass.

    An export's memory is that of its own: the mapped weights that it reads are beside it.
    """
    arguments = ["-c", CLI, "fill-mask", "-m", str(folder), TEXT]
    runs = {"fill-mask, numpy": arguments}
    with tempfile.TemporaryDirectory() as made:
        file = Path(made) / "base.onnx"
        if find_spec("onnxruntime"):
            export = ["-c", CLI, "export", "-m", str(folder), "-o", str(file)]
            graphs = {
                "export, unchecked": [*export, "--no-verify"],
                "export": export,
                "fill-mask, onnx": [*arguments, "--engine", "onnx"],  # this one and the next make their graphs
                "fill-mask, onnx int8": [*arguments, "--engine", "onnx-int8"],
            }
            for name, found in whole(graphs, 1).items():
                if found and name.startswith("export"):
                    size = file.stat().st_size / 2**20
                    yield {"what": name, **found.shown, "MiB": round(size), "of the file": round(found.own / size, 2)}
            runs |= {name: graphs[name] for name in graphs if name.startswith("fill-mask")}
            runs[SESSION_PASS] = ["-c", SESSION, str(file)]
        best = whole(runs, times)
    for name, found in best.items():
        record = {"what": name, **({"failed": True} if found is None else found.shown)}
        if found and (own := best["fill-mask, numpy"]):
            record["vs numpy"] = round(found.seconds / own.seconds, 2)
        yield record


def int8_accuracy(count: int, real: Path | None, labeled: Path | None, more: Sequence[str]) -> Iterator[Record]:
    """int8 beside float32: cosines of vectors and speed, on the bundled models and `more`; labels of a .tsv alike."""
    if not find_spec("onnxruntime"):
        return
    rows: list[list[str]] = []
    if labeled is not None:
        with labeled.open(encoding="utf-8", newline="") as file:
            rows = [*csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE)]
    texts = [row[1] for row in rows] or texts_of(count)
    if real is not None:
        texts = real.read_text(encoding="utf-8").splitlines()
    for name in ("bert-mini-mlm", "bert-mini-sentiment", "bert-mini-sentence", *more):
        models = [bertcli.load(name, engine=engine) for engine in ("onnx", "onnx-int8")]
        one, other = (model.encode(texts, pooling="mean", normalize=True) for model in models)
        cosines = (one * other).sum(axis=1)
        record = {"what": name, "least cosine": f"{cosines.min():.5f}", "mean cosine": f"{cosines.mean():.5f}"}
        runs: dict[str, Any] = {
            ("float32" if one.computing is None else one.computing.precision): partial(
                one.encode, texts, pooling="mean", normalize=True
            )
            for one in models
        }
        best, _ = in_turn(runs, 2)
        record["times as fast"] = f"{best['float32'] / best['int8']:.2f}"
        if rows and name == "bert-mini-sentiment":
            labels = [[found["labels"][0]["label"] for found in model.classify(texts)] for model in models]
            truth = [("negative", "positive")[int(row[0])] for row in rows]
            right = [np.mean([a == b for a, b in zip(found, truth, strict=True)]) for found in labels]
            record |= {"float32 right": f"{right[0]:.2%}", "int8 right": f"{right[1]:.2%}"}
            record["same label"] = f"{np.mean([a == b for a, b in zip(*labels, strict=True)]):.2%}"
        yield record
