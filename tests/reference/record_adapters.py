"""Records what peft makes of the adapters in `adapters.py`: `adapters.json`, `adapters_of_tables.json`. Needs PyTorch.

Recorded with peft 0.21.2, transformers 5.24.0, torch 2.13.0. Of the logits of words every eleventh is kept,
of adapters that change tables of embeddings a sixteenth of the states.
"""
# mypy: disable-error-code="import-not-found"

import sys
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

import torch
import transformers
from helpers.adapters import (
    CASES,
    COLUMNS,
    IDS,
    KINDS_OF_CHANGE,
    SOME_STATES,
    TABLES,
    write_lora,
    write_table_lora,
)
from helpers.json_files import read_json, write_json
from peft import PeftModel
from transformers import (
    AutoModel,
    AutoModelForMaskedLM,
    AutoModelForSequenceClassification,
    AutoModelForTokenClassification,
)

CLASSES = {
    "SEQ_CLS": AutoModelForSequenceClassification,
    "TOKEN_CLS": AutoModelForTokenClassification,
    "FEATURE_EXTRACTION": AutoModel,
    None: AutoModelForMaskedLM,
}
LAST = ("classifier.weight", "score.weight", "classifier.out_proj.weight")  # of a head: a row a label


def main() -> None:
    recorded = {}
    for name, case in CASES.items():
        with TemporaryDirectory() as folder:
            base, adapter = write_lora(Path(folder), name)
            rows = [shape[0] for key, shape in case.whole.items() if key in LAST]
            labels = {"num_labels": rows[0], "ignore_mismatched_sizes": True} if rows else {}
            model = CLASSES[case.task].from_pretrained(base, dtype=torch.float32, attn_implementation="eager", **labels)
            model = PeftModel.from_pretrained(model, adapter).eval()
            with torch.no_grad():
                found = model(input_ids=torch.tensor(IDS))
            values = found.logits if "logits" in found else found.last_hidden_state
            recorded[name] = (values[..., COLUMNS] if case.task is None else values).tolist()
    write_json(Path(__file__).parent / "adapters.json", recorded)
    record_tables()


def record_tables() -> None:
    """Record the states of each family whose tables are saved, or changed."""
    recorded: dict[str, dict[str, Any]] = {}
    for family, tables in TABLES.items():
        recorded[family] = {}
        for table, change in product(tables, KINDS_OF_CHANGE):
            with TemporaryDirectory() as folder:
                base, adapter = write_table_lora(Path(folder), family, table, change)
                encoder = read_json(base / "config.json")["architectures"][0]
                model = getattr(transformers, encoder).from_pretrained(
                    base, dtype=torch.float32, attn_implementation="eager"
                )
                model = PeftModel.from_pretrained(model, adapter).eval()
                with torch.no_grad():
                    states = model(input_ids=torch.tensor(IDS)).last_hidden_state.numpy()
            recorded[family][f"{table} {change}"] = states[SOME_STATES].tolist()
    write_json(Path(__file__).parent / "adapters_of_tables.json", recorded)


if __name__ == "__main__":
    main()
