"""Records what peft makes of the adapters in `adapters.py`: `adapters.json`. Needs PyTorch.

Recorded with peft 0.21.2, transformers 5.23.0, torch 2.13.0.
"""
# mypy: disable-error-code="import-not-found"

import json
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

sys.path.insert(0, str(Path(__file__).parents[1]))

import torch
from helpers.adapters import CASES, IDS, write_lora
from peft import PeftModel
from transformers import (
    AutoModel,
    AutoModelForSequenceClassification,
    AutoModelForTokenClassification,
)

CLASSES = {
    "SEQ_CLS": AutoModelForSequenceClassification,
    "TOKEN_CLS": AutoModelForTokenClassification,
    "FEATURE_EXTRACTION": AutoModel,
}


def main() -> None:
    recorded = {}
    for name, case in CASES.items():
        with TemporaryDirectory() as folder:
            base, adapter = write_lora(Path(folder), name)
            model = CLASSES[case.task].from_pretrained(base, attn_implementation="eager")
            model = PeftModel.from_pretrained(model, adapter).eval()
            with torch.no_grad():
                found = model(input_ids=torch.tensor(IDS))
            recorded[name] = (found.logits if "logits" in found else found.last_hidden_state).tolist()
    (Path(__file__).parent / "adapters.json").write_text(json.dumps(recorded) + "\n")


if __name__ == "__main__":
    main()
