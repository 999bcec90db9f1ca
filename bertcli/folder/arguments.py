"""The rarer settings in sentence_bert_config.json: how the tokenizer is opened and called, and the network's task.

A limit of tokens is applied, and settings of the tokenizer that tokenizer_config.json may have, too. Whatever else
would be passed on to transformers is refused by name. Source of the meaning: sentence-transformers 6.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from bertcli.errors import quoted
from bertcli.folder.files import JsonSettings

# What a tokenizer may be called with: padding does not change a text's numbers.
CALL_SETTINGS = {"max_length", "truncation", "padding", "pad_to_multiple_of", "return_tensors"}
# What a tokenizer may be opened with, under either name: these keys of tokenizer_config.json.
TOKENIZER_ARGUMENTS = ("processor_kwargs", "tokenizer_args")
TOKENIZER_SETTINGS = {
    "do_lower_case", "strip_accents", "tokenize_chinese_chars", "keep_accents", "split_by_punct", "add_prefix_space",
    "trim_offsets", "model_max_length", "truncation_side", "padding_side", "model_input_names", "split_special_tokens",
}  # fmt: skip
# What would change config.json, the network or the tokenizer's origin.
REFUSED = ("config_kwargs", "config_args", "model_kwargs", "model_args", "tokenizer_name_or_path")
# What the network gives, by its task, and what the module then calls it.
TASKS = {
    "feature-extraction": "last_hidden_state", "fill-mask": "logits", "sequence-classification": "logits",
    "text-generation": "logits",
}  # fmt: skip
OUTPUTS = ("token_embeddings", "scores", "causal_logits")
# What a chat template is told, and none that is read here asks for.
CHAT_SETTINGS = {"add_generation_prompt", "enable_thinking"}


class Arguments(NamedTuple):
    """A limit in place of max_seq_length, settings in place of tokenizer_config.json's, and the network's task.

    `chat`: texts become messages, of which a chat template makes one text.
    """

    limit: int | None
    tokenizer: Mapping[str, Any]
    task: str
    chat: bool


def read_arguments(config: JsonSettings) -> Arguments:
    """Those in the settings of a Transformer module.

    Errors: BertcliError naming file and setting, for one that is neither applied nor without effect.
    """
    for key in REFUSED:
        if config.get(key):
            raise config.refused(key, ", which bertcli does not apply")
    tokenizer = _tokenizer_settings(config)
    task, chat = _task(config)
    return Arguments(_max_length(config) or tokenizer.positive("model_max_length"), tokenizer, task, chat)


def _tokenizer_settings(config: JsonSettings) -> JsonSettings:
    """Settings in place of those in tokenizer_config.json."""
    for key in TOKENIZER_ARGUMENTS:
        value = config.get(key)
        if not value:
            continue
        if not isinstance(value, dict) or not value.keys() <= TOKENIZER_SETTINGS:
            raise config.refused(key, f"; bertcli applies {', '.join(sorted(TOKENIZER_SETTINGS))}")
        return JsonSettings(value, config.file)
    return JsonSettings({}, config.file)


def _processing(config: JsonSettings, group: str) -> JsonSettings:
    """A group of what the tokenizer is called with; empty where it is not given."""
    groups = config.get("processing_kwargs") or {}
    settings = groups.get(group) or {} if isinstance(groups, dict) else groups
    if not isinstance(settings, dict):
        raise config.refused("processing_kwargs", f"; {group} in it must be an object")
    return JsonSettings(settings, config.file)


def _max_length(config: JsonSettings) -> int | None:
    """The limit with which the tokenizer is called, if there is one."""
    called = JsonSettings({**_processing(config, "text"), **_processing(config, "common")}, config.file)
    if called.keys() <= CALL_SETTINGS and called.get("truncation", True) in (True, "longest_first"):
        return called.positive("max_length")
    raise config.refused("processing_kwargs", "; of these bertcli applies max_length")


def _task(config: JsonSettings) -> tuple[str, bool]:
    """The task that the network is opened for, if it is named, and whether texts become messages.

    The task's output must be the one that goes with it.
    """
    task, modes = config.get("transformer_task") or "", config.get("modality_config")
    if not isinstance(task, str) or task not in ("", *TASKS):
        raise config.refused("transformer_task", f"; bertcli supports {', '.join(TASKS)}")
    expected = {"method": "forward", "method_output_name": TASKS[task or "feature-extraction"]}
    text, messages = (modes.get("text"), modes.get("message")) if isinstance(modes, dict) else (modes, None)
    if modes is not None and (text != expected or messages not in (None, {**expected, "format": "flat"})):
        raise config.refused("modality_config", f"; bertcli supports {quoted({'text': expected})}")
    chat = _processing(config, "chat_template")
    if messages is not None and not chat.keys() <= CHAT_SETTINGS:
        raise config.refused("processing_kwargs", f"; bertcli fills in no chat template with {quoted({**chat})}")
    config.one_of("module_output_name", OUTPUTS)
    return task, messages is not None
