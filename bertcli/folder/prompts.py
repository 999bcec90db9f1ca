"""Read the prompts in config_sentence_transformers.json: by name, and the default one.

Not here: which of them a text gets, by its role (kinds/kind.py) or as the user asks (tasks/parts/prepared.py).
"""

from collections.abc import Iterable
from typing import Literal, NamedTuple

from bertcli.errors import BertcliError, quoted
from bertcli.folder.files import JsonSettings

MODEL_FILE = "config_sentence_transformers.json"
# What a text is to a search: something that is asked, something that is found, or neither.
Role = Literal["text", "query", "document"]
# Names that models give to the prompt of a role; the first that there is counts. sentence-transformers, by whose
# modules.json most folders are read, always has the first of them (`_with_empty_prompts`).
NAMES_OF_ROLE: dict[Role, tuple[str, ...]] = {
    "text": (), "query": ("query",), "document": ("document", "passage", "corpus"),
}  # fmt: skip


class Prompts(NamedTuple):
    """Prompts by name, and the text of the default prompt (default_prompt_name), "" without one."""

    named: dict[str, str]
    default: str


def read_prompts(config: JsonSettings, tasks: Iterable[str] = (), *, has_modules: bool = False) -> Prompts:
    """Read the prompts. Errors: BertcliError for prompts that are not texts, or a default that does not exist.

    tasks: those of a model with an adapter for each. Then every prompt also has a name with each task before it
    ("retrieval.query"), and the name of a task alone stands for the default prompt. A name in the file comes first.
    has_modules: sentence-transformers loads the folder by its modules.json, and puts its own prompts first.
    """
    file = config.file
    prompts, name = config.get("prompts") or {}, config.get("default_prompt_name")
    if not isinstance(prompts, dict) or not all(isinstance(prompt, str | None) for prompt in prompts.values()):
        raise BertcliError(f"{file} has the prompts {quoted(prompts)}, which are not texts by name: correct it.")
    prompts = {key: prompt or "" for key, prompt in prompts.items()}
    if name is not None and (not isinstance(name, str) or name not in prompts):
        raise BertcliError(f"{file} has the default_prompt_name {quoted(name)} but no such prompt: set it to null.")
    default = "" if name is None else prompts[name]
    if has_modules and config.get("model_type") != "CrossEncoder":
        prompts = _with_empty_prompts(prompts, default)
    of_tasks: dict[str, str] = {}
    for task in tasks:
        of_tasks[task] = default
        of_tasks |= {f"{task}.{key}": prompt for key, prompt in prompts.items()}
    return Prompts({**of_tasks, **prompts}, default)


def _with_empty_prompts(prompts: dict[str, str], default: str) -> dict[str, str]:
    """Add the empty prompts of queries and documents that sentence-transformers has, where they change a vector.

    Its models begin with "query" and "document", both empty, and a folder's prompts replace them by name. So texts of a
    role that the folder lacks get none: neither the default prompt, nor of documents that of "passage" or "corpus".
    """
    added = {}
    for own_name, *others in (NAMES_OF_ROLE["query"], NAMES_OF_ROLE["document"]):
        another = next((prompts[name] for name in others if name in prompts), default)
        if own_name not in prompts and another:
            added[own_name] = ""
    return prompts | added
