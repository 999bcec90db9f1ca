"""A key that config.json lacks has the default of transformers, in every family that transformers has, too."""

from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from helpers.json_files import read_json

from bertcli.models.registry import families, family, parse_config

RECORDED: dict[str, dict[str, Any]] = read_json(Path(__file__).parent.parent / "reference" / "config_defaults.json")
# None follows from other keys, in bertcli later than in transformers.
DERIVED: dict[str, Callable[[Any], int]] = {
    "num_key_value_heads": lambda config: config.num_attention_heads,
    "head_dim": lambda config: config.hidden_size // config.num_attention_heads,
    "pooler_hidden_size": lambda config: config.hidden_size,
}
# What stands for None in bertcli.
NONE = {"architectures": (), "pad_token_id": -1, "emb_layer_norm_before": False, "pos_att_type": ()}
# Every published model has these keys: without them bertcli refuses the file, or (the ids of tokens) transformers does.
GIVEN: dict[str, dict[str, Any]] = {
    "esm": {"vocab_size": 33, "position_embedding_type": "rotary", "mask_token_id": 32, "pad_token_id": 1},
    "deberta": {"relative_attention": True},
    "deberta-v2": {"relative_attention": True},
}
OF_THEIR_OWN = {"new", "jina_bert", "model2vec", "textbook"}  # types that transformers does not have


def test_config_defaults_are_recorded_of_all_families_of_transformers() -> None:
    types = {name for member in families() for name in member.types}
    missing = types - OF_THEIR_OWN - RECORDED.keys()
    assert not missing, f"run tests/reference/record_config_defaults.py, or add to OF_THEIR_OWN: {', '.join(missing)}"
    assert RECORDED.keys() == types - OF_THEIR_OWN


@pytest.mark.parametrize("model_type", RECORDED)
def test_config_defaults_are_those_of_transformers(model_type: str) -> None:
    recorded = {**RECORDED[model_type], **GIVEN.get(model_type, {})}
    theta = recorded.pop("rope_theta", None)
    config_class = family(model_type).config
    needed = {config_class.key(item.name) for item in fields(config_class) if item.metadata.get("needed")}
    given = {key: recorded[key] for key in needed | GIVEN.get(model_type, {}).keys()}
    config: Any = parse_config({"model_type": model_type, **given})
    if theta is not None:
        assert {layers: rope.rope_theta for layers, rope in config.rope_parameters.items()} == theta
    if not getattr(config, "use_sliding_window", True):
        assert recorded.pop("sliding_window") is None  # and bertcli does not read its own
    for key, default in recorded.items():
        ours = getattr(config, config.names.get(key, key))
        if ours is None and key in DERIVED:
            ours = DERIVED[key](config)
        assert ours == (NONE.get(key) if default is None else default), key
