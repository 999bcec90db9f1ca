"""The prompts that a sentence-transformers folder defines, and those that are put before texts unasked."""

from bertcli.errors import BertcliError, shown
from bertcli.folder.layout import MODEL_FILE
from bertcli.folder.model_folder import Folder


def read_prompts(folder: Folder) -> tuple[dict[str, str], str]:
    """The prompts by name, and the one that default_prompt_name prepends to every text."""
    config = folder.optional(MODEL_FILE)
    file = config.file
    prompts, name = config.get("prompts") or {}, config.get("default_prompt_name")
    if not isinstance(prompts, dict) or not all(isinstance(prompt, str | None) for prompt in prompts.values()):
        raise BertcliError(f"{file} has the prompts {shown(prompts)}, which are not texts by name: correct it.")
    prompts = {key: prompt or "" for key, prompt in prompts.items()}
    if name is not None and (not isinstance(name, str) or name not in prompts):
        raise BertcliError(f"{file} has the default_prompt_name {shown(name)} but no such prompt: set it to null.")
    return prompts, "" if name is None else prompts[name]


def read_query_prompt(folder: Folder) -> str:
    """What a cross-encoder wants before the first text of a pair; nothing for any other model."""
    kind = folder.optional(MODEL_FILE).get("model_type")
    return read_prompts(folder)[1] if kind == "CrossEncoder" else ""
