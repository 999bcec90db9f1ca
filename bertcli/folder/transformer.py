"""Read the settings of the Transformer module (sentence_bert_config.json): limit of tokens, lower case, task.

Of the arguments that sentence-transformers passes on to transformers, max_length is applied, and so are the keys that
tokenizer_config.json knows; all others are refused by name. Source: sentence-transformers 6. Not here: the network's
own config.json (models/).
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from bertcli.errors import quoted
from bertcli.folder.files import Folder, JsonSettings

# The files of a Transformer module's settings, named after the class that wrote them; the first that exists is read.
TRANSFORMER_FILES = tuple(
    f"sentence_{model_type}_config.json"
    for model_type in ("bert", "roberta", "distilbert", "camembert", "albert", "xlm-roberta", "xlnet")
)
# Arguments of a tokenizer's call. Those for padding have no effect: it does not change a text's results.
CALL_SETTINGS = {"max_length", "truncation", "padding", "pad_to_multiple_of", "return_tensors"}
# Arguments for opening a tokenizer, under the name of either version: these keys of tokenizer_config.json.
TOKENIZER_ARGUMENTS = ("processor_kwargs", "tokenizer_args")
TOKENIZER_SETTINGS = {
    "do_lower_case", "strip_accents", "tokenize_chinese_chars", "keep_accents", "split_by_punct", "add_prefix_space",
    "trim_offsets", "model_max_length", "truncation_side", "padding_side", "model_input_names", "split_special_tokens",
}  # fmt: skip
# Refused: they change config.json or the network, or take the tokenizer from another model.
REFUSED = ("config_kwargs", "config_args", "model_kwargs", "model_args", "tokenizer_name_or_path")
# The network's output for each task in transformers, and the names that sentence-transformers gives that output.
TASKS = {
    "feature-extraction": "last_hidden_state", "fill-mask": "logits", "sequence-classification": "logits",
    "text-generation": "logits",
}  # fmt: skip
OUTPUTS = ("token_embeddings", "scores", "causal_logits")
# Arguments for a chat template; none of the templates that bertcli reads uses them.
CHAT_SETTINGS = {"add_generation_prompt", "enable_thinking"}


class TransformerSettings(NamedTuple):
    """Settings of the Transformer module.

    limit        the limit of tokens, which overrides the tokenizer's
    lower_case   convert texts to lower case before tokenization
    tokenizer    settings that override those in tokenizer_config.json
    task         the network's task in transformers; empty if none is named
    chat         a pair of texts becomes chat messages, which a chat template turns into one text
    """

    limit: int | None = None
    lower_case: bool = False
    tokenizer: Mapping[str, Any] = {}
    task: str = ""
    chat: bool = False


def transformer_config(network: Folder) -> JsonSettings:
    """Read the file beside a network with the Transformer module's settings; empty without one."""
    return network.optional(next(filter(network.has, TRANSFORMER_FILES), TRANSFORMER_FILES[0]))


def read_transformer_settings(network: Folder) -> TransformerSettings:
    """Read the Transformer module's settings; the defaults without a file.

    Errors: BertcliError naming file and setting, for a setting that has an effect and is not applied.
    """
    config = transformer_config(network)
    limit, lower_case = config.positive("max_seq_length"), config.flag("do_lower_case", False)
    for key in REFUSED:
        if config.get(key):
            raise config.refused(key, ", which bertcli does not apply")
    tokenizer = _tokenizer_settings(config)
    task, chat = _task(config)
    own_limit = _max_length(config) or tokenizer.positive("model_max_length")
    return TransformerSettings(own_limit or limit, lower_case, tokenizer, task, chat)


def _tokenizer_settings(config: JsonSettings) -> JsonSettings:
    """Read the settings that override tokenizer_config.json."""
    for key in TOKENIZER_ARGUMENTS:
        value = config.get(key)
        if not value:
            continue
        if not isinstance(value, dict) or not value.keys() <= TOKENIZER_SETTINGS:
            raise config.refused(key, f"; bertcli applies {', '.join(sorted(TOKENIZER_SETTINGS))}")
        return JsonSettings(value, config.file)
    return JsonSettings({}, config.file)


def _processing(config: JsonSettings, group: str) -> JsonSettings:
    """Read a group of processing_kwargs ("text", "common", "chat_template"); empty if it is absent."""
    groups = config.get("processing_kwargs") or {}
    settings = groups.get(group) or {} if isinstance(groups, dict) else groups
    if not isinstance(settings, dict):
        raise config.refused("processing_kwargs", f"; {group} in it must be an object")
    return JsonSettings(settings, config.file)


def _max_length(config: JsonSettings) -> int | None:
    """Read the max_length of the tokenizer's call; None if there is none."""
    called = JsonSettings({**_processing(config, "text"), **_processing(config, "common")}, config.file)
    if called.keys() <= CALL_SETTINGS and called.get("truncation", True) in (True, "longest_first"):
        return called.positive("max_length")
    raise config.refused("processing_kwargs", "; of these bertcli applies max_length")


def _task(config: JsonSettings) -> tuple[str, bool]:
    """Read the network's task ("" if none is named), and whether texts become chat messages.

    Errors: BertcliError for an output other than the task's usual one.
    """
    task, modes = config.get("transformer_task") or "", config.get("modality_config")
    if not isinstance(task, str) or task not in ("", *TASKS):
        raise config.refused("transformer_task", f"; bertcli supports {', '.join(TASKS)}")
    of_text = {"method": "forward", "method_output_name": TASKS[task or "feature-extraction"]}
    of_messages = {**of_text, "format": "flat"}
    has_messages = isinstance(modes, dict) and modes.get("message") is not None
    if modes is not None:
        is_supported = isinstance(modes, dict) and modes.get("text") == of_text
        if not is_supported or (has_messages and modes["message"] != of_messages):
            raise config.refused("modality_config", f"; bertcli supports {quoted({'text': of_text})}")
    chat = _processing(config, "chat_template")
    if has_messages and not chat.keys() <= CHAT_SETTINGS:
        raise config.refused("processing_kwargs", f"; bertcli fills in no chat template with {quoted({**chat})}")
    config.one_of("module_output_name", OUTPUTS)
    return task, has_messages
