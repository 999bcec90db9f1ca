"""Settings of the Transformer module of a sentence-transformers folder: limit of tokens, lower case, tokenizer."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from bertcli.folder.files import JsonSettings

# Where a Transformer module's settings are, by the class that wrote them; the first file that is there counts.
TRANSFORMER_FILES = tuple(
    f"sentence_{kind}_config.json"
    for kind in ("bert", "roberta", "distilbert", "camembert", "albert", "xlm-roberta", "xlnet")
)


class Transformer(NamedTuple):
    """The limit of tokens, which stands in place of the tokenizer's own, and whether texts are lower-cased first.

    `tokenizer` holds settings that stand in place of those in tokenizer_config.json. `task` is what the network is
    opened for, empty where none is named. `chat`: a pair of texts becomes messages, of which a chat template makes one
    text.
    """

    limit: int | None = None
    lower_case: bool = False
    tokenizer: Mapping[str, Any] = {}
    task: str = ""
    chat: bool = False


def read_transformer(config: JsonSettings) -> Transformer:
    """Read the Transformer module's file. Errors: BertcliError for a setting that is not applied."""
    limit, lower_case = config.positive("max_seq_length"), config.flag("do_lower_case", False)
    if config.keys() <= {"max_seq_length", "do_lower_case"}:
        return Transformer(limit, lower_case)
    from bertcli.folder.arguments import read_arguments  # few folders have more

    other_limit, tokenizer, task, chat = read_arguments(config)
    return Transformer(other_limit or limit, lower_case, tokenizer, task, chat)
