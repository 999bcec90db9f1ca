"""Records what sentence-transformers makes of the rerankers in `rerankers.py`: `rerankers.json`. Needs PyTorch.

Recorded with sentence-transformers 6.2.0, transformers 5.23.0, torch 2.13.0.
"""
# mypy: disable-error-code="import-not-found"

import json
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from helpers.rerankers import KINDS, PAIRS, TEMPLATES, write_reranker
from sentence_transformers import CrossEncoder
from transformers.utils.chat_template_utils import render_jinja_template


def record(kind: str) -> dict[str, Any]:
    """The ids of each pair as the model reads it, and its score."""
    with TemporaryDirectory() as folder:
        model = CrossEncoder(str(write_reranker(Path(folder), **KINDS[kind])), device="cpu")
        prompt = model.prompts.get(model.default_prompt_name)
        ids = [model.preprocess([pair], prompt=prompt)["input_ids"][0].tolist() for pair in PAIRS]
        return {"ids": ids, "scores": [round(float(score), 7) for score in model.predict(PAIRS, batch_size=1)]}


def rendered(template: str, prompt: str) -> str:
    """What transformers makes of a template."""
    messages = [("system", prompt), ("query", "a  query\n"), ("document", " its document")]
    chat = [{"role": role, "content": content} for role, content in messages if content]
    return str(render_jinja_template([chat], chat_template=template)[0][0])


def main() -> None:
    recorded: dict[str, Any] = {kind: record(kind) for kind in KINDS}
    recorded["templates"] = [[rendered(template, prompt) for prompt in ("", "A prompt")] for template in TEMPLATES]
    (Path(__file__).parent / "rerankers.json").write_text(json.dumps(recorded, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
