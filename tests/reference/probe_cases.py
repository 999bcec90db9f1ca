"""The data and models of `probe`: tests run them, and a script records what scikit-learn and transformers say."""

import csv
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from reference.patch_cases import folder_of

DATA = Path(__file__).parents[1] / "data" / "reviews.csv"
MODEL = "bert-mini-sentiment"
HOLDING = (  # whose classification head holds a probe: of those that transformers opens by itself
    "bert", "roberta", "distilbert", "mpnet", "electra", "deberta-v2", "deberta", "albert", "nomic_bert", "gte",
    "eurobert", "esm", "ernie",
)  # fmt: skip
REFUSED = ("modernbert", "gemma3_text", "qwen3")
WORDS = (
    "the", "king", "queen", "drank", "hot", "tea", "and", "a", "dog", "sat", "in", "paris", "cat", "good", "old", "sun",
    "unbelievable",
)  # fmt: skip
ASKED = ("the king drank hot tea", "a dog sat in the sun", "the old queen sat and a cat drank tea in paris")


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


def saved(folder: Path, family: str, layer: int) -> Path:
    """A model of a family whose classifier is the probe of a layer."""
    import bertcli

    texts, labels = labelled()
    made = folder_of(folder / family, family, "model")
    bertcli.probe(bertcli.load(made), texts, labels, folds=3, layer=layer, save=str(folder / f"{family}-{layer}"))
    return folder / f"{family}-{layer}"
