"""Many texts of mixed length: texts a second beside the peers, and whether time and memory stay flat."""

import subprocess
import sys
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
from bench.machine import compared, in_turn
from bench.peers import onnx_file, onnx_forward
from bench.processes import environment

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


def alike(folder: Path, times: int) -> Iterator[Record]:
    """Mean-pooled vectors of texts of one length, beside ONNX Runtime on one batch of them after the other."""
    model, graph = bertcli.load(folder), onnx_file(folder) if find_spec("onnxruntime") else None
    words = [word for word in WORDS.split() if len(model.tokenizer.encode([word])[0].ids) == 3]  # one piece each
    generator = np.random.default_rng(0)
    for batch, length in ((8, 128), (32, 64)):
        texts = [" ".join(generator.choice(words, length - 2)) for _ in range(6 * batch)]
        tokens = [one.ids for one in model.tokenizer.encode(texts)]
        runs: dict[str, Any] = {"bertcli": partial(model.encode, texts, pooling="mean", normalize=False)}
        if graph:
            runs["onnxruntime"] = partial(padded, onnx_forward(graph), tokens, batch)
        best, _ = in_turn(runs, times)
        record = compared(f"{len(texts)} texts of {length} tokens", best, 1, "s")
        vectors = [run() for run in runs.values()]
        record["largest difference"] = f"{np.abs(vectors[0] - vectors[1]).max():.1e}" if graph else None
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


def shared(folder: Path, count: int) -> Iterator[Record]:
    """Mean-pooled vectors of texts one window after the other, with the next one tokenized ahead, by two workers."""
    texts = texts_of(count)
    for name, model in (("base", bertcli.load(folder)), ("bundled sample", bertcli.load())):
        some = texts if name != "base" else texts[: count // 8]
        runs = {
            "tokenized ahead": partial(model.encode, some, workers=1),
            "one by one": lambda model=model, some=some: model.encode(iter(some)),
            "2 workers": partial(model.encode, some, workers=2),
        }
        best, _ = in_turn(runs, 2)
        yield compared(f"{len(some)} texts, {name}", best, 1, "s")


GROWTH = """
import sys, time, bertcli
from bench.processes import memory
from bench.stream import texts_of
model = bertcli.load(sys.argv[1])
model.encode(["warm"])
texts = texts_of(int(sys.argv[2]))
start, tokens = time.perf_counter(), 0
for block in model.encode_blocks(texts):
    tokens += sum(len(item.tokens.ids) for item in block.items)
spent = time.perf_counter() - start
print(spent / tokens * 1e6, memory("self", "VmHWM"))
"""


def growth(folder: Path, counts: tuple[int, ...]) -> Iterator[Record]:
    """Time a token and peak memory of encoding more and more texts, on the two-layer model of the tests."""
    from helpers.checkpoints import make

    small = folder.parent / "small"
    if not small.exists():
        make(small)
    for count in counts:
        command = [sys.executable, "-c", GROWTH, str(small), str(count)]
        output = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, env=environment()).stdout
        token, memory = map(float, output.split())
        yield {"what": f"{count} texts, small model", "µs a token": round(token, 2), "peak MiB": round(memory)}
