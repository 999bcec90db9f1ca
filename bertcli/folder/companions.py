"""Models in two folders: find an adapter's base, the adapter to apply to a model, the backbone of a GLiNER model.

hub.py calls these with its own `find_folder`, and gets a Folder with its `base` and `adapter`. What the settings
mean is not here: adapter.py and gliner.py.
"""

import logging
from collections.abc import Callable

from bertcli.errors import BertcliError, quoted
from bertcli.folder.adapter import (
    CONFIG_FILE,
    TASKS_FOLDER,
    has_adapter,
    read_adapter,
    task_adapters,
)
from bertcli.folder.files import Folder, is_plain
from bertcli.folder.layout import Layout

logger = logging.getLogger("bertcli")

Find = Callable[..., Folder]  # `find_folder` of hub.py with the options of a call


def with_adapter(folder: Folder, model: str, adapter: str, find: Find) -> Folder:
    """Return a model's folder with an adapter that `find` finds.

    Errors: BertcliError for what is no adapter, and for a model that is an adapter itself.
    """
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
    settings = read_adapter(folder)
    if not settings.base:
        config = settings.config
        named = quoted(config.get("base_model_name_or_path"))
        raise BertcliError(f"{config.file} has the base_model_name_or_path {named}: give the base with -m.")
    name = _nested(folder, settings.base)
    logger.info("%s is an adapter (LoRA) of %s.", model, name)
    try:
        base = find(name, revision=settings.revision)
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


def with_backbone(layout: Layout, model: str, find: Find) -> Folder:
    """Return a GLiNER model's folder, with that of its backbone if it lacks a tokenizer or the configuration.

    Errors: BertcliError if that is not to be had, and for a model that bertcli does not run.
    """
    folder, settings = layout.folder, layout.gliner
    assert settings is not None
    has_config = settings.encoder_config is not None or folder.has("config.json")
    if layout.has_tokenizer and has_config:
        return folder
    name = _nested(folder, settings.model_name)
    logger.info("%s is a GLiNER model on %s, whose tokenizer it uses.", model, name)
    try:
        base = find(name, weights=False)
    except BertcliError as error:
        raise BertcliError(
            f"{model} is a GLiNER model without a tokenizer of its own, and needs that of {quoted(name)}. {error} Or "
            "put the config.json and the tokenizer's files of that model into the folder."
        ) from None
    return Folder(folder.path, base)


def _nested(folder: Folder, name: str) -> str:
    """Return the path of a model that lies within a folder under this name; else the name as it is."""
    return str(folder.path / name) if name and is_plain(name) and (folder.path / name).is_dir() else name
