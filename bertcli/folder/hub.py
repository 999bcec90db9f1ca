"""Find the folder of a model by its name: an existing folder, a bundled sample, the Hugging Face cache, a download."""

import logging
import os
import re
import warnings
from pathlib import Path
from typing import Any

from bertcli.errors import BertcliError, nearest, quoted
from bertcli.folder.files import Folder, is_plain

logger = logging.getLogger("bertcli")

ADAPTER_FILE, GLINER_FILE = "adapter_config.json", "gliner_config.json"
SAMPLES = ("bert-mini-mlm", "bert-mini-sentiment", "bert-mini-sentence")

# The Hub's rule for names: letters, digits, "_", "-" and ".", no "-" or "." at either end; no "--", ".." or ".git".
HUB_ID = re.compile(r"(?!.*(?:--|\.\.))(?!.*\.git$)(?:\b[\w.-]{1,96}\b/)?\b[\w.-]{1,96}\b", re.ASCII)
REVISION = re.compile(r"(?!.*(?:\.\.|//))\w[\w./+-]{0,254}(?<![/.])", re.ASCII)  # becomes a path below refs/


def find_model(
    model: str,
    *,
    revision: str | None = None,
    cache_dir: str | Path | None = None,
    offline: bool = False,
    progress: bool = False,
    weights: bool = True,
    adapter: str | Path | None = None,
) -> Folder:
    """Find the folder of a model. If it is an adapter, find its base too; `adapter` is one to apply to the model.

    Other arguments and errors are those of `find_folder`.
    """
    options: dict[str, Any] = {"cache_dir": cache_dir, "offline": offline, "progress": progress, "weights": weights}
    folder = find_folder(model, revision=revision, **options)
    if adapter is None and folder.has(GLINER_FILE):
        return _with_backbone(folder, model, options)
    if adapter is None and not folder.has(ADAPTER_FILE) and not (folder.path / "adapters").is_dir():
        return folder
    from bertcli.folder.adapter import TASKS_FOLDER, base_of, has_adapter, task_adapters, task_base

    tasks = task_adapters(folder)
    if adapter is not None and str(adapter) in tasks:
        return Folder(folder.path, adapter=Folder(folder.path / TASKS_FOLDER / str(adapter)))
    if adapter is None and tasks and weights:
        names = ", ".join(tasks)
        raise BertcliError(f"{model} has an adapter for each task, and none of its own: choose --adapter {names}.")
    if adapter is None and not folder.has(ADAPTER_FILE):
        return folder
    if adapter is not None:
        other = find_folder(str(adapter), **options)
        if not has_adapter(other):
            raise BertcliError(f"{adapter} has no {ADAPTER_FILE}: it is no adapter of peft.")
        if has_adapter(folder):
            raise BertcliError(f"{model} is an adapter itself: give the model that it changes, or this adapter alone.")
        return Folder(folder.path, adapter=other)
    above = task_base(folder)
    if above is not None:
        return Folder(above.path, adapter=folder)
    name, of_base = base_of(folder)
    inside = folder.path / name
    if is_plain(name) and inside.is_dir():
        name = str(inside)
    logger.info("%s is an adapter (LoRA) of %s.", model, name)
    try:
        base = find_folder(name, revision=of_base, **options)
    except BertcliError as error:
        raise BertcliError(f"{model} is an adapter. {error} Or give its base: -m BASE --adapter {model}.") from None
    if has_adapter(base):
        raise BertcliError(f"{model} is an adapter of {name}, which is an adapter itself: give the model below them.")
    return Folder(folder.path, base, folder) if folder.has("modules.json") else Folder(base.path, adapter=folder)


def _with_backbone(folder: Folder, model: str, options: dict[str, Any]) -> Folder:
    """Add to a GLiNER folder the one of its backbone, if it lacks a tokenizer or the backbone's configuration.

    Errors: BertcliError if that is not to be had.
    """
    from bertcli.folder.gliner import is_whole, read_gliner

    settings = read_gliner(folder)
    if settings is None or is_whole(folder):
        return folder
    name = settings.model_name
    inside = folder.path / name
    if name and is_plain(name) and inside.is_dir():
        name = str(inside)
    logger.info("%s is a GLiNER model on %s, whose tokenizer it uses.", model, name)
    try:
        base = find_folder(name, **{**options, "weights": False})
    except BertcliError as error:
        raise BertcliError(
            f"{model} is a GLiNER model without a tokenizer of its own, and needs that of {quoted(name)}. {error} Or "
            "put the config.json and the tokenizer's files of that model into the folder."
        ) from None
    return Folder(folder.path, base)


def find_folder(
    model: str,
    *,
    revision: str | None = None,
    cache_dir: str | Path | None = None,
    offline: bool = False,
    progress: bool = False,
    weights: bool = True,
) -> Folder:
    """Find a folder by its path or Hub id: on disk, among the bundled samples, in the cache, else by a download.

    `revision` is a branch, tag or commit on the Hub (default main); `cache_dir` replaces the cache chosen by
    HF_HUB_CACHE and HF_HOME; `progress` shows a bar while weights are fetched if stderr is a terminal. Without
    `weights` the small files that a tokenizer needs are enough.
    Errors: BertcliError in one line, whatever the network does; an incomplete model in the cache is never used.
    """
    if model and os.path.isdir(os.path.expanduser(model)):
        if revision is not None:
            logger.warning("%s is a folder: the revision %s is ignored.", model, revision)
        return Folder(Path(model).expanduser())
    if model in SAMPLES:
        if revision is not None:
            logger.warning("%s is bundled: the revision %s is ignored.", model, revision)
        return Folder(sample(model))
    _check_name(model)
    if revision is not None and not REVISION.fullmatch(revision):
        raise BertcliError(f"{quoted(revision)} is not a revision: give a branch, tag or commit of {model}.")
    from bertcli.folder.cache import cache_folder, missing, snapshot  # late: a local folder needs no cache
    from bertcli.folder.layout import Layout

    repos = _names(model)
    cache = cache_folder(cache_dir)
    paths = [path for repo in repos if (path := snapshot(cache, repo, revision or "main")) is not None]
    snapshots = [*map(Folder, paths)]
    whole = next((folder for folder in snapshots if not missing(folder, weights)), None)
    setting = os.environ.get("HF_HUB_OFFLINE") or os.environ.get("TRANSFORMERS_OFFLINE") or ""  # as the client reads it
    why = "HF_HUB_OFFLINE" if setting.upper() in {"1", "ON", "YES", "TRUE"} else None
    if offline:
        why = "offline mode (--offline)"
    if whole is not None and (why or Layout.of(whole).is_known):
        return whole
    if why:
        state = f"is in the cache without {missing(snapshots[0], weights)[0]}" if snapshots else "is not in the cache"
        at = f" at revision {revision}" if revision else ""
        raise BertcliError(
            f"There is no folder {model}, and the Hub model of that name{at} {state} ({cache}); {why} forbids "
            "downloading it: run once online, or give a folder."
        )
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of variables that the client no longer reads
            from bertcli.folder.download import download  # imports the Hub client: only when needed
    except ValueError as error:  # HF_HUB_ETAG_TIMEOUT=abc
        raise BertcliError(f"The Hub client cannot be loaded ({error}): check the variables HF_….") from None
    if whole is None:
        return Folder(download(repos, revision, cache, progress, weights))
    try:
        return Folder(
            download(repos, whole.path.name, cache, progress, weights)
        )  # asks for modules.json and what it lists
    except BertcliError:
        return whole


def sample(name: str) -> Path:
    """Find the folder of a bundled model: inside the installed package, or next to it in a checkout."""
    package = Path(__file__).resolve().parents[1]
    for parent in (package, package.parent):
        if (parent / "sample_weights" / name / "config.json").is_file():
            return parent / "sample_weights" / name
    raise BertcliError(
        f"The bundled model {name} is not in this installation: reinstall bertcli, or choose one with -m."
    )


def _check_name(model: str) -> None:
    """Refuse a name that cannot be a Hub id: a mistyped path is never sent to the network."""
    path = os.path.expanduser(model)
    if os.path.exists(path):
        folder = next((parent for parent in [*Path(path).parents][:2] if (parent / "config.json").is_file()), None)
        advice = "a model is a folder with config.json and weights such as model.safetensors"
        if folder is not None:
            advice = f"give the folder {quoted(str(folder))}"
        raise BertcliError(f"{model} is a file: {advice}.")
    if model.startswith((".", "~", "/")) or model.endswith("/") or "\\" in model or model.count("/") > 1:
        raise BertcliError(f"There is no folder {quoted(model)}.")
    if not HUB_ID.fullmatch(model):
        raise BertcliError(f"{quoted(model)} is neither a folder nor a Hub id such as google-bert/bert-base-uncased.")
    advice = "" if "/" in model else nearest(model, SAMPLES)
    if advice.startswith("Did"):
        raise BertcliError(f"There is no folder and no bundled model {quoted(model)}. {advice}")


def _names(model: str) -> list[str]:
    """List the names of a model in the cache, the given one first: Google's BERT models once had no organization."""
    bare = model.removeprefix("google-bert/")
    if "/" in bare or not bare.startswith("bert-"):
        return [model]
    return [model, f"google-bert/{bare}" if bare == model else bare]
