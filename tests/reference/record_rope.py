"""Record what ROPE_INIT_FUNCTIONS of transformers make, in rope.json: `python tests/reference/record_rope.py`
(recorded with transformers 5.23.0, torch 2.13.0).
"""

# mypy: disable-error-code="import-not-found"

import json
from pathlib import Path

from transformers import Qwen3Config
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

YARN = {"rope_type": "yarn", "rope_theta": 1000000.0, "factor": 4.0, "original_max_position_embeddings": 32768}
LONG = {"rope_type": "longrope", "rope_theta": 10000.0, "original_max_position_embeddings": 4096}
LONG |= {"short_factor": [1 + 0.1 * n for n in range(32)], "long_factor": [1.5 + n for n in range(32)]}
LLAMA = {"rope_type": "llama3", "rope_theta": 500000.0, "factor": 8.0, "original_max_position_embeddings": 8192}
CASES = [
    ({"rope_type": "linear", "rope_theta": 10000.0, "factor": 2.5}, 0),
    ({"rope_type": "dynamic", "rope_theta": 10000.0, "factor": 2.0}, 0),
    ({"rope_type": "dynamic", "rope_theta": 10000.0, "factor": 2.0}, 100000),
    (YARN, 0),
    ({**YARN, "attention_factor": 0.5, "beta_fast": 16.0, "beta_slow": 2.0}, 0),
    ({**YARN, "mscale": 0.7, "mscale_all_dim": 1.3, "truncate": False}, 0),
    ({**YARN, "rope_theta": 10.0, "factor": None}, 0),
    (LONG, 0),
    (LONG, 4097),
    ({**LONG, "factor": 16.0, "attention_factor": 1.25}, 4096),
    ({**LLAMA, "low_freq_factor": 1.0, "high_freq_factor": 4.0}, 0),
]
POSITIONS = 40960

if __name__ == "__main__":
    recorded = []
    for parameters, tokens in CASES:
        config = Qwen3Config(head_dim=64, max_position_embeddings=POSITIONS, rope_parameters=dict(parameters))
        rates, scaling = ROPE_INIT_FUNCTIONS[str(parameters["rope_type"])](config, seq_len=tokens or None)
        case = {"parameters": parameters, "tokens": tokens, "rates": rates.tolist(), "scaling": scaling}
        recorded.append(json.dumps(case, separators=(",", ":")))
    file = Path(__file__).parent / "rope.json"
    file.write_text("[\n" + ",\n".join(recorded) + "\n]\n", encoding="utf-8")
    print(f"{len(recorded)} cases")
