"""Train the small sentencepiece models in vocabularies/, and record what transformers makes of texts with each folder.

`python tests/reference/record_vocabularies.py [--train]` with transformers 4.57 (recorded with 4.57.6), whose fast
tokenizers are made of the same files, and sentencepiece (0.2.3). Recorded are ids, segments, starts and ends of each
token; ESM's tokenizer knows only ids.
"""
# mypy: disable-error-code="import-not-found"

import contextlib
import io
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

import sentencepiece
import transformers

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

from helpers.vocabulary import CASED, FOREIGN, WORDS  # noqa: E402
from vocabulary_cases import FOLDERS, MODELS, PAIRS, TEXTS, write_folder  # noqa: E402

RULES = "FB01\t66 69\nA0\t20\n9\t20\nA\t20\n301\t\nDF\t73 73\n3000\t20\n"  # ligature, spaces, mark, sharp s
ALBERT = {"pad_id": 0, "unk_id": 1, "bos_id": -1, "eos_id": -1, "pad_piece": "<pad>",
          "control_symbols": ["[CLS]", "[SEP]", "[MASK]"], "user_defined_symbols": ["(", ")", "-"]}  # fmt: skip
DEBERTA = {"pad_id": 0, "bos_id": 1, "eos_id": 2, "unk_id": 3, "pad_piece": "[PAD]", "bos_piece": "[CLS]",
           "eos_piece": "[SEP]", "unk_piece": "[UNK]"}  # fmt: skip
T5 = {"pad_id": 0, "eos_id": 1, "unk_id": 2, "bos_id": -1, "pad_piece": "<pad>"}
TRAINED: dict[str, dict[str, Any]] = {
    "sentencepiece.bpe.model": {}, "spiece.model": ALBERT, "spm.model": DEBERTA, "t5/spiece.model": T5,
}  # fmt: skip


def train() -> None:
    words = [*WORDS.split(), *CASED.split(), *FOREIGN.split(), "1,", "3,", "unbelievable"]
    texts = [" ".join(words[i % len(words)] for i in range(n, n + 9 * (n % 7 + 1), n % 7 + 1)) for n in range(900)]
    MODELS.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):  # the file names its rules by their path
        Path("rules.tsv").write_text(RULES, encoding="utf-8")
        for name, options in TRAINED.items():
            written = io.BytesIO()
            sentencepiece.SentencePieceTrainer.train(
                sentence_iterator=iter(texts), model_writer=written, vocab_size=120, normalization_rule_tsv="rules.tsv",
                character_coverage=0.98, minloglevel=2, **options,
            )  # fmt: skip
            (MODELS / name).parent.mkdir(exist_ok=True)
            (MODELS / name).write_bytes(written.getvalue())


def record(folder: Path) -> list[list[list[int]]]:
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    found = []
    for text, pair in [*((text, None) for text in TEXTS), *PAIRS]:
        encoded = tokenizer(text, pair, return_offsets_mapping=tokenizer.is_fast, return_token_type_ids=True)
        spans = encoded.get("offset_mapping", [])
        segments = encoded["token_type_ids"] if tokenizer.is_fast else []
        found.append([encoded["input_ids"], segments, [start for start, _ in spans], [end for _, end in spans]])
    return found


if __name__ == "__main__":
    if "--train" in sys.argv:
        train()
    recorded = {}
    for name in FOLDERS:
        with tempfile.TemporaryDirectory() as place:
            recorded[name] = record(write_folder(Path(place), name))
    lines = [f"{json.dumps(name)}:{json.dumps(value, separators=(',', ':'))}" for name, value in recorded.items()]
    (HERE / "vocabularies.json").write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
