"""Record what sentence-transformers' MultiVectorEncoder makes of models of late interaction, in late.npz.

`python tests/reference/record_late.py` with torch, transformers and sentence-transformers (recorded with transformers
5.23.0 and sentence-transformers 6.2.0). Attention is that of the library's default: where a query's mask tokens see no
token at all, in layers with local attention, eager attention gives the mean of all values, and this one zeros.
"""
# mypy: disable-error-code="import-not-found"

import sys
import tempfile
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

import numpy as np  # noqa: E402
import torch  # noqa: E402
from helpers.late_folders import DOCUMENTS, FOLDERS, QUERIES, write_late  # noqa: E402
from sentence_transformers import MultiVectorEncoder  # noqa: E402

torch.set_num_threads(1)


def record(name: str) -> dict[str, Any]:
    """The vectors of every query and document, and the score of each pair [query, document]."""
    with tempfile.TemporaryDirectory() as folder:
        path = str(write_late(Path(folder), name))
        model = MultiVectorEncoder(path, device="cpu", model_kwargs={"dtype": torch.float32})
        queries = model.encode_query(list(QUERIES), convert_to_numpy=True)
        documents = model.encode_document(list(DOCUMENTS), convert_to_numpy=True)
        vectors = {f"query {i}": rows for i, rows in enumerate(queries)}
        vectors |= {f"document {i}": rows for i, rows in enumerate(documents)}
        return vectors | {"scores": model.similarity(queries, documents).numpy()}


if __name__ == "__main__":
    found = {f"{name}: {what}": array for name in FOLDERS for what, array in record(name).items()}
    np.savez_compressed(HERE / "late.npz", **found)
