"""Record transformers' top five for every cloze sentence, and say where bertcli's differ.

python sample_weights/compare.py    writes tests/data/cloze_top_five.json; needs torch, transformers and bertcli
"""

from __future__ import annotations

import json
from pathlib import Path

import torch
from transformers import AutoModelForSequenceClassification, BertForPreTraining, pipeline

import bertcli

HERE = Path(__file__).parent
DATA = HERE.parent / "tests" / "data"


def must_be_whole(loader: type, folder: Path) -> None:
    """Stops where transformers finds a weight missing, unexpected or of another shape."""
    _, information = loader.from_pretrained(folder, output_loading_info=True)  # type: ignore[attr-defined]
    problems = {name: found for name, found in information.items() if found}
    if problems:
        raise SystemExit(f"{folder.name}: {problems}")


def main() -> None:
    folder = HERE / "bert-mini-mlm"
    must_be_whole(BertForPreTraining, folder)
    must_be_whole(AutoModelForSequenceClassification, HERE / "bert-mini-sentiment")
    texts = [json.loads(line)["text"] for line in (DATA / "cloze.jsonl").read_text(encoding="utf-8").splitlines()]
    fill = pipeline("fill-mask", model=str(folder), dtype=torch.float32)
    reference = [[found["token_str"] for found in fill(text, top_k=5)] for text in texts]
    (DATA / "cloze_top_five.json").write_text(
        "[\n" + ",\n".join(json.dumps(words) for words in reference) + "\n]\n", encoding="utf-8"
    )
    records = bertcli.load(str(folder)).fill_mask(texts, top_k=5)
    ours = [[found["token_str"] for found in record["masks"][0]["predictions"]] for record in records]
    same = sum(mine == theirs for mine, theirs in zip(ours, reference, strict=True))
    print(f"{same} of {len(texts)} sentences with the same five words in the same order")
    for text, mine, theirs in zip(texts, ours, reference, strict=True):
        if mine != theirs:
            print(text, "bertcli:", mine, "transformers:", theirs)


if __name__ == "__main__":
    main()
