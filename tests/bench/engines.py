"""The first result of each engine, in whole processes; how far int8 is from float32, and how much faster."""

import tempfile
from collections.abc import Iterator, Sequence
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import bertcli
from bench.machine import in_turn
from bench.processes import CLI, TEXT, whole
from bench.stream import texts_of

Record = dict[str, Any]
SESSION_PASS = "session of that file, one pass"
SESSION = """
import sys, numpy, onnxruntime
session = onnxruntime.InferenceSession(sys.argv[1], providers=["CPUExecutionProvider"])
ids = numpy.ones((1, 12), numpy.int64)
given = {"input_ids": ids, "attention_mask": ids, "token_type_ids": ids * 0}
print(session.run(None, {one.name: given[one.name] for one in session.get_inputs()})[0].argmax())
"""


def first_results(folder: Path, times: int) -> Iterator[Record]:
    """Whole processes: fill-mask by each engine, a session of the exported file and one pass."""
    arguments = ["-c", CLI, "fill-mask", "-m", str(folder), TEXT]
    runs = {"fill-mask, numpy": arguments}
    with tempfile.TemporaryDirectory() as made:
        file = Path(made) / "base.onnx"
        if find_spec("onnxruntime"):
            made_once = {
                "export": ["-c", CLI, "export", "-m", str(folder), "-o", str(file)],
                "fill-mask, onnx": [*arguments, "--engine", "onnx"],
                "fill-mask, onnx int8": [*arguments, "--engine", "onnx-int8"],
            }
            whole(made_once, 1)  # the exported file, and each engine's graph
            runs |= {name: how for name, how in made_once.items() if name != "export"}
            runs[SESSION_PASS] = ["-c", SESSION, str(file)]
        best = whole(runs, times)
    for name, found in best.items():
        record = {"what": name, **({"failed": True} if found is None else found.shown)}
        if found and (own := best["fill-mask, numpy"]):
            record["vs numpy"] = round(found.seconds / own.seconds, 2)
        yield record


def int8_accuracy(count: int, real: Path | None, more: Sequence[str]) -> Iterator[Record]:
    """int8 beside float32: cosines of vectors and speed, on the bundled models and `more`."""
    if not find_spec("onnxruntime"):
        return
    texts = texts_of(count) if real is None else real.read_text(encoding="utf-8").splitlines()
    for name in ("bert-mini-mlm", "bert-mini-sentiment", "bert-mini-sentence", *more):
        models = [bertcli.load(name, engine=engine) for engine in ("onnx", "onnx-int8")]
        one, other = (model.encode(texts, pooling="mean", normalize=True) for model in models)
        cosines = (one * other).sum(axis=1)
        record = {"what": name, "least cosine": f"{cosines.min():.5f}", "mean cosine": f"{cosines.mean():.5f}"}
        runs: dict[str, Any] = {
            ("float32" if one.other_engine is None else one.other_engine.precision): partial(
                one.encode, texts, pooling="mean", normalize=True
            )
            for one in models
        }
        best, _ = in_turn(runs, 2)
        record["times as fast"] = f"{best['float32'] / best['int8']:.2f}"
        yield record
