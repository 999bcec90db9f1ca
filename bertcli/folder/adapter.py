"""Settings of peft's adapters (LoRA): adapter_config.json, of which each key is applied, harmless, or refused.

Not here: the search for an adapter's base (companions.py), its tensors (weights/lora.py), and the adapters that lie in
a model's own folder (`FolderType.adapters`).
"""

import math
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from bertcli.errors import quoted
from bertcli.folder.files import Folder, JsonSettings, unusable

CONFIG_FILE = "adapter_config.json"
# Settings that are applied or checked.
HEEDED = {"peft_type", "task_type", "auto_mapping", "base_model_name_or_path", "revision", "r", "lora_alpha"}
HEEDED |= {"use_rslora", "alpha_pattern", "target_modules", "exclude_modules", "layers_to_transform"}
# These change nothing once an adapter is trained: its tensors say which modules there are, of which rank. All families
# have linear layers, whose weights peft never takes the other way around (fan_in_fan_out).
HARMLESS = {"rank_pattern", "modules_to_save", "bias", "fan_in_fan_out", "lora_dropout", "inference_mode"}
HARMLESS |= {"layers_pattern", "megatron_core", "qalora_group_size", "runtime_config", "peft_version"}
HARMLESS |= {"init_lora_weights", "eva_config"}
KEEPING = (True, False, None, "gaussian", "eva", "orthogonal")  # initializations that leave the base's weights alone

# How the name of the class ends that an adapter is for, by peft's task_type.
TASKS = {
    "SEQ_CLS": "ForSequenceClassification", "TOKEN_CLS": "ForTokenClassification",
    "QUESTION_ANS": "ForQuestionAnswering", "FEATURE_EXTRACTION": "Model", "CAUSAL_LM": "ForCausalLM",
}  # fmt: skip


class AdapterSettings(NamedTuple):
    """The settings of an adapter.

    base, revision   the model that it was trained on; empty if it is not named
    alpha            lora_alpha, of the weights that no pattern names
    alpha_pattern    lora_alpha by the end of a module's name
    rslora           the scale is alpha / sqrt(r), not alpha / r
    architectures    the class of the adapter's model, or how its name ends; none if the settings name neither
    saved            modules_to_save: copies of modules that replace the base's
    config           the file, for the settings that are checked against the tensors
    """

    base: str
    revision: str | None
    alpha: float
    alpha_pattern: Mapping[str, float]
    rslora: bool
    architectures: tuple[str, ...]
    saved: tuple[str, ...]
    config: JsonSettings


def read_adapter(folder: Folder) -> AdapterSettings:
    """Read adapter_config.json. Errors: BertcliError for a setting that changes results and is not applied."""
    config = folder.object(CONFIG_FILE)
    if config.get("peft_type") != "LORA":
        raise config.refused("peft_type", "; bertcli applies LORA")
    if config.get("init_lora_weights") not in KEEPING:
        raise config.refused("init_lora_weights", ", which change the base")
    for key, value in config.items():
        if key not in HEEDED | HARMLESS and value not in (None, False, [], {}):
            raise config.refused(key, ", which bertcli does not apply")
    saved = config.get("modules_to_save") or []
    if not isinstance(saved, list) or not all(isinstance(module, str) for module in saved):
        raise config.refused("modules_to_save")
    patterns = config.get("alpha_pattern") or {}
    # Patterns that are regular expressions are refused, not run: files are untrusted.
    if not isinstance(patterns, dict) or not all(re.fullmatch(r"\^?[\w.]+", key) for key in patterns):
        raise config.refused("alpha_pattern")
    base, revision = config.get("base_model_name_or_path"), config.get("revision")
    if not isinstance(base, str) or not isinstance(revision, str | None):
        base, revision = "", None
    return AdapterSettings(
        base=base,
        revision=revision,
        alpha=_alpha(config.get("lora_alpha", 8), config),
        alpha_pattern={key: _alpha(value, config) for key, value in patterns.items()},
        rslora=config.flag("use_rslora", False),
        architectures=_architectures(config),
        saved=tuple(saved),
        config=config,
    )


def _alpha(value: Any, config: JsonSettings) -> float:
    """Check a lora_alpha."""
    if type(value) not in (int, float) or not math.isfinite(value):
        raise unusable(config.file, f"has the lora_alpha {quoted(value)}")
    return float(value)


def _architectures(config: JsonSettings) -> tuple[str, ...]:
    """Find the class that the adapter was made for: the end of its name by task_type, else its name in auto_mapping."""
    mapping = config.get("auto_mapping")
    named = mapping.get("base_model_class") if isinstance(mapping, dict) else None
    class_name = TASKS.get(str(config.get("task_type"))) or named
    return (class_name,) if isinstance(class_name, str) and class_name else ()
