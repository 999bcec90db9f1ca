"""Which engine for which call: short texts, growth with tokens and texts.

Models of random weights: MiniLM's sizes (six layers, 384 wide), and BERT-base.
"""

from collections.abc import Callable, Iterator
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

import bertcli
from bench.peers import minilm_checkpoint
from bertcli.engine.packing import Packed, pack

Record = dict[str, Any]
ONE, THREE = (10,), (4, 10, 15)  # tokens of short texts
LENGTHS = (16, 64, 128, 256, 512)  # of one text
COUNTS = (1, 2, 4, 8, 16, 32, 64)  # texts of 32 tokens


class Text:
    """A text of so many tokens, as `pack` takes it."""

    def __init__(self, tokens: int) -> None:
        self.ids = [*range(5, 5 + tokens)]
        self.segments = [0] * tokens


def batch_of(*lengths: int) -> Packed:
    return pack([Text(length) for length in lengths])


def best_of(run: Callable[[], Any], seconds: float) -> float:
    """The fastest of as many calls in a row as fit into so many seconds: engines that take turns disturb each other."""
    run()
    best, end = float("inf"), perf_counter() + seconds
    while perf_counter() < end:
        start = perf_counter()
        run()
        best = min(best, perf_counter() - start)
    return best


def short_calls(seconds: float) -> Iterator[Record]:
    """A pass of one short text and of three in each engine, and a whole `encode`."""
    folder = minilm_checkpoint()
    own = bertcli.load(folder)
    passes: dict[str, Callable[[Packed], Any]] = {"numpy": own.network}
    if find_spec("onnxruntime"):
        other = bertcli.load(folder, engine="onnx").other_engine
        assert other is not None
        passes["onnx"] = other.hidden_states
    for name, run in passes.items():
        one, three, as_long = (best_of(partial(run, batch_of(*some)), seconds) for some in (ONE, THREE, (sum(THREE),)))
        yield {
            "what": f"MiniLM, {name}, a pass",
            f"{ONE} ms": round(one * 1e3, 2),
            f"{THREE} ms": round(three * 1e3, 2),
            "times one": round(three / one, 2),
            f"one of {sum(THREE)}, times": round(as_long / one, 2),
        }
    text = " ".join(["the"] * 10)
    texts = [text, "the sea", "she went to the sea and came back with the small cat"]
    models = {"numpy": own}
    if find_spec("onnxruntime"):
        models |= {name: bertcli.load(folder, engine=name) for name in ("onnx",)}
    runs: dict[str, Callable[[list[str]], Any]] = {
        name: partial(model.encode, pooling="mean") for name, model in models.items()
    }
    if find_spec("sentence_transformers"):
        runs["sentence-transformers"] = sentence_transformer(folder)
    for count in (1, 3):
        times = {name: best_of(partial(run, texts[:count]), seconds) for name, run in runs.items()}
        shown = {f"{name} ms": round(time * 1e3, 2) for name, time in times.items()}
        yield {"what": f"MiniLM, encode, {count} of 12, 4 and 13 tokens", **shown}


def sentence_transformer(folder: Path) -> Callable[[list[str]], Any]:
    """Encode by sentence-transformers, mean-pooled."""
    peers, models = import_module("sentence_transformers"), import_module("sentence_transformers.models")
    network = models.Transformer(str(folder), max_seq_length=512)
    width = network.get_word_embedding_dimension()
    peer = peers.SentenceTransformer(modules=[network, models.Pooling(width, "mean")], device="cpu")
    encode: Callable[[list[str]], Any] = partial(peer.encode, show_progress_bar=False)
    return encode


def costs(folder: Path, seconds: float) -> Iterator[Record]:
    """How the time of a pass grows with the tokens of one text, and with texts of 32 tokens; in each engine."""
    for name, path in (("MiniLM", minilm_checkpoint()), ("base", folder)):
        engines: tuple[str, ...] = ("numpy", "onnx") if find_spec("onnxruntime") else ("numpy",)
        models = {engine: bertcli.load(path, engine=engine, text=False) for engine in engines}
        shapes = [(1, length) for length in LENGTHS] + [(count, 32) for count in COUNTS[1:]]
        for count, length in shapes:
            ids = np.random.default_rng(0).integers(5, 1000, (count, length))
            times = {engine: best_of(partial(model.forward, ids), seconds) for engine, model in models.items()}
            shown = {f"{engine} ms": round(time * 1e3, 1) for engine, time in times.items()}
            per_token = {f"{engine} µs a token": round(time * 1e6 / ids.size) for engine, time in times.items()}
            yield {"what": f"{name}, {count} × {length} tokens", **shown, **per_token}
