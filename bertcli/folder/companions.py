"""Models in two folders: find an adapter's base, the adapter to apply to a model, the backbone that a model stands on.

hub.py asks. What the settings mean is not here: adapter.py, and for a type of folder the kind that brings it
(folder_types.py).
"""

import logging
from collections.abc import Callable
from pathlib import Path

from bertcli.errors import BertcliError, quoted
from bertcli.folder.adapter import CONFIG_FILE, read_adapter
from bertcli.folder.files import Folder, is_plain
from bertcli.folder.folder_types import adapter_for, adapters_in, files_that_name_backbones
from bertcli.folder.layout import Layout
from bertcli.folder.modules import MODULES_FILE

logger = logging.getLogger("bertcli")

Find = Callable[..., Folder]  # `find(name, revision=…, weights=…)`, by which `Source.find` finds one folder


def with_companions(
    folder: Folder, model: str, adapter: str | None, prompt_name: str | None, find: Find, weights: bool
) -> Folder:
    """Find the other folders that the model in `folder` needs, and return it with them, as base or as adapter.

    model         the model as the user named it, for messages
    adapter       the adapter to apply: a folder or Hub id that `find` finds, or the task of one that lies in the folder
    prompt_name   chooses such a task where no adapter is given: "retrieval.query" chooses "retrieval"
    weights       false where only the tokenizer is needed, which all tasks share

    Errors: BertcliError for what is no adapter, a base that is not to be had, and a model that needs a task.
    """
    own = adapters_in(folder)
    chosen = adapter_for(prompt_name, own) if adapter is None else own.get(adapter)
    if chosen is not None:
        return Folder(folder.path, adapter=chosen)
    if adapter is not None:
        return _find_adapter(folder, model, adapter, find)
    # By names alone: the type is told by what is in the files, and `info` shows folders whose files are damaged, too.
    if any(map(folder.has, files_that_name_backbones())):
        return _find_backbone(Layout(folder), model, find)
    if folder.has(CONFIG_FILE):
        return _find_base(folder, model, find)
    if own and weights:
        first = next(iter(own))
        raise BertcliError(
            f"{model} has an adapter for each task, and none of its own: choose one as in NAME+{first} "
            f"({', '.join(own)}), or a prompt's name with its task (--prompt-name {first}.query)."
        )
    return folder


def _find_adapter(folder: Folder, model: str, adapter: str, find: Find) -> Folder:
    """Find an adapter to apply to a model. Errors: for what is no adapter, and a model that is an adapter itself."""
    other = find(adapter)
    if not other.has(CONFIG_FILE):
        raise BertcliError(f"{adapter} has no {CONFIG_FILE}, so it is no adapter of peft: give another.")
    if folder.has(CONFIG_FILE):
        raise BertcliError(f"{model} is an adapter itself: give the model that it changes, or this adapter alone.")
    return Folder(folder.path, adapter=other)


def _find_base(folder: Folder, model: str, find: Find) -> Folder:
    """Find the base of the adapter in a folder, which its settings name.

    A task's adapter that lies inside a model's folder has that model as its base. If sentence-transformers saved the
    adapter, its folder has modules.json, and its modules are taken; else those of the base. Errors: BertcliError for a
    base that cannot be found, or is an adapter.
    """
    around = _model_around(folder)
    if around is not None:
        return Folder(around, adapter=folder)
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
        raise BertcliError(f"{model} is an adapter. {error} Or give its base: -m BASE+{model}.") from None
    if base.has(CONFIG_FILE):
        raise BertcliError(f"{model} is an adapter of {name}, which is an adapter itself: give the model below them.")
    if folder.has(MODULES_FILE):
        return Folder(folder.path, base, folder)
    return Folder(base.path, adapter=folder)


def _model_around(folder: Folder) -> Path | None:
    """Find the model's folder that a task's adapter lies in; None for any other adapter."""
    path = folder.path.resolve()
    model = path.parent.parent
    return model if path in [adapter.path for adapter in adapters_in(Folder(model)).values()] else None


def _find_backbone(layout: Layout, model: str, find: Find) -> Folder:
    """Find the backbone of a model that lacks a tokenizer or the configuration, as its base.

    Errors: BertcliError if it is not to be had, and for a model that bertcli does not run.
    """
    folder, title = layout.folder, layout.folder_type.title
    backbone = layout.folder_type.backbone(folder, layout.type_settings)
    if layout.has_tokenizer and backbone.has_config:
        return folder
    name = _nested(folder, backbone.name)
    lacking = "configuration" if layout.has_tokenizer else "tokenizer"
    logger.info("%s is a %s model on %s, whose %s it uses.", model, title, name, lacking)
    try:
        base = find(name, weights=False)
    except BertcliError as error:
        raise BertcliError(
            f"{model} is a {title} model without a {lacking} of its own, and needs that of {quoted(name)}. {error} Or "
            "put the config.json and the tokenizer's files of that model into the folder."
        ) from None
    return Folder(folder.path, base)


def _nested(folder: Folder, name: str) -> str:
    """Return the path of a model that lies within a folder under this name; else the name as it is."""
    return str(folder.path / name) if name and is_plain(name) and (folder.path / name).is_dir() else name
