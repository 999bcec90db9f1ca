"""Records what sentence-transformers makes of the models in `modular.py`: `modules.json`. Needs PyTorch.

Recorded with sentence-transformers 6.2.0, transformers 5.23.0, torch 2.13.0.
"""
# mypy: disable-error-code="import-not-found"

import json
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

sys.path.insert(0, str(Path(__file__).parents[1]))

from helpers.modular import DOCUMENTS, QUERY, write_cross_encoder, write_router
from sentence_transformers import CrossEncoder, SparseEncoder


def main() -> None:
    with TemporaryDirectory() as name:
        folder = Path(name)
        scores = CrossEncoder(str(write_cross_encoder(folder / "a"))).predict([(QUERY, one) for one in DOCUMENTS])
        router = SparseEncoder(str(write_router(folder / "b")))
        weights = router.encode_document(list(DOCUMENTS)).to_dense().tolist()
    sparse = [{str(i): weight for i, weight in enumerate(row) if weight} for row in weights]
    recorded = {"scores": [float(score) for score in scores], "sparse": sparse}
    (Path(__file__).parent / "modules.json").write_text(json.dumps(recorded, indent=1) + "\n")


if __name__ == "__main__":
    main()
