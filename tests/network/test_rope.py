"""How fast pairs turn, as transformers' ROPE_INIT_FUNCTIONS have it (see reference/record_rope.py)."""

from typing import Any

import numpy as np
import pytest
from helpers.recorded import recorded

from bertcli.models.registry import parse_config
from bertcli.models.rope import RotaryConfig

CASES = recorded("rope.json")
QWEN = {
    "model_type": "qwen3", "vocab_size": 100, "hidden_size": 128, "num_hidden_layers": 2, "num_attention_heads": 2,
    "intermediate_size": 16, "num_key_value_heads": 1, "head_dim": 64, "max_position_embeddings": 40960,
}  # fmt: skip


@pytest.mark.parametrize("key", ["rope_parameters", "rope_scaling"])
@pytest.mark.parametrize("number", range(len(CASES)))
def test_rope_turns_as_the_reference_does(number: int, key: str) -> None:
    case: dict[str, Any] = CASES[number]
    config = parse_config({**QWEN, key: case["parameters"]})
    assert isinstance(config, RotaryConfig)
    rope = config.ropes[1]
    np.testing.assert_allclose(rope.inverse_frequencies(64, 40960), case["rates"], rtol=2e-6)
    np.testing.assert_allclose(config.rope_scaling, [case["scaling"]] * 2, rtol=1e-7)


def test_rope_stretches_how_long_a_text_may_be() -> None:
    lengths = {
        rope["rope_type"]: parse_config({**QWEN, "rope_parameters": rope}).max_tokens
        for rope in (case["parameters"] for case in CASES)
        if rope.get("factor")
    }
    assert lengths == {"linear": 40960, "yarn": 131072}


def test_rope_of_nomic_reads_more_than_it_was_trained_on_only_where_it_is_stretched() -> None:
    """nomic-embed-text's config.json has 8192 positions, of which 2048 were trained."""
    nomic = {"model_type": "nomic_bert", "vocab_size": 100, "n_embd": 64, "n_layer": 2, "n_head": 2, "n_inner": 96}
    ropes: dict[str, dict[str, Any]] = {
        kind: {"rope_type": kind, "factor": 4.0, "original_max_position_embeddings": 2048}
        for kind in ("linear", "yarn")
    }
    lengths = {
        kind: parse_config({**nomic, "n_positions": 8192, "rope_parameters": rope}).max_tokens
        for kind, rope in {"default": {}, **ropes}.items()
    }
    assert lengths == {"default": 2048, "linear": 8192, "yarn": 8192}
    assert parse_config({**nomic, "n_positions": 512}).max_tokens == 512
