"""Sentences with a teacher's vectors: what bert-mini-sentence learns from, and how well it has learned it.

The teacher is all-MiniLM-L6-v2 (Apache 2.0), run by bertcli itself. Its vectors are written to a file as they are made,
so that training can begin with the first ones.
"""

import json
import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from corpus import documents, is_held_out, labeled
from numpy.random import Generator
from numpy.typing import NDArray

import bertcli

Floats = NDArray[np.float32]
DATA = Path(__file__).parent.parent / "tests" / "data"
WIDTH = 384  # of the teacher's vectors
BLOCK = 2_000  # texts embedded at a time
SENTENCE = re.compile(r"(?<=[.!?])[\"')”’]?\s+(?=[\"'“‘(]?[A-Z])")
WORD = re.compile(r"[A-Za-z]+")
SHORTEST, LONGEST = 3, 26  # words of a sentence
# How many sentences of each source at most: plain stories and everyday sentences are what people type.
SHARES = {
    "tatoeba": 30_000, "storybooks": 25_000, "onestopenglish": 15_000, "factbook": 2_000,
    "gutenberg": 75_000, "enwiki2015": 65_000, "openstax": 20_000,
}  # fmt: skip
WORDS, SPANS, CHANGED = 6_000, 25_000, 90_000  # single words, runs of words, sentences with words changed


def sentences_of(document: str) -> list[str]:
    """The sentences of a document in order, those of a usual length."""
    found = [sentence.strip() for line in document.split("\n") for sentence in SENTENCE.split(line)]
    return [sentence for sentence in found if SHORTEST <= len(sentence.split()) <= LONGEST]


def changed(sentence: str, words: list[str], rng: Generator) -> str:
    """The sentence with one to three words replaced, left out or moved: the same words, another meaning."""
    parts = sentence.split()
    for _ in range(rng.integers(1, 4)):
        place = int(rng.integers(len(parts)))
        kind = rng.random()
        if kind < 0.7:
            parts[place] = WORD.sub(lambda _: words[rng.integers(len(words))], parts[place], count=1)
        elif kind < 0.85 and len(parts) > 2:
            del parts[place]
        else:
            parts.insert(int(rng.integers(len(parts) + 1)), parts.pop(place))
    return " ".join(parts)


def collect(texts: Path, seed: int) -> tuple[list[str], list[tuple[str, str]]]:
    """(training texts in random order, 5,000 pairs of held-out sentences: half are neighbors in their document)."""
    rng = np.random.default_rng(seed)
    by_source: dict[str, list[str]] = {source: [] for source in SHARES}
    neighbors: list[tuple[str, str]] = []
    for name, document in documents(texts):
        source = next(source for source in SHARES if name.startswith(source))
        found = sentences_of(document)
        if is_held_out(document):
            neighbors += pairwise(found)
        else:
            by_source[source] += found
    apart = [text for pair in neighbors for text in pair]
    pairs = [neighbors[i] for i in rng.permutation(len(neighbors))[:2_500]]
    pairs += [(apart[i], apart[j]) for i, j in rng.integers(len(apart), size=(2_500, 2))]
    held = {text for pair in pairs for text in pair} | set(evaluation_texts())
    plain = [text for source, most in SHARES.items() for text in _some(by_source[source], most, rng)]
    plain += labeled(texts, "train")[0]
    counts: dict[str, int] = {}
    for text in plain:
        for word in WORD.findall(text.lower()):
            counts[word] = counts.get(word, 0) + 1
    common = sorted(counts, key=lambda word: -counts[word])[: 2 * WORDS]
    weights = np.sqrt([counts[word] for word in common])
    drawn = [common[i] for i in rng.choice(len(common), 500_000, p=weights / weights.sum())]
    everyday = [text for text in plain if len(text.split()) <= 14]
    made = common[:WORDS] + [changed(text, drawn, rng) for text in _some(everyday * 3, CHANGED, rng)]
    for text in _some(plain, SPANS, rng):
        parts = text.split()
        start = int(rng.integers(len(parts)))
        made.append(" ".join(parts[start : start + int(rng.integers(2, 7))]))
    every = [text for text in dict.fromkeys(plain + made) if text not in held]
    return [every[i] for i in rng.permutation(len(every))], pairs


def _some(texts: list[str], most: int, rng: Generator) -> list[str]:
    return [texts[i] for i in rng.permutation(len(texts))[:most]]


def teach(teacher: str, texts: list[str], file: Path) -> None:
    """Append the teacher's vectors [text, 384] as float16 to a file that may hold those of the first texts already."""
    model = bertcli.load(teacher)
    done = file.stat().st_size // (2 * WIDTH) if file.exists() else 0
    with file.open("ab") as vectors:
        vectors.truncate(done * 2 * WIDTH)
        for start in range(done, len(texts), BLOCK):
            vectors.write(model.encode(texts[start : start + BLOCK]).astype(np.float16).tobytes())
            vectors.flush()


# ------------------------------------------------------------------------------------------------------------- scores


def rows(name: str) -> list[dict[str, Any]]:
    """The rows of tests/data/NAME.jsonl."""
    return [json.loads(line) for line in (DATA / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()]


def evaluation_texts() -> Iterator[str]:
    """Every text of the two sets that the model is judged by."""
    for row in rows("paraphrases") + rows("triplets"):
        yield from (value for value in row.values() if isinstance(value, str))


def ranks(values: Floats) -> Floats:
    """Ranks from 0; equal values share their mean rank."""
    _, places, counts = np.unique(values, return_inverse=True, return_counts=True)
    return ((np.cumsum(counts) - (counts + 1) / 2)[places]).astype(np.float32)


def spearman(a: Floats, b: Floats) -> float:
    """Spearman's correlation of two lists of numbers."""
    return float(np.corrcoef(ranks(a), ranks(b))[0, 1])


def search(model: bertcli.Model, others: list[str]) -> tuple[int, int]:
    """How many paraphrases are the first, and among the first ten, of all paraphrases and other sentences."""
    pairs = rows("paraphrases")
    queries = model.encode([row["text"] for row in pairs], normalize=True)
    corpus = model.encode([row["paraphrase"] for row in pairs] + others, normalize=True)
    cosines = queries @ corpus.T
    above = (cosines > np.diag(cosines[:, : len(pairs)])[:, None]).sum(1)
    return int((above == 0).sum()), int((above < 10).sum())


def triplets(model: bertcli.Model) -> int:
    """How many triplets have the text of near meaning closer than the one of shared words."""
    found = rows("triplets")
    a, near, far = (model.encode([row[key] for row in found], normalize=True) for key in ("text", "near", "far"))
    return int(((a * near).sum(1) > (a * far).sum(1)).sum())


def cosines(model: bertcli.Model, pairs: list[tuple[str, str]]) -> Floats:
    """The cosine of each pair of texts."""
    first, second = (model.encode(list(side), normalize=True) for side in zip(*pairs, strict=True))
    return np.asarray((first * second).sum(1), np.float32)
