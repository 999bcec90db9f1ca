"""Small random folders of GLiNER2.5's models, as the library saves them."""

from pathlib import Path
from typing import Any

import numpy as np
from helpers.checkpoint_files import narrow, write_safetensors
from helpers.checkpoints import weights
from helpers.gliner2 import write_gliner2
from helpers.json_files import read_json, write_json

from bertcli.weights.tensors import open_file

# Small widths and pools, with all that published models have.
HEAD: dict[str, Any] = {
    "boundary_dim": 16, "pair_dim": 24, "boundary_refinement_layers": 2, "boundary_ffn_multiplier": 1.5,
    "boundary_attention_layers": 2, "boundary_attention_heads": 2, "boundary_attention_window": 3,
    "enable_span_content": True, "content_dim": 8, "candidate_pool": "shared", "pool_boundary_top_k": 6,
    "pool_size": 14, "min_pool_per_query": 2, "candidate_attention_layers": 0, "query_attention_layers": 0,
    "multihead_pair_compat_heads": 8, "enable_records": False, "enable_relations": False,
}  # fmt: skip
# Heads of the library that bertcli does not run: for records, relations, and another pool of spans.
UNUSED = ("boundary_head.boundary_proposer.", "boundary_head.pair_scorer.", "boundary_head.count_head.")
# Threshold and policy of the library: the largest sum of each type; entities inside others; all that are above.
MODES: dict[str, tuple[float, str | None]] = {
    "flat": (0.5, None), "surer": (0.9, None), "nested": (0.5, "nested"), "all": (0.5, "allow"),
}  # fmt: skip
CASES: dict[str, dict[str, Any]] = {
    "deberta-v2": {},
    "deberta-v2.plain": {
        "enable_span_content": False, "boundary_attention_layers": 0, "boundary_refinement_layers": 0,
        "pair_temperature": 1.5, "classification_temperature": 0.5, "overlap_policy": "nested",
        "enable_abstention": False,
    },
    "bert": {
        "backbone": "bert", "boundary_attention_window": 0, "pool_boundary_top_k": 32, "pool_size": 192,
        "abstention_threshold": 1.0, "pair_temperature": 3.0,
    },
    "modernbert": {"backbone": "modernbert", "min_pool_per_query": 0, "abstention_threshold": 0.45},
}  # fmt: skip


def write_gliner25(
    folder: Path,
    backbone: str = "deberta-v2",
    *,
    tokenizer: bool = True,
    absent: float | None = None,
    settings: dict[str, Any] | None = None,
    **head: Any,
) -> Path:
    """A folder of GLiNER2.5; returns it. tokenizer: its file has the library's own tokens. absent: the logit that the
    network gives for a type's absence. settings: over config.json's. head: over HEAD, or taken out where None.
    """
    write_gliner2(folder, backbone, tokenizer=tokenizer)
    written = read_json(folder / "config.json")
    for key in ("max_width", "counting_layer"):
        del written[key]
    of_head = {key: value for key, value in (HEAD | head).items() if value is not None}
    written |= {"architecture": "boundary", "config_version": 3, "boundary_head": of_head, **(settings or {})}
    write_json(folder / "config.json", written)
    stored = {name: tensor.float32() for name, tensor in open_file(folder / "model.safetensors").items()}
    hidden = read_json(folder / "encoder_config" / "config.json")["hidden_size"]
    tensors = {name: values for name, values in stored.items() if name.startswith("encoder.")}
    made = weights(head_shapes(hidden, of_head))
    heads = {name: narrow(scaled(name, values), "F32") for name, values in made.items()}
    heads["boundary_head.pair_scorer.inside_weight"] = np.array(1, np.float32)
    if absent is not None:
        heads["boundary_head.null_projection.weight"][:] = 0
        heads["boundary_head.null_projection.bias"][:] = absent
    typed = {name: ("F32", np.ascontiguousarray(values)) for name, values in (tensors | heads).items()}
    write_safetensors(folder / "model.safetensors", typed)
    return folder


def scaled(name: str, values: Any) -> Any:
    """Logits about as large as a trained model's: sums of several terms, of which some count all words of a span."""
    if "query_projection" in name:
        return values * 0.25
    return values * (0.5 if ".film_output.3" in name or "null_projection" in name else 1)


def head_shapes(hidden: int, head: dict[str, Any]) -> dict[str, tuple[int, ...]]:
    """The tensors beside the backbone's, as the library names them."""
    shapes: dict[str, tuple[int, ...]] = {}

    def linear(name: str, outputs: int, inputs: int) -> None:
        shapes[f"{name}.weight"], shapes[f"{name}.bias"] = (outputs, inputs), (outputs,)

    def norm(name: str, width: int) -> None:
        shapes[f"{name}.weight"] = shapes[f"{name}.bias"] = (width,)

    width, pair, content = head["boundary_dim"], head["pair_dim"], head["content_dim"]
    inside = int(width * head["boundary_ffn_multiplier"])
    linear("classifier.0", 2 * hidden, hidden)
    linear("classifier.3", 1, 2 * hidden)
    of = "boundary_head.boundary_encoder."
    shapes[f"{of}bos_state"] = shapes[f"{of}eos_state"] = (hidden,)
    linear(f"{of}left_projection", width, hidden)
    linear(f"{of}right_projection", width, hidden)
    linear(f"{of}output_projection", width, 2 * width)
    norm(f"{of}layer_norm", width)
    for number in range(head["boundary_attention_layers"]):
        norm(f"{of}attention_blocks.{number}.norm", width)
        linear(f"{of}attention_blocks.{number}.qkv_projection", 3 * width, width)
        linear(f"{of}attention_blocks.{number}.output_projection", width, width)
    for number in range(head["boundary_refinement_layers"]):
        norm(f"{of}refinement_blocks.{number}.norm", width)
        linear(f"{of}refinement_blocks.{number}.input_projection", 2 * inside, width)
        linear(f"{of}refinement_blocks.{number}.output_projection", width, inside)
    of = "boundary_head.boundary_query_head."
    for name in ("start_boundary", "end_boundary"):
        linear(f"{of}{name}_projection", width, width)
    for name in ("start_query", "end_query", "inside_text", "inside_query"):
        linear(f"{of}{name}_projection", width, hidden)
    for part, has in {"shared_pool_scorer": True, "pair_scorer": False}.items():
        of = f"boundary_head.{part}."
        if head["enable_span_content"]:
            linear(f"{of}content_pooler.value_projection", content, hidden)
            norm(f"{of}content_pooler.layer_norm", content)
            if has:
                linear(f"{of}content_projection", pair, content)
            else:
                linear(f"{of}content_query_projection", content, hidden)
                linear(f"{of}content_bias", 1, content)
    # Of the library's other pool of spans, which a model with a shared one has, too.
    of = "boundary_head.boundary_proposer."
    linear(f"{of}start_pair_projection", width, width)
    linear(f"{of}end_key_projection", width, width)
    linear(f"{of}start_query_projection", width, hidden)
    of = "boundary_head.pair_scorer."
    linear(f"{of}start_endpoint_projection", pair, width)
    linear(f"{of}end_endpoint_projection", pair, width)
    linear(f"{of}query_gate", pair, hidden)
    linear(f"{of}length_query_projection", 3, hidden)
    linear(f"{of}compat_mix", 1, 8)
    if head.get("enable_abstention", True):
        linear("boundary_head.null_projection", 1, hidden)
    linear("boundary_head.count_head", 1, hidden)
    for name in ("start", "end"):
        linear(f"boundary_head.shared_pool_builder.{name}_projection", width, width)
        linear(f"boundary_head.shared_pool_scorer.{name}_projection", pair, width)
    of = "boundary_head.shared_pool_scorer."
    linear(f"{of}length_projection", pair, 3)
    linear(f"{of}prior_projection", pair, 1)
    norm(f"{of}candidate_norm", pair)
    linear(f"{of}query_projection", pair, hidden)
    linear(f"{of}film", 2 * pair, pair)
    linear(f"{of}film_output.0", 64, pair)
    linear(f"{of}film_output.3", 1, 64)
    return shapes
