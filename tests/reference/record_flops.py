"""Record what PyTorch's own counter says of matrix products: `python tests/reference/record_flops.py`, with torch and
transformers (recorded with transformers 5.23.0, torch 2.13.0).

Models are built on the meta device: the counter reads shapes, so no weights are needed.
"""

# mypy: disable-error-code="import-not-found"

import json
from pathlib import Path
from random import Random
from typing import Any

import torch
import transformers
from torch.utils.flop_counter import FlopCounterMode

KINDS = {
    "pooler": "BertModel",
    "mlm": "BertForMaskedLM",
    "mlm,nsp": "BertForPreTraining",
    "nsp": "BertForNextSentencePrediction",
    "classifier": "BertForSequenceClassification",
}
BASE = {"vocab_size": 30522, "hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12,
        "intermediate_size": 3072, "num_labels": 2}  # fmt: skip


def counted(config: dict[str, int], heads: str, batch: int, sequence: int) -> int:
    """FLOPs of all matrix products in one pass, two for a multiply-accumulate."""
    settings = transformers.BertConfig(**config, max_position_embeddings=512)
    with torch.device("meta"), FlopCounterMode(display=False) as counter:
        model = getattr(transformers, KINDS[heads])(settings).eval()
        with torch.no_grad():
            model(torch.zeros((batch, sequence), dtype=torch.long))
    return int(counter.get_total_flops())


def case(config: dict[str, int], heads: str, batch: int, sequence: int) -> dict[str, Any]:
    return {"config": config, "heads": heads, "batch": batch, "sequence": sequence,
            "matmul_flops": counted(config, heads, batch, sequence)}  # fmt: skip


def random_case(random: Random) -> dict[str, Any]:
    heads = random.choice([1, 2, 3, 4, 8])
    config = {
        "vocab_size": random.randint(50, 3000), "hidden_size": heads * random.randint(2, 40),
        "num_hidden_layers": random.randint(1, 5), "num_attention_heads": heads,
        "intermediate_size": random.randint(8, 700), "num_labels": random.randint(1, 9),
    }  # fmt: skip
    return case(config, random.choice(list(KINDS)), random.randint(1, 6), random.randint(1, 512))


def main() -> None:
    random = Random(4)
    cases = [case(BASE, "pooler", 1, sequence) for sequence in (8, 128, 384, 512)]
    cases += [case(BASE, heads, 2, 128) for heads in KINDS]
    cases += [random_case(random) for _ in range(20)]
    text = ",\n".join(json.dumps(one) for one in cases)
    Path(__file__).with_name("flops.json").write_text(f"[\n{text}\n]\n", encoding="utf-8")


if __name__ == "__main__":
    main()
