"""Record what transformers takes for the keys that a config.json lacks, with transformers (recorded with 5.24.0):
`python tests/reference/record_config_defaults.py`.
"""

# mypy: disable-error-code="import-not-found"

import json
import sys
from dataclasses import fields
from pathlib import Path
from typing import Any

from transformers import CONFIG_MAPPING

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parent.parent)]

from bertcli.models.registry import families, family  # noqa: E402


def defaults(model_type: str) -> dict[str, Any]:
    """The defaults of the keys that bertcli reads, by key; of rope_parameters the θ, by the type of layer."""
    every = CONFIG_MAPPING[model_type]().to_dict()
    config = family(model_type).config
    read = {item.name for item in fields(config)}.union(config.names) & every.keys()
    recorded = {key: every[key] for key in sorted(read) if not isinstance(every[key], list | dict)}
    rope = every.get("rope_parameters")
    if rope is not None:
        of_layers = {"full_attention": rope} if "rope_theta" in rope else rope
        recorded["rope_theta"] = {layers: parameters["rope_theta"] for layers, parameters in of_layers.items()}
    return recorded


def main() -> None:
    """Write config_defaults.json, by model_type."""
    types = sorted(name for member in families() for name in member.types if name in CONFIG_MAPPING)
    recorded = {model_type: defaults(model_type) for model_type in types}
    (HERE / "config_defaults.json").write_text(json.dumps(recorded, indent=1) + "\n")


if __name__ == "__main__":
    main()
