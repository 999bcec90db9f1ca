"""Record what GLiNER's library makes of small span models, in gliner.json.

`python tests/reference/record_gliner.py` with torch and gliner (recorded with gliner 0.2.29, torch 2.13 and
transformers 5.16.1), and HF_HUB_OFFLINE=1.
"""
# mypy: disable-error-code="import-not-found"

import sys
import tempfile
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parent), str(HERE.parents[1])]

import torch  # noqa: E402
from gliner import GLiNER  # noqa: E402
from helpers.gliner import CASES, LABELS, MODES, TEXTS, write_gliner  # noqa: E402
from helpers.json_files import write_json  # noqa: E402

from bertcli.weights.tensors import open_file  # noqa: E402

torch.set_num_threads(1)


def record() -> dict[str, Any]:
    """Of each case the number of parameters; of each text the logits of its spans, and the entities of each mode."""
    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        for name, options in CASES.items():
            path = write_gliner(Path(folder) / name, **options)
            for file in path.glob("*.bin"):  # torch refuses files without some entries that say nothing of the tensors
                tensors = {key: torch.from_numpy(one.float32().copy()) for key, one in open_file(file).items()}
                torch.save(tensors, file)
            model = GLiNER.from_pretrained(str(path), strict="num_rnn_layers" not in options)
            model.eval()
            count = sum(parameter.numel() for parameter in model.model.parameters())
            found[name] = {"parameters": count, "texts": [of_text(model, text) for text in TEXTS]}
    return found


def of_text(model: Any, text: str) -> dict[str, Any]:
    prepared = model.prepare_batch([text], [*LABELS])
    batch = model.collate_batch(prepared["input_x"], prepared["entity_types"])
    with torch.inference_mode():
        logits = model.run_batch(batch)[0][0]  # [word, width, label]
    words, longest, _ = logits.shape
    spans = [logits[i, k].tolist() for i in range(words) for k in range(longest) if i + k < words]
    entities = {}
    for mode, (threshold, nested, multi_label) in MODES.items():
        made = model.predict_entities(
            text, [*LABELS], flat_ner=not nested, threshold=threshold, multi_label=multi_label
        )
        entities[mode] = [[one["start"], one["end"], one["label"], round(one["score"], 7)] for one in made]
    return {"logits": [[round(number, 6) for number in row] for row in spans], "entities": entities}


if __name__ == "__main__":
    write_json(HERE / "gliner.json", record())
