"""Record encode.npz: `python tests/reference/record_encode.py`, in an environment with sentence-transformers.

Recorded with sentence-transformers 6.2.0, transformers 5.23.0, torch 2.13.0.
"""
# mypy: disable-error-code="import-not-found"

import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import torch

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

from reference import encode_cases as cases  # noqa: E402
from sentence_transformers import SentenceTransformer, SparseEncoder  # noqa: E402

torch.set_num_threads(1)
EXACT = {"device": "cpu", "model_kwargs": {"dtype": torch.float32, "attn_implementation": "eager"}}


def main() -> None:
    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for case, (*_, options) in cases.PROMPTED.items():
            model = SentenceTransformer(str(cases.prompted(folder / case, case)), **EXACT)
            found[f"prompted.{case}"] = model.encode(list(cases.TEXTS), show_progress_bar=False, **options)
        for case in cases.SPARSE:
            encoder = SparseEncoder(str(cases.sparse(folder / f"sparse {case}", case)), **EXACT)
            vectors = encoder.encode(list(cases.TEXTS), show_progress_bar=False, convert_to_sparse_tensor=False)
            found[f"sparse.{case}"] = vectors.numpy()
    np.savez_compressed(HERE / "encode.npz", allow_pickle=False, **found)


if __name__ == "__main__":
    main()
