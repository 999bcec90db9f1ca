"""Record what minimal pairs and `score --within-word` are compared with: `python tests/reference/record_pairs.py`.

Needs PyTorch, transformers and minicons (recorded with torch 2.13.0, transformers 5.23.0, minicons 0.3.39), which gives
pll and within_word_l2r. The metric of CrowS-Pairs is written out here as its paper (Nangia et al. 2020, section 3) and
its script have it (metric.py of nyu-mll/crows-pairs, mask_unigram): of the pieces that a diff of the ids finds in both
sentences, each but the first and the last is masked in turn. The script's own functions gave what bertcli gives for 350
random pairs: sums to 9e-6 with this model and to 5e-5 with bert-mini-mlm, and every preference.
"""
# mypy: disable-error-code="import-not-found, import-untyped"

import json
import sys
import tempfile
from difflib import SequenceMatcher
from pathlib import Path
from typing import Any

import numpy as np
import torch
from minicons import scorer
from transformers import AutoModelForMaskedLM, AutoTokenizer

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

from helpers.checkpoints import make  # noqa: E402

PAIRS = [
    ("The king drinks tea.", "The kings drink tea."),
    ("Unbelievable kings were drinking unbelievable teas.", "Unbelievable queens were drinking unbelievable teas."),
    ("He sat on the mat.", "She sat on the old mat."),
    ("The dog ran.", "A cat slept in houses."),
    ("The king drinks tea.", "The king drinks tea."),
]
WORDS = "the a king queen kings drinks drink tea teas hot cold sat on mat dog cat ran houses unbelievable was were"


def random_pairs(count: int) -> list[tuple[str, str]]:
    """Sentences of random words, and each with one to three words replaced, left out or put in."""
    random, known = np.random.default_rng(38), WORDS.split()
    pairs = []
    for _ in range(count):
        words = [str(word) for word in random.choice(known, random.integers(4, 9))]
        other = [*words]
        for _ in range(random.integers(1, 4)):
            place, kind = int(random.integers(len(other))), random.integers(3)
            other[place : place + (kind < 2)] = [] if kind == 1 and len(other) > 2 else [str(random.choice(known))]
        pairs.append((f"{' '.join(words)}.", f"{' '.join(other)}."))
    return pairs


def shared(model: Any, tokenizer: Any, first: str, second: str) -> tuple[float, float]:
    """The sums of both sentences' log-probabilities over the pieces that they share."""
    sides = [tokenizer(text)["input_ids"] for text in (first, second)]
    places: tuple[list[int], list[int]] = ([], [])
    words = [[str(id) for id in ids] for ids in sides]
    for name, i, j, k, m in SequenceMatcher(None, words[0], words[1]).get_opcodes():
        if name == "equal":
            places[0].extend(range(i, j))
            places[1].extend(range(k, m))
    sums = [0.0, 0.0]
    for side, ids in enumerate(sides):
        for at in places[side][1:-1]:
            masked = torch.tensor([ids])
            masked[0, at] = tokenizer.mask_token_id
            with torch.inference_mode():
                logits = model(input_ids=masked).logits[0, at].double()
            sums[side] += float(torch.log_softmax(logits, -1)[ids[at]])
    return sums[0], sums[1]


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = make(Path(folder) / "model", head="mlm")
        tokenizer = AutoTokenizer.from_pretrained(path)
        model = AutoModelForMaskedLM.from_pretrained(path).eval()
        tokenizer.batch_encode_plus = tokenizer.__call__  # which minicons calls, and transformers 5 has dropped
        found = scorer.MaskedLMScorer(model, "cpu", tokenizer=tokenizer)
        texts = [text for pair in PAIRS for text in pair]
        records: dict[str, Any] = {"pairs": PAIRS}
        for name, metric in (("pll", "original"), ("within-word", "within_word_l2r")):
            sums = [
                found.sequence_score([text], reduction=lambda x: x.double().sum().item(), PLL_metric=metric)[0]
                for text in texts
            ]
            records[name] = list(zip(sums[::2], sums[1::2], strict=True))
        records["shared"] = [shared(model, tokenizer, *pair) for pair in PAIRS]
        records["random"] = [{"pair": pair, "shared": shared(model, tokenizer, *pair)} for pair in random_pairs(8)]
    (HERE / "pairs.json").write_text(json.dumps(records, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
