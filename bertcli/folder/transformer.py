"""Read the settings of the Transformer module (sentence_bert_config.json): limit of tokens, lower case, tokenizer.

Rare keys are read in arguments.py. Not here: the network's own config.json (models/).
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from bertcli.folder.files import Folder, JsonSettings

# The files of a Transformer module's settings, named after the class that wrote them; the first that exists is read.
TRANSFORMER_FILES = tuple(
    f"sentence_{model_type}_config.json"
    for model_type in ("bert", "roberta", "distilbert", "camembert", "albert", "xlm-roberta", "xlnet")
)


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
    """Read the Transformer module's settings; the defaults without a file. Errors: BertcliError for one not applied."""
    config = transformer_config(network)
    limit, lower_case = config.positive("max_seq_length"), config.flag("do_lower_case", False)
    if config.keys() <= {"max_seq_length", "do_lower_case"}:
        return TransformerSettings(limit, lower_case)
    from bertcli.folder.arguments import read_arguments  # late: few folders have other settings

    arguments = read_arguments(config)
    return TransformerSettings(
        arguments.limit or limit, lower_case, arguments.tokenizer, arguments.task, arguments.chat
    )
