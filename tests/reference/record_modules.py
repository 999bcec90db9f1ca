"""Records what sentence-transformers makes of the models in `modular.py`: `modules.json`. Needs PyTorch.

Recorded with sentence-transformers 6.2.0, transformers 5.23.0, torch 2.13.0.
"""
# mypy: disable-error-code="import-not-found"

import json
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from helpers.json_files import write_json
from helpers.modular import DOCUMENTS, QUERIES, QUERY, write_cross_encoder, write_router
from sentence_transformers import CrossEncoder, SparseEncoder


def listed(vectors: Any) -> list[dict[str, float]]:
    """The numbers of each vector that are not 0, by their index."""
    return [{str(i): weight for i, weight in enumerate(row) if weight} for row in vectors.to_dense().tolist()]


def main() -> None:
    with TemporaryDirectory() as name:
        folder = Path(name)
        scores = CrossEncoder(str(write_cross_encoder(folder / "a"))).predict([(QUERY, one) for one in DOCUMENTS])
        router = SparseEncoder(str(write_router(folder / "b")))
        queries, documents = router.encode_query(list(QUERIES)), router.encode_document(list(DOCUMENTS))
        products = router.similarity(queries, documents).tolist()
        folder = write_router(folder / "c")
        settings = {"model_type": "SparseEncoder", "prompts": {"query": "hot ", "document": ""}, "max_active_dims": 3}
        write_json(folder / "config_sentence_transformers.json", {**settings, "similarity_fn_name": "cosine"})
        router = SparseEncoder(str(folder))
        prompted = router.encode_query(list(QUERIES))
        every = {"max_active_dims": 10_000}
        pair = router.encode_query(list(QUERIES), **every), router.encode_document(list(DOCUMENTS), **every)
        cosines = router.similarity(*pair).tolist()
    recorded = {
        "scores": [float(score) for score in scores],
        "sparse": listed(documents),
        "queries": listed(queries),
        "products": products,
        "prompted queries": listed(prompted),
        "cosines": cosines,
    }
    (Path(__file__).parent / "modules.json").write_text(json.dumps(recorded, indent=1) + "\n")


if __name__ == "__main__":
    main()
