"""The names of the files that a model is read from: a download fetches them, and no command writes over them."""

import re
from itertools import chain

from bertcli.folder import missing_files
from bertcli.folder.files import ADAPTER_FILES, WEIGHT_FILES
from bertcli.folder.folder_types import files_of_types

MODULE = r"(\w*\d_[\w-]+/|)"  # the folder of a module of sentence-transformers, or none
SMALL_FILES = re.compile(
    MODULE + r"((config|tokenizer|tokenizer_config|special_tokens_map|added_tokens|idf|sentence_[\w-]+_config)\.json"
    r"|(modules|config_sentence_transformers|router_config)\.json|chat_template\.jinja"
    rf"|{'|'.join(map(re.escape, files_of_types()))})"
    r"|(adapters/[\w-]+/|)adapter_config\.json",
    re.ASCII,
)
VOCABULARY = re.compile(MODULE + f"({'|'.join(map(re.escape, chain(*missing_files.TOKENIZER_FILES[1:])))})", re.ASCII)
SHARD = r"(pytorch_)?model-\d+-of-\d+\.(safetensors|bin)"
WEIGHTS = re.compile(
    rf"([\w-]+/)*({'|'.join(map(re.escape, (*WEIGHT_FILES, *ADAPTER_FILES)))}|{SHARD})",
    re.ASCII,
)


def is_of_model(name: str) -> bool:
    """True if a file of this name, in a model's folder, is one that the model is read from."""
    return any(names.fullmatch(name) for names in (SMALL_FILES, VOCABULARY, WEIGHTS))
