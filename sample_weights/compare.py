"""Record what the reference makes of the bundled models, and say where bertcli differs.

python sample_weights/compare.py    writes transformers' top five for every cloze sentence, and sentence-transformers'
vectors of some sentences, into tests/data; needs torch, transformers, sentence-transformers and bertcli
"""

import json
from pathlib import Path

import torch
from sentence_transformers import SentenceTransformer
from transformers import AutoModelForSequenceClassification, BertForPreTraining, pipeline

import bertcli

HERE = Path(__file__).parent
DATA = HERE.parent / "tests" / "data"
SENTENCES = (
    "A dog ran home.", "The puppy went back to its house.", "Interest rates rose.", "", "Unbelievable!",
    "She poured a cup of hot tea, and he put two spoons of sugar into his own before they sat down by the fire.",
)  # fmt: skip
BEGIN = 8  # numbers of each vector that are recorded, beside all cosines


def must_be_whole(loader: type, folder: Path) -> None:
    """Stops where transformers finds a weight missing, unexpected or of another shape."""
    _, information = loader.from_pretrained(folder, output_loading_info=True)  # type: ignore[attr-defined]
    problems = {name: found for name, found in information.items() if found}
    if problems:
        raise SystemExit(f"{folder.name}: {problems}")


def compare_sentences(folder: Path) -> None:
    """Vectors and cosines; raises where bertcli's are further away than float32 rounds."""
    reference = SentenceTransformer(str(folder), device="cpu").float().encode(list(SENTENCES))
    apart = abs(bertcli.load(str(folder)).encode(SENTENCES) - reference).max()
    print(f"sentence vectors are at most {apart:.1e} apart")
    assert apart < 1e-5
    recorded = {"texts": SENTENCES, "begin": reference[:, :BEGIN], "cosines": reference @ reference.T}
    rounded = {name: value if name == "texts" else value.round(7).tolist() for name, value in recorded.items()}
    (DATA / "sentence_vectors.json").write_text(json.dumps(rounded) + "\n", encoding="utf-8")


def main() -> None:
    compare_sentences(HERE / "bert-mini-sentence")
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
