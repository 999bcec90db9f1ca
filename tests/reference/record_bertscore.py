"""Record what bert-score makes of candidates and references: `python tests/reference/record_bertscore.py`.

Needs bert-score 0.3.13 beside transformers 4, for which it was written (recorded with transformers 4.57.6, tokenizers
0.22.1, torch 2.13.0): beside transformers 5 it crashes at an empty text, and loses the space before RoBERTa's texts.
One text a batch, since bert-score also compares a token with the padding of a batch, whose similarity is 0.
"""
# mypy: disable-error-code="import-not-found"

import json
import math
import sys
import tempfile
from pathlib import Path
from typing import Any

import bert_score
import torch
import transformers
from bert_score.utils import model2layers

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

from helpers.json_files import read_json, write_json  # noqa: E402
from reference.bertscore_cases import BASELINE, CASES, Case, write_model  # noqa: E402

transformers.logging.set_verbosity_error()
torch.set_num_threads(1)


def slow_files(folder: Path) -> None:
    """The files that RoBERTa's slow tokenizer reads, from tokenizer.json."""
    model = read_json(folder / "tokenizer.json")["model"]
    write_json(folder / "vocab.json", model["vocab"])
    merges = [pair if isinstance(pair, str) else " ".join(pair) for pair in model["merges"]]
    (folder / "merges.txt").write_text("#version: 0.2\n" + "\n".join(merges) + "\n", encoding="utf-8")


def scored(case: Case, folder: Path, baseline: Path) -> dict[str, Any]:
    """Precision, recall and F1 of each candidate, and the line to cite."""
    if case.model == "roberta":
        slow_files(folder)
    found, cited = bert_score.score(
        case.candidates,
        case.references,
        model_type=str(folder),
        num_layers=case.layer,
        idf=case.idf,
        device="cpu",
        batch_size=1,
        nthreads=0,
        lang="en",
        return_hash=True,
        rescale_with_baseline=case.baseline,
        baseline_path=str(baseline) if case.baseline else None,
        # Only of these is there a slow tokenizer in the folder.
        use_fast_tokenizer=case.model not in ("bert", "roberta"),
    )
    numbers = [[None if math.isnan(x) else round(x, 7) for x in row] for row in torch.stack(found, 1).tolist()]
    return {"scores": numbers, "cited": cited.replace(str(folder), folder.name).removesuffix("_fast-tokenizer")}


def main() -> None:
    with tempfile.TemporaryDirectory() as root:
        baseline = Path(root, "baseline.tsv")
        baseline.write_text(BASELINE, encoding="utf-8")
        cases = {name: scored(case, write_model(Path(root), case.model), baseline) for name, case in CASES.items()}
    recorded = {"layers": model2layers, "cases": cases}
    file = HERE / "bertscore.json"
    file.write_text(json.dumps(recorded, separators=(",", ":"), ensure_ascii=False) + "\n", encoding="utf-8")
    print(f"{file.name}: {len(cases)} cases, {file.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
