"""Record the vectors that model2vec, and sentence-transformers, make with model2vec's folders, in model2vec.json.

`python tests/reference/record_model2vec.py` with torch, sentence-transformers and model2vec (recorded with
sentence-transformers 6.2.0, model2vec 0.10.0). A folder with modules.json is read by sentence-transformers; where that
fails by model2vec, since it has no tables of whole numbers.
"""
# mypy: disable-error-code="import-not-found"

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

from helpers.static_models import MODEL2VEC, write_model2vec  # noqa: E402
from model2vec import StaticModel  # noqa: E402
from sentence_transformers import SentenceTransformer  # noqa: E402

TEXTS = ["hot tea in a cup", "tea §unknownword§ cup", "§§§", "", "tea § tea cup", "[PAD] [UNK] tea"]


def record() -> dict[str, dict[str, Any]]:
    recorded = {}
    for name, saved in MODEL2VEC.items():
        with tempfile.TemporaryDirectory() as folder:
            path = write_model2vec(Path(folder), name)
            library, refused = "model2vec", None
            if saved.has_modules:
                try:
                    vectors = SentenceTransformer(str(path), device="cpu").encode(TEXTS)
                    library = "sentence-transformers"
                except RuntimeError as error:
                    refused = str(error)
            if library == "model2vec":
                vectors = StaticModel.from_pretrained(path).encode(TEXTS)
            rounded = [[round(float(x), 6) for x in vector] for vector in vectors]
            recorded[name] = {"library": library, "refused": refused, "vectors": rounded}
            print(name, library, refused)
    return recorded


if __name__ == "__main__":
    text = json.dumps({"texts": TEXTS, "folders": record()}, separators=(",", ":"))
    (HERE / "model2vec.json").write_text(text + "\n", encoding="utf-8")
