"""Many texts of mixed length: texts a second beside the peers."""

from collections.abc import Iterator
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from helpers.vocabulary import WORDS
from numpy.typing import NDArray

import bertcli
from bench.beside import Beside
from bench.machine import compared
from bench.peers import onnx_file, onnx_forward

Record = dict[str, Any]
BATCH = 32  # texts of a padded batch of ONNX Runtime


def texts_of(count: int, longest: int = 200) -> list[str]:
    """Texts of a few words to a long paragraph, most of them short, the same every time."""
    generator = np.random.default_rng(0)
    words = np.array(WORDS.split())
    lengths = np.minimum(longest, 3 + generator.gamma(1.2, 28, count)).astype(int)
    return [" ".join(generator.choice(words, length)) for length in lengths]


def stream(folder: Path, count: int, file: Path | None, beside: Path | None = None) -> Iterator[Record]:
    """Mean-pooled vectors of the first `count` lines of a file, or of made-up texts: 200 by each in turn, and so on."""
    texts = file.read_text(encoding="utf-8").split("\n")[:count] if file else texts_of(count)
    model = bertcli.load(folder)
    runs: dict[str, Any] = {"bertcli": partial(model.encode, pooling="mean", normalize=False)}
    if beside:
        runs[beside.name] = partial(Beside(beside, folder).method("encode"), pooling="mean", normalize=False)
    if find_spec("onnxruntime") and (graph := onnx_file(folder)):
        run = onnx_forward(graph)
        ids = dict(zip(texts, (one.ids for one in model.tokenizer.encode(texts, max_length=512)), strict=True))
        runs["onnxruntime"] = lambda some: padded(run, [ids[text] for text in some])
    if find_spec("sentence_transformers"):
        peers = import_module("sentence_transformers")
        models = import_module("sentence_transformers.models")
        network = models.Transformer(str(folder), max_seq_length=512)
        peer = peers.SentenceTransformer(
            modules=[network, models.Pooling(network.get_word_embedding_dimension(), "mean")], device="cpu"
        )
        runs["sentence-transformers"] = partial(peer.encode, batch_size=BATCH, show_progress_bar=False)
    seconds = dict.fromkeys(runs, 0.0)
    found: dict[str, list[NDArray[np.float32]]] = {name: [] for name in runs}
    model.encode(texts[:20])
    for first in range(0, len(texts), 200):
        for name, one in runs.items():
            start = perf_counter()
            found[name].append(one(texts[first : first + 200]))
            seconds[name] += perf_counter() - start
    vectors = {name: np.concatenate(some) for name, some in found.items()}
    record = compared(f"{len(texts)} texts", seconds, 1, "s")
    record["texts/s"] = round(len(texts) / seconds["bertcli"], 1)
    others = [np.abs(vectors["bertcli"] - other).max() for other in list(vectors.values())[1:]]
    record["largest difference"] = f"{max(others):.1e}" if others else None
    yield record


def padded(run: Any, tokens: list[list[int]], batch: int = BATCH) -> NDArray[np.float32]:
    """ONNX Runtime on batches sorted by length, mean over the tokens that count."""
    found = np.empty((len(tokens), 768), dtype=np.float32)
    order = sorted(range(len(tokens)), key=lambda i: -len(tokens[i]))
    for first in range(0, len(order), batch):
        some = order[first : first + batch]
        lengths = np.array([len(tokens[i]) for i in some])
        mask = (np.arange(lengths.max()) < lengths[:, None]).astype(np.int64)
        ids = np.zeros_like(mask)
        ids[mask == 1] = np.concatenate([tokens[i] for i in some])
        found[some] = (run(ids, mask) * mask[:, :, None]).sum(axis=1) / lengths[:, None]
    return found
