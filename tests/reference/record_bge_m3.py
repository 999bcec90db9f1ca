"""Record what FlagEmbedding makes of a small folder as bge-m3's, in bge_m3.json.

`python tests/reference/record_bge_m3.py` with torch and FlagEmbedding (recorded with FlagEmbedding 1.4.2 and
transformers 4.57.6). A pair at a time, since FlagEmbedding takes padding for a vector of zeros that a query may match.
"""
# mypy: disable-error-code="import-not-found"

import sys
import tempfile
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parent), str(HERE.parents[1])]

import torch  # noqa: E402
from FlagEmbedding import BGEM3FlagModel  # noqa: E402
from helpers.bge_m3 import DOCUMENTS, QUERIES, write_bge_m3  # noqa: E402
from helpers.json_files import write_json  # noqa: E402

from bertcli.weights.tensors import open_file  # noqa: E402

WEIGHTS = (0.4, 0.2, 0.4)
torch.set_num_threads(1)


def record() -> dict[str, Any]:
    """The three outputs of each text, and the five scores of each pair, by query."""
    with tempfile.TemporaryDirectory() as folder:
        path = write_bge_m3(Path(folder))
        for file in path.glob("*.pt"):  # torch refuses files without some entries that say nothing of the tensors
            tensors = {name: torch.from_numpy(tensor.float32().copy()) for name, tensor in open_file(file).items()}
            torch.save(tensors, file)
        model = BGEM3FlagModel(str(path), use_fp16=False, devices="cpu")
        found: dict[str, Any] = {"texts": {}, "scores": []}
        for text in (*QUERIES, *DOCUMENTS):
            made = model.encode([text], return_dense=True, return_sparse=True, return_colbert_vecs=True)
            found["texts"][text] = {
                "dense": numbers(made["dense_vecs"][0]),
                "sparse": {str(id): round(float(weight), 7) for id, weight in made["lexical_weights"][0].items()},
                "late": [numbers(row) for row in made["colbert_vecs"][0]],
            }
        for query in QUERIES:
            pairs = [[(query, document)] for document in DOCUMENTS]
            scores = [model.compute_score(pair, weights_for_different_modes=[*WEIGHTS]) for pair in pairs]
            found["scores"].append([{name: round(values[0], 7) for name, values in one.items()} for one in scores])
        return found


def numbers(row: Any) -> list[float]:
    return [round(float(number), 7) for number in row]


if __name__ == "__main__":
    write_json(HERE / "bge_m3.json", record())
