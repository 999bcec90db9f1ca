"""The data and models of `probe`: tests run them, and a script records what scikit-learn and transformers say."""

import csv
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

DATA = Path(__file__).parents[1] / "data" / "reviews.csv"
MODEL = "bert-mini-sentiment"
HELD_MODEL = "bert-mini-mlm"
TRAINED, HELD = slice(0, 28), slice(28, 40)  # of the reviews: a classifier is made of the first, and asked of the rest
HELD_STATES = (("mean", 0), ("mean", 2), ("cls", 3), ("mean", 4))  # pooling and layer
WORDS = (
    "the", "king", "queen", "drank", "hot", "tea", "and", "a", "dog", "sat", "in", "paris", "cat", "good", "old", "sun",
    "unbelievable",
)  # fmt: skip


class Features(NamedTuple):
    """Features [item, feature] and labels [item] of a seed."""

    x: Any
    labels: Any


def features(seed: int, labels: int) -> Features:
    """Features of very different sizes, one of which never varies."""
    random = np.random.default_rng(seed)
    y = random.integers(labels, size=60)
    x = (random.normal(size=(labels, 5))[y] + random.normal(size=(60, 5))) * [1, 100, 0.01, 1, 5] + [0, 7, 1, -3, 50]
    return Features(np.column_stack([x, np.full(60, 0.3)]).astype(np.float32), y)


def reviews() -> tuple[list[str], list[str]]:
    """Texts and labels."""
    with DATA.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    return [row["text"] for row in rows], [row["label"] for row in rows]


def sentences() -> tuple[list[list[str]], list[list[str]]]:
    """Words and tags that say how the word before begins, which the word itself does not tell."""
    random = np.random.default_rng(3)
    words = [random.choice(WORDS, size).tolist() for size in random.integers(3, 9, size=40)]
    return words, [["early" if i and some[i - 1] < "h" else "late" for i in range(len(some))] for some in words]


def labelled() -> tuple[list[str], list[str]]:
    """Texts with one of three labels for models with random weights."""
    random = np.random.default_rng(0)
    texts = [" ".join(random.choice(WORDS, 6)) for _ in range(40)]
    return texts, ["tea" if "tea" in text else "king" if "king" in text else "other" for text in texts]


def saved_classifier(folder: Path, pooling: str, layer: int) -> Any:
    """The classifier of the first reviews, as `probe` writes it."""
    import bertcli
    from bertcli.kinds.classifier.file import read_classifier

    texts, labels = reviews()
    options: Any = {"layer": layer, "pooling": pooling, "save": str(folder / "made.safetensors")}
    bertcli.probe(bertcli.load(HELD_MODEL), texts[TRAINED], labels[TRAINED], folds=4, **options)
    return read_classifier(folder / "made.safetensors")
