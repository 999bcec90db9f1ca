"""Adapters of peft (LoRA): find an adapter's base, and check its settings (adapter_config.json).

weights/lora.py reads its tensors.
"""

import logging
from collections.abc import Callable, Iterable, Sequence

from bertcli.errors import BertcliError, quoted
from bertcli.folder.files import Folder, JsonSettings, is_plain

logger = logging.getLogger("bertcli")

CONFIG_FILE = "adapter_config.json"
Find = Callable[..., Folder]  # `find_folder` of hub.py with the options of a call
# Settings that are applied or checked.
HEEDED = {"peft_type", "task_type", "auto_mapping", "base_model_name_or_path", "revision", "r", "lora_alpha"}
HEEDED |= {"use_rslora", "alpha_pattern", "target_modules", "exclude_modules", "layers_to_transform"}
# These change nothing once an adapter is trained: its tensors say which modules there are, of which rank. All families
# have linear layers, whose weights peft never takes the other way around (fan_in_fan_out).
HARMLESS = {"rank_pattern", "modules_to_save", "bias", "fan_in_fan_out", "lora_dropout", "inference_mode"}
HARMLESS |= {"layers_pattern", "megatron_core", "qalora_group_size", "runtime_config", "peft_version"}
HARMLESS |= {"init_lora_weights", "eva_config"}
KEEPING = (True, False, None, "gaussian", "eva", "orthogonal")  # initializations that leave the base's weights alone

# jina-embeddings-v5 has an adapter for each task, in adapters/TASK; its config.json lists the tasks (task_names).
TASKS_TYPE, TASKS_FOLDER = "jina_embeddings_v5", "adapters"


def task_adapters(folder: Folder) -> tuple[str, ...]:
    """List the tasks for which a folder has adapters; none for any model but jina-embeddings-v5."""
    if not (folder.path / TASKS_FOLDER).is_dir() or not folder.has("config.json"):
        return ()
    config = folder.object("config.json")
    names = config.get("task_names")
    if config.get("model_type") != TASKS_TYPE:
        return ()
    if not isinstance(names, list) or not all(isinstance(name, str) and is_plain(name) and name for name in names):
        raise config.refused("task_names", ", not a list of names of folders")
    return tuple(names)


def task_of_prompt(name: str | None, tasks: Iterable[str]) -> str | None:
    """Return the task in a prompt's name, such as "retrieval" in "retrieval.query"; None for a name without one."""
    if name is None:
        return None
    return next((task for task in tasks if name == task or name.startswith(f"{task}.")), None)


def with_task_adapter(folder: Folder, task: str) -> Folder:
    """Return the folder of jina-embeddings-v5 with a task's adapter."""
    return Folder(folder.path, adapter=Folder(folder.path / TASKS_FOLDER / task))


def adapter_needed(model: str, tasks: Sequence[str]) -> BertcliError:
    """Make the error for a model that was opened without a task."""
    return BertcliError(
        f"{model} has an adapter for each task, and none of its own: choose --adapter {', '.join(tasks)}; "
        f"or a prompt's name with its task (--prompt-name {tasks[0]}.query)."
    )


def has_adapter(folder: Folder) -> bool:
    return folder.has(CONFIG_FILE)


def with_adapter(folder: Folder, model: str, adapter: str, find: Find) -> Folder:
    """Return a model's folder with an adapter: one of its task adapters by name, or one that `find` finds.

    Errors: BertcliError for what is no adapter, and for a model that is an adapter itself.
    """
    if adapter in task_adapters(folder):
        return with_task_adapter(folder, adapter)
    other = find(adapter)
    if not has_adapter(other):
        raise BertcliError(f"{adapter} has no {CONFIG_FILE}, so it is no adapter of peft: use another with --adapter.")
    if has_adapter(folder):
        raise BertcliError(f"{model} is an adapter itself: give the model that it changes, or this adapter alone.")
    return Folder(folder.path, adapter=other)


def with_base(folder: Folder, model: str, find: Find) -> Folder:
    """Return an adapter's folder with that of its base, which its settings name and `find` finds.

    For a task's adapter inside a model's folder the base is that model. An adapter that was saved with
    sentence-transformers keeps its own modules; otherwise the base's folder has the adapter. Errors: BertcliError for
    a base that cannot be found, or is an adapter.
    """
    inside = _model_around(folder)
    if inside is not None:
        return Folder(inside.path, adapter=folder)
    name, revision = _base_of(folder)
    if is_plain(name) and (folder.path / name).is_dir():
        name = str(folder.path / name)
    logger.info("%s is an adapter (LoRA) of %s.", model, name)
    try:
        base = find(name, revision=revision)
    except BertcliError as error:
        raise BertcliError(f"{model} is an adapter. {error} Or give its base: -m BASE --adapter {model}.") from None
    if has_adapter(base):
        raise BertcliError(f"{model} is an adapter of {name}, which is an adapter itself: give the model below them.")
    return Folder(folder.path, base, folder) if folder.has("modules.json") else Folder(base.path, adapter=folder)


def _model_around(folder: Folder) -> Folder | None:
    """Find the folder of jina-embeddings-v5 that a task's adapter lies in; None for any other adapter."""
    path = folder.path.resolve()
    if path.parent.name != TASKS_FOLDER:
        return None
    model = Folder(path.parents[1])
    return model if path.name in task_adapters(model) else None


def _base_of(folder: Folder) -> tuple[str, str | None]:
    """Return the name of the model that an adapter was trained on, and its revision. Errors: BertcliError."""
    config = adapter_settings(folder)
    base, revision = config.get("base_model_name_or_path"), config.get("revision")
    if not isinstance(base, str) or not base or not isinstance(revision, str | None):
        raise BertcliError(f"{config.file} has the base_model_name_or_path {quoted(base)}: give the base with -m.")
    return base, revision


def adapter_settings(folder: Folder) -> JsonSettings:
    """Read adapter_config.json. Errors: BertcliError for a setting that changes results and is not applied."""
    config = folder.object(CONFIG_FILE)
    if config.get("peft_type") != "LORA":
        raise config.refused("peft_type", "; bertcli applies LORA")
    if config.get("init_lora_weights") not in KEEPING:
        raise config.refused("init_lora_weights", ", which change the base")
    for key, value in config.items():
        if key not in HEEDED | HARMLESS and value not in (None, False, [], {}):
            raise config.refused(key, ", which bertcli does not apply")
    return config
