"""The rarer arguments in sentence_bert_config.json: with what config.json, the tokenizer and the network are opened.

They are applied, known to change no number, or refused. Source of their meaning: sentence-transformers 6.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from bertcli.checkpoint.untrusted import JsonSettings, unusable
from bertcli.errors import shown

# What a tokenizer may be called with: padding does not change a text's numbers.
CALL_SETTINGS = {"max_length", "truncation", "padding", "pad_to_multiple_of", "return_tensors"}
# What a tokenizer may be opened with: these keys of tokenizer_config.json.
TOKENIZER_SETTINGS = {
    "do_lower_case", "strip_accents", "tokenize_chinese_chars", "keep_accents", "split_by_punct", "add_prefix_space",
    "trim_offsets", "model_max_length", "truncation_side", "padding_side", "model_input_names", "split_special_tokens",
}  # fmt: skip
# The arguments for config.json, the tokenizer and the network: their name, their older one, and which of them change
# no number here, where everything is computed in float32.
SOURCES = {"subfolder", "token", "use_auth_token", "cache_dir", "revision", "local_files_only", "trust_remote_code"}
COMPUTING = {"torch_dtype", "dtype", "attn_implementation", "output_attentions", "output_hidden_states", "return_dict"}
ARGUMENTS = {
    "config": (
        ("config_kwargs", "config_args"),
        SOURCES | COMPUTING | {"use_cache", "reference_compile", "unpad_inputs", "use_memory_efficient_attention"},
    ),
    "tokenizer": (("processor_kwargs", "tokenizer_args"), SOURCES | {"use_fast", "clean_up_tokenization_spaces"}),
    "network": (
        ("model_kwargs", "model_args"),
        SOURCES | COMPUTING | {"device_map", "low_cpu_mem_usage", "add_pooling_layer", "use_safetensors"},
    ),
}
# What the network gives, by its task, and what the module then calls it.
TASKS = {
    "feature-extraction": "last_hidden_state", "fill-mask": "logits", "sequence-classification": "logits",
    "text-generation": "logits",
}  # fmt: skip
OUTPUTS = ("token_embeddings", "scores", "causal_logits")
# Where texts become messages: their forms, and what a chat template is told that none which is read here asks for.
MESSAGES = ("flat", "structured")
CHAT_SETTINGS = {"add_generation_prompt", "enable_thinking"}


class Arguments(NamedTuple):
    """A limit in place of max_seq_length, settings in place of tokenizer_config.json's, and the network's task.

    `chat` is the form of messages, where texts go through a chat template.
    """

    limit: int | None
    tokenizer: Mapping[str, Any]
    task: str
    chat: str


def read_arguments(config: JsonSettings, model: Mapping[str, Any]) -> Arguments:
    """Those in the `config` of a Transformer module; `model` is what config.json holds.

    Errors: BertcliError naming the file, for an argument that is neither applied nor without effect.
    """
    if config.get("tokenizer_name_or_path") is not None:
        raise unusable(config.file, f"takes the tokenizer of {shown(config['tokenizer_name_or_path'])}")
    tokenizer = _arguments(config, "tokenizer")
    changed = {key for key, value in _arguments(config, "config").items() if model.get(key) != value}
    for part, keys in (
        ("tokenizer", tokenizer.keys() - TOKENIZER_SETTINGS),
        ("network", _arguments(config, "network")),
        ("config", changed),
    ):
        if keys:
            names, listed = " or ".join(ARGUMENTS[part][0]), ", ".join(sorted(map(shown, keys)))
            raise unusable(config.file, f"has {names} with {listed}")
    limit = _called_with(config) or tokenizer.positive("model_max_length")
    return Arguments(limit, tokenizer, *_task(config))


def _arguments(config: JsonSettings, part: str) -> JsonSettings:
    """The arguments with which config.json, tokenizer or network is opened, without those that change no number."""
    names, harmless = ARGUMENTS[part]
    groups = [config[name] or {} for name in names if name in config]
    if any(group != groups[0] or not isinstance(group, dict) for group in groups):
        raise unusable(config.file, f"has {' and '.join(names)} that are not the same object: {shown(groups)}")
    heeded = {key: value for key, value in (groups or [{}])[0].items() if key not in harmless}
    return JsonSettings(heeded, config.file)


def _called_with(config: JsonSettings) -> int | None:
    """The limit with which the tokenizer is called, if that is said."""
    settings = config.get("processing_kwargs") or {}
    groups = [settings.get(name) or {} for name in ("text", "common")] if isinstance(settings, dict) else [settings]
    if all(isinstance(group, dict) for group in groups):
        called = JsonSettings({key: value for group in groups for key, value in group.items()}, config.file)
        if called.keys() <= CALL_SETTINGS and called.get("truncation", True) in (True, "longest_first"):
            return called.positive("max_length")
    raise config.refused("processing_kwargs", "; of these bertcli applies max_length")


def _task(config: JsonSettings) -> tuple[str, str]:
    """The task that the network is opened for, if it is named, and the form of messages, if texts become such.

    The task's output must be the one that goes with it.
    """
    task, modes = config.get("transformer_task") or "", config.get("modality_config")
    if not isinstance(task, str) or task not in ("", *TASKS):
        raise config.refused("transformer_task", f"; bertcli supports {', '.join(TASKS)}")
    expected = {"method": "forward", "method_output_name": TASKS[task or "feature-extraction"]}
    text, messages = (modes.get("text"), modes.get("message")) if isinstance(modes, dict) else (modes, None)
    known = [None, *({**expected, "format": form} for form in MESSAGES)]
    if modes is not None and (text != expected or messages not in known):
        raise config.refused("modality_config", f"; bertcli supports {shown({'text': expected})}")
    chat = (config.get("processing_kwargs") or {}).get("chat_template") or {}
    if messages is not None and not {*chat} <= CHAT_SETTINGS:
        raise config.refused("processing_kwargs", f"; bertcli fills in no chat template with {shown(chat)}")
    config.one_of("module_output_name", OUTPUTS)
    return task, "" if messages is None else messages["format"]
