"""Record what ROPE_INIT_FUNCTIONS of transformers make, in rope.json: `python tests/reference/record_rope.py`
(recorded with transformers 5.23.0, torch 2.13.0).
"""

# mypy: disable-error-code="import-not-found"

import json
from pathlib import Path

from transformers import Qwen3Config
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

YARN = {"rope_type": "yarn", "rope_theta": 1000000.0, "factor": 4.0, "original_max_position_embeddings": 32768}
CASES = [
    {"rope_type": "linear", "rope_theta": 10000.0, "factor": 2.5},
    YARN,
    {**YARN, "attention_factor": 0.5, "beta_fast": 16.0, "beta_slow": 2.0},
    {**YARN, "mscale": 0.7, "mscale_all_dim": 1.3, "truncate": False},
    {**YARN, "rope_theta": 10.0, "factor": None},
]
POSITIONS = 40960

if __name__ == "__main__":
    recorded = []
    for parameters in CASES:
        config = Qwen3Config(head_dim=64, max_position_embeddings=POSITIONS, rope_parameters=dict(parameters))
        rates, scaling = ROPE_INIT_FUNCTIONS[str(parameters["rope_type"])](config)
        case = {"parameters": parameters, "rates": rates.tolist(), "scaling": scaling}
        recorded.append(json.dumps(case, separators=(",", ":")))
    file = Path(__file__).parent / "rope.json"
    file.write_text("[\n" + ",\n".join(recorded) + "\n]\n", encoding="utf-8")
    print(f"{len(recorded)} cases")
