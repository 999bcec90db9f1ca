"""Record parameters and matrix products of every family's variants as PyTorch counts them:
`python tests/reference/record_family_costs.py [model_type …]`, with torch and transformers (recorded with
transformers 5.23.0, torch 2.13.0). Models are built on the meta device, which needs no weights, or
on the processor where their code looks at numbers.
"""

# mypy: disable-error-code="import-not-found"

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
import transformers
from torch.utils.flop_counter import FlopCounterMode

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parent), str(HERE.parent.parent)]

from helpers.family_checkpoints import FAMILIES, architecture  # noqa: E402
from helpers.json_files import read_json  # noqa: E402
from reference import alibi_oracle, nomic_oracle  # noqa: E402

from bertcli.models.registry import variant_config, variants  # noqa: E402

UNCOUNTED = (
    ("modernbert", "multiple_choice"),  # its code looks at numbers, which the meta device does not have
    ("gemma3_text", "classifier"),  # computes logits of every token, to use those of the last
    ("qwen3", "classifier"),  # the same
    ("qwen2", "classifier"),
)
SHAPES = ((1, 16), (2, 128))
FINE_TUNED = ("classifier", "token_classifier", "multiple_choice")


def cases() -> Iterator[tuple[str, Any, str]]:
    """Every variant's base model, and every head of the first of each model_type."""
    seen = set()
    for name, member in variants().items():
        config = member.variant(name)
        if config.model_type in FAMILIES:
            heads = ("model",) if config.model_type in seen else FAMILIES[config.model_type].heads
            yield from ((name, config, head) for head in heads if (config.model_type, head) not in UNCOUNTED)
            seen.add(config.model_type)


def counted(config: Any, head: str, batch: int, sequence: int) -> dict[str, int]:
    """Parameters, shared ones once, and FLOPs of all matrix products in one pass, two for a multiply-accumulate."""
    left_out = ("id2label", "rope_parameters")  # which cost nothing
    keys = {key: value for key, value in vars(config).items() if key not in left_out and value not in (None, ())}
    keys = {key: list(value) if isinstance(value, tuple) else value for key, value in keys.items()}
    keys |= {"num_labels": 2, "attn_implementation": "eager"}
    if config.model_type.startswith("deberta"):
        keys["pad_token_id"] = None  # else it looks for padding in ids that have no numbers here
    if config.model_type in ("t5", "mt5", "umt5"):
        keys = {config.key(key): value for key, value in keys.items()}
        keys["feed_forward_proj"] = "gated-gelu" if config.is_gated else "relu"
    if config.model_type == "jina_bert":
        return oracle_counted(config, head, batch, sequence)
    if getattr(config, "moe_every_n_layers", 0):
        return experts_counted(config, batch, sequence)
    settings = transformers.AutoConfig.for_model(**keys)
    try:
        model, counter = passed(settings, config.model_type, head, (batch, sequence), "meta")
    except (NotImplementedError, RuntimeError):  # its code looks at numbers, which the meta device does not have
        model, counter = passed(settings, config.model_type, head, (batch, sequence), "cpu")
    params = sum(parameter.numel() for parameter in model.parameters())
    # ModernBERT's angles, an outer product of positions and rates, are written as a matrix product there.
    angles = [sum(ops.values()) for name, ops in counter.get_flop_counts().items() if name.endswith("rotary_emb")]
    return {"params": params, "matmul_flops": int(counter.get_total_flops() - sum(angles))}


def passed(settings: Any, model_type: str, head: str, shape: tuple[int, int], device: str) -> tuple[Any, Any]:
    """A model on a device, and the counter of the products of a pass through it."""
    with torch.device(device), torch.no_grad(), FlopCounterMode(display=False) as counter:
        model = getattr(transformers, architecture(model_type, head))(settings).eval().requires_grad_(False)
        ids = torch.zeros(shape, dtype=torch.long)
        model(ids[:, None] if head == "multiple_choice" else ids)
    return model, counter


def oracle_counted(config: Any, head: str, batch: int, sequence: int) -> dict[str, int]:
    """The same of the models that transformers lacks."""
    with torch.device("meta"), FlopCounterMode(display=False) as counter, torch.no_grad():
        model = alibi_oracle.Model(config, head, "code" if config.qk_norm else "jina")
        model(torch.zeros((batch, sequence), dtype=torch.long))
    params = sum(parameter.numel() for parameter in model.parameters())
    return {"params": params, "matmul_flops": int(counter.get_total_flops())}


def experts_counted(config: Any, batch: int, sequence: int) -> dict[str, int]:
    """NomicBERT with experts: all parameters, and the products of the experts that a token goes to.

    PyTorch computes all experts on the meta device: counted are those of a model that has as many as a token goes to,
    and the router's products with the others.
    """
    keys = {
        "n_embd": config.hidden_size, "n_layer": config.num_hidden_layers, "n_head": config.num_attention_heads,
        "n_inner": config.intermediate_size, "vocab_size": config.vocab_size, "layer_norm_epsilon": 1e-5,
        "type_vocab_size": config.type_vocab_size, "moe_every_n_layers": config.moe_every_n_layers,
        "rotary_emb_base": 10000.0, "moe_top_k": config.moe_top_k,
    }  # fmt: skip
    with torch.device("meta"), torch.no_grad():
        whole = nomic_oracle.Model(SimpleNamespace(**keys, num_experts=config.num_experts))
        few = nomic_oracle.Model(SimpleNamespace(**keys, num_experts=config.moe_top_k))
        with FlopCounterMode(display=False) as counter:
            few(torch.zeros((batch, sequence), dtype=torch.long))
    others = (config.num_experts - config.moe_top_k) * config.hidden_size * batch * sequence
    layers = sum(layer.has_experts for layer in whole.encoder["layers"])
    params = sum(parameter.numel() for parameter in whole.parameters())
    return {"params": params, "matmul_flops": int(counter.get_total_flops()) + 2 * others * layers}


def main() -> None:
    file, wanted = HERE / "family_costs.json", sys.argv[1:] or [*FAMILIES]
    known = read_json(file)
    lines = [json.dumps(one) for one in known if variant_config(one["variant"]).model_type not in wanted]
    for name, config, head in cases():
        if config.model_type not in wanted:
            continue
        for batch, sequence in SHAPES[: 1 + (head == "model")]:
            what = {"variant": name, "head": head, "batch": batch, "sequence": sequence}
            lines.append(json.dumps(what | counted(config, head, batch, sequence)))
    file.write_text("[\n" + ",\n".join(lines) + "\n]\n", encoding="utf-8")
    print(f"{len(lines)} cases")


if __name__ == "__main__":
    main()
