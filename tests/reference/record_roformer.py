"""Record what transformers makes of RoFormer with small random weights, for tests/examples/bertcli-roformer:
`python tests/reference/record_roformer.py` (recorded with transformers 5.23.0, torch 2.13.0).

roformer.npz has for each class its config.json, its tensors ("Model/tensors/…") and its outputs for IDS: states,
logits. Eager attention, float32, one thread.
"""

# mypy: disable-error-code="import-not-found"

import json
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers

CONFIG: dict[str, Any] = {
    "vocab_size": 40,
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 24,
    "max_position_embeddings": 32,
    "layer_norm_eps": 1e-12,
    "num_labels": 3,
}
CLASSES = {"Model": 16, "ForMaskedLM": 12, "ForSequenceClassification": 12}  # each with the size of its embeddings
IDS = [2, 11, 7, 4, 30, 19, 11, 3]


def record() -> dict[str, Any]:
    """The tensors and the outputs of every class."""
    torch.set_num_threads(1)
    found: dict[str, Any] = {"ids": np.array(IDS)}
    for seed, (name, width) in enumerate(CLASSES.items()):
        config = transformers.RoFormerConfig(**CONFIG, embedding_size=width, attn_implementation="eager")
        model = getattr(transformers, f"RoFormer{name}")(config).eval()
        torch.manual_seed(seed)
        with torch.no_grad():
            for parameter in filter(lambda one: one.requires_grad, model.parameters()):
                parameter.add_(0.3 * torch.randn_like(parameter))
            output = model(torch.tensor([IDS]), output_hidden_states=True)
        config.architectures = [type(model).__name__]
        found[f"{name}/config"] = np.array(json.dumps(config.to_dict()))
        for tensor, value in model.state_dict().items():
            found[f"{name}/tensors/{tensor}"] = value.numpy()
        found[f"{name}/states"] = output.hidden_states[-1][0].numpy()
        if "logits" in output:
            found[f"{name}/logits"] = output.logits[0].numpy()
    return found


if __name__ == "__main__":
    np.savez_compressed(Path(__file__).with_name("roformer.npz"), **record())
