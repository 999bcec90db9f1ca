"""Record what the references make of folders with settings beside the usual ones, in settings.json.

`python tests/reference/record_settings.py`, in an environment with sentence-transformers (recorded with 6.2.0, and
transformers 5.23.0).
"""
# mypy: disable-error-code="import-not-found"

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

import torch  # noqa: E402
from reference import setting_cases as cases  # noqa: E402
from sentence_transformers import SentenceTransformer  # noqa: E402
from transformers import AutoModel, AutoTokenizer  # noqa: E402

torch.set_num_threads(1)


def vectors(case: str) -> list[list[float]]:
    with tempfile.TemporaryDirectory() as folder:
        model = SentenceTransformer(str(cases.write_sentence_case(Path(folder) / "m", case)), device="cpu").float()
        found = [model.encode([text])[0].tolist() for text in cases.TEXTS]  # one by one: padding moves positions
    return [[round(number, 7) for number in vector] for vector in found]


def ids(case: str) -> list[list[int]]:
    """Of every text, cut where the tokenizer's own limit is, then of the last cut to 7 tokens."""
    with tempfile.TemporaryDirectory() as folder:
        tokenizer = AutoTokenizer.from_pretrained(cases.write_tokenizer_case(Path(folder) / "m", case))
        found = [tokenizer(text, truncation=True)["input_ids"] for text in cases.SPECIAL_TEXTS]
        return [*found, tokenizer(cases.SPECIAL_TEXTS[2], truncation=True, max_length=7)["input_ids"]]


def states(case: str) -> list[list[float]]:
    """Hidden states of the last layer; of the second half in segment 1, if there are segments."""
    with tempfile.TemporaryDirectory() as folder:
        path = cases.write_network_case(Path(folder) / "m", case)
        model = AutoModel.from_pretrained(path, attn_implementation="eager", dtype=torch.float32).eval()
    segments = {"token_type_ids": torch.tensor([cases.SEGMENTS])} if "segments" in case else {}
    with torch.no_grad():
        hidden = model(input_ids=torch.tensor([cases.IDS]), **segments).last_hidden_state[0]
    return [[round(number, 6) for number in row] for row in hidden.tolist()]


def main() -> None:
    recorded: dict[str, Any] = {"sentence": {case: vectors(case) for case in (*cases.SENTENCE_CASES, cases.NO_MODULES)}}
    recorded["tokenizer"] = {case: ids(case) for case in cases.TOKENIZER_CASES}
    recorded["network"] = {case: states(case) for case in cases.NETWORK_CASES}
    text = json.dumps(recorded, separators=(",", ":"))
    (HERE / "settings.json").write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
