"""Models, texts and settings of which `bert-score` recorded the numbers (record_bertscore.py)."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from helpers.sentence_folders import write_folder, write_t5

SAMPLE = Path(__file__).parents[2] / "sample_weights" / "bert-mini-mlm"
CANDIDATES = [
    "The cat sat on the mat.",
    "  He went to the market yesterday.\n",
    "It rained all day, and the river rose.",
    "Two dogs, 3 cats: über-café naïve 東京!",
    "a",
    "[SEP] the end [CLS]",
]
REFERENCES = [
    ["A cat was sitting on the mat.", "The cat is on a mat.", "Cats sit."],
    ["Yesterday he walked to the market."],
    ["The rain fell the whole day.", "It rained all day, and the river rose."],
    ["Three cats and two dogs in a café in Tokyo."],
    ["A", "b"],
    ["the end"],
]
EMPTY = (["", "It is cold.", "  ", "It is cold."], [["It is cold."], [" \t"], [""], ["", "It was cold."]])
LONG = ([" ".join(["the cat sat on the mat"] * 60), "The cat."], [["the dog sat on the mat"], ["a cat " * 300]])


class Case(NamedTuple):
    """A model, the layer, and what is compared: candidates, the references of each."""

    model: str
    layer: int
    candidates: list[str]
    references: list[list[str]]
    idf: bool = False
    baseline: bool = False


CASES = {
    "bert": Case("bert", 3, CANDIDATES, REFERENCES),
    "bert.embeddings": Case("bert", 0, CANDIDATES, REFERENCES),
    "bert.last": Case("bert", 4, CANDIDATES, REFERENCES),
    "bert.idf": Case("bert", 3, CANDIDATES, REFERENCES, idf=True),
    # Of two equal references no token has a weight, and of one neither.
    "bert.idf-of-one": Case("bert", 2, CANDIDATES[:2], [["The cat sat."], ["The cat sat."]], idf=True),
    "bert.baseline": Case("bert", 3, CANDIDATES, REFERENCES, baseline=True),
    "bert.idf-baseline": Case("bert", 2, CANDIDATES, REFERENCES, idf=True, baseline=True),
    "bert.empty": Case("bert", 3, *EMPTY),
    "bert.empty-idf": Case("bert", 3, *EMPTY, idf=True),
    "bert.empty-baseline": Case("bert", 3, *EMPTY, baseline=True),
    "bert.long": Case("bert", 3, *LONG),
    "bert.long-idf": Case("bert", 3, *LONG, idf=True),
    "roberta": Case("roberta", 1, CANDIDATES, REFERENCES),
    "roberta.idf": Case("roberta", 2, CANDIDATES, REFERENCES, idf=True),
    "roberta.empty": Case("roberta", 1, *EMPTY),
    "roberta.long": Case("roberta", 1, *LONG),
    "modernbert": Case("modernbert", 2, CANDIDATES, REFERENCES),
    "modernbert.idf": Case("modernbert", 4, CANDIDATES, REFERENCES, idf=True),
    "t5": Case("t5", 1, CANDIDATES, REFERENCES),
    "t5.idf": Case("t5", 2, CANDIDATES, REFERENCES, idf=True),
}
BASELINE = "LAYER,P,R,F\n0,0.31,0.32,0.3156\n1,0.5,0.51,0.5049\n2,0.64,0.65,0.6\n3,0.7,0.72,0.71\n4,0.8,0.81,0.80\n"


def write_model(root: Path, name: str) -> Path:
    """The folder of a model: the bundled one, or one of a family with random weights."""
    if name == "bert":
        return SAMPLE
    # bert-score asks by the folder's name whether a model is a T5.
    folder = root / name
    if not folder.exists():
        if name == "t5":
            write_t5(folder, "t5")
        else:
            write_folder(folder, name)
    return folder


def rows(case: Case) -> list[Mapping[str, Any]]:
    """The rows of a file of labelled texts."""
    pairs = zip(case.candidates, case.references, strict=True)
    return [{"candidate": candidate, "reference": references} for candidate, references in pairs]
