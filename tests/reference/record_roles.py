"""Record the vectors of queries and documents that sentence-transformers gives, in roles.json.

`python tests/reference/record_roles.py` with torch, transformers and sentence-transformers (recorded with transformers
5.24.0, sentence-transformers 6.2.0).
"""
# mypy: disable-error-code="import-not-found"

import json
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

import torch  # noqa: E402
from helpers.modular import write_asymmetric  # noqa: E402
from helpers.sentence_folders import ROLES, write_roles  # noqa: E402
from sentence_transformers import SentenceTransformer  # noqa: E402

torch.set_num_threads(1)
TEXTS = ["The hot tea", "unbelievable coffee in Paris!"]


def vectors(folder: Path) -> dict[str, list[list[float]]]:
    model = SentenceTransformer(str(folder), device="cpu")
    by_role = {
        "text": model.encode(TEXTS),
        "query": model.encode_query(TEXTS),
        "document": model.encode_document(TEXTS),
    }
    return {role: [[round(x, 7) for x in vector] for vector in found.tolist()] for role, found in by_role.items()}


def record() -> dict[str, dict[str, list[list[float]]]]:
    recorded = {}
    with tempfile.TemporaryDirectory() as folder:
        for number, name in enumerate(ROLES):
            recorded[name] = vectors(write_roles(Path(folder) / str(number), name))
        recorded["asymmetric"] = vectors(write_asymmetric(Path(folder) / "asymmetric"))
    return recorded


if __name__ == "__main__":
    text = json.dumps({"texts": TEXTS, "vectors": record()}, separators=(",", ":"))
    (HERE / "roles.json").write_text(text + "\n", encoding="utf-8")
