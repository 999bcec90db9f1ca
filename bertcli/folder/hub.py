"""Find the folder of a model by its name: an existing folder, a bundled sample, the Hugging Face cache, a download.

`Source.find` is the way in. companions.py finds the other folder of a model that has two (an adapter and its base). The
cache is read in cache.py, and download.py is imported when something is missing in it.
"""

import logging
import os
import re
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from bertcli.errors import BertcliError, did_you_mean, quoted
from bertcli.folder.companions import with_companions
from bertcli.folder.files import Folder
from bertcli.folder.layout import Layout
from bertcli.names import MASKED_SAMPLE, SAMPLES

logger = logging.getLogger("bertcli")

DEFAULT_MODEL = MASKED_SAMPLE
CLASSIFIER = ".safetensors"  # ends the file that `probe -o` writes

# The Hub's rule for names: letters, digits, "_", "-" and ".", no "-" or "." at either end; no "--", ".." or ".git".
HUB_ID = re.compile(r"(?!.*(?:--|\.\.))(?!.*\.git$)(?:\b[\w.-]{1,96}\b/)?\b[\w.-]{1,96}\b", re.ASCII)
REVISION = re.compile(r"(?!.*(?:\.\.|//))\w[\w./+-]{0,254}(?<![/.])", re.ASCII)  # becomes a path below refs/


class Source(NamedTuple):
    """What model is meant, before anything is read.

    model        a folder, a bundled sample, a name on the Hub, BASE+ADAPTER, or one of these with a classifier of one's
                 own, BASE+FILE.safetensors; None: the bundled DEFAULT_MODEL. A
                 name on the Hub may have its revision in it (NAME@REVISION), and lack "sentence-transformers/"
    revision     a branch, tag or commit on the Hub (default: main)
    adapter      an adapter to apply: a folder or a name on the Hub
    prompt_name  its task ("retrieval.query") chooses one of the adapters in the folder, if none is given
    cache_dir    the cache, in place of the one that HF_HUB_CACHE and HF_HOME choose
    offline      never use the network
    progress     show a bar while weights are fetched, if stderr is a terminal
    """

    model: str | Path | None = None
    revision: str | None = None
    adapter: str | Path | None = None
    prompt_name: str | None = None
    cache_dir: str | Path | None = None
    offline: bool = False
    progress: bool = False

    @property
    def name(self) -> str:
        """The model as the user named it."""
        return DEFAULT_MODEL if self.model is None else str(self.model)

    def find(self, weights: bool = True) -> Folder:
        """Find the folder that is meant, and of an adapter also that of its base; without `weights`, the small files.

        Errors: BertcliError in one line, whatever the network does; an incomplete model in the cache is never used.
        """
        if self.model is None and self.adapter is None:
            return Folder(sample(DEFAULT_MODEL))  # not a folder here that has its name
        has_parts = "+" in self.name and not _is_folder(self.name)
        if has_parts and self.name.lower().endswith(CLASSIFIER):
            return self._find_with_classifier(weights)
        source = self._divided() if has_parts else self
        folder = _find_folder(source, weights)
        adapter = None if source.adapter is None else str(source.adapter)

        def find(name: str, revision: str | None = None, weights: bool = weights) -> Folder:
            return _find_folder(source._replace(model=name, revision=revision), weights)

        return with_companions(folder, source.name, adapter, source.prompt_name, find, weights)

    def _find_with_classifier(self, weights: bool) -> Folder:
        """Find the base in BASE+FILE.safetensors, and take the file as its classifier."""
        plus = [place for place, sign in enumerate(self.name) if sign == "+"]
        # A path may have a + in it: of several, the one before a file that is there, else the last.
        place = next((place for place in plus if Path(self.name[place + 1 :]).exists()), plus[-1])
        folder = self._replace(model=self.name[:place]).find(weights)
        folder.classifier = Path(self.name[place + 1 :])
        return folder

    def _divided(self) -> "Source":
        """Take BASE+ADAPTER apart."""
        base, _, added = self.name.rpartition("+")
        is_divided = self.adapter is None and _may_be_model(base) and _may_be_model(added)
        return self._replace(model=base, adapter=added) if is_divided else self


def _find_folder(source: Source, weights: bool) -> Folder:
    """Find one folder: on disk, among the bundled samples, in the cache, else by a download. Errors: BertcliError."""
    name, at, named = source.name.partition("@")
    if at and not _is_folder(source.name) and _may_be_model(name):
        if source.revision is not None:
            raise BertcliError(
                f"{source.name} has a revision in its name, and {quoted(source.revision)} is another: give one."
            )
        source = source._replace(model=name, revision=named)
    local = _local_folder(source.name, source.revision)
    return _hub_folder(source, weights) if local is None else Folder(local)


def _hub_folder(source: Source, weights: bool) -> Folder:
    """Find a name of the Hub in the cache; download what is missing."""
    model, revision = source.name, source.revision
    if revision is not None and not REVISION.fullmatch(revision):
        raise BertcliError(f"{quoted(revision)} is not a revision: give a branch, tag or commit of {model}.")
    from bertcli.folder.cache import cache_folder, missing, snapshot  # late: a local folder needs no cache

    repos = _names(model)
    cache = cache_folder(source.cache_dir)
    paths = [snapshot(cache, repo, revision or "main") for repo in repos]
    snapshots = [Folder(path) for path in paths if path is not None]
    whole = next((folder for folder in snapshots if not missing(folder, weights)), None)
    forbidden = "offline mode (--offline)" if source.offline else _offline_variable()
    if whole is not None and (forbidden or Layout(whole).is_known):
        return whole
    if forbidden:
        state = f"is in the cache without {missing(snapshots[0], weights)[0]}" if snapshots else "is not in the cache"
        at = f" at revision {revision}" if revision else ""
        raise BertcliError(
            f"There is no folder {model}, and the Hub model of that name{at} {state} ({cache}); {forbidden} forbids "
            "downloading it: run once online, or give a folder."
        )
    download = _downloader()
    if whole is None:
        return Folder(download(repos, revision, cache, source.progress, weights))
    try:
        # Fetches modules.json, which says how to pool, and the files that it lists.
        return Folder(download(repos, whole.path.name, cache, source.progress, weights))
    except BertcliError:
        return whole


def _is_folder(model: str) -> bool:
    """True for the path of a folder."""
    return bool(model) and os.path.isdir(os.path.expanduser(model))


def _may_be_model(name: str) -> bool:
    """True for the path of a folder, and for a name that the Hub may have, with a revision or without."""
    return _is_folder(name) or HUB_ID.fullmatch(name.partition("@")[0]) is not None


def _local_folder(model: str, revision: str | None) -> Path | None:
    """Return the folder of a path or of a bundled model; None for what may be a Hub id.

    Errors: BertcliError for a name that is none of these.
    """
    if _is_folder(model):
        if revision is not None:
            logger.warning("%s is a folder: the revision %s is ignored.", model, revision)
        return Path(model).expanduser()
    if model in SAMPLES:
        if revision is not None:
            logger.warning("%s is bundled: the revision %s is ignored.", model, revision)
        return sample(model)
    _check_name(model)
    return None


def _offline_variable() -> str | None:
    """Return the variable that forbids downloads, in the words of an error; None if none does."""
    value = os.environ.get("HF_HUB_OFFLINE") or os.environ.get("TRANSFORMERS_OFFLINE") or ""
    # These values, as the Hub client reads them.
    return "HF_HUB_OFFLINE" if value.upper() in {"1", "ON", "YES", "TRUE"} else None


def _downloader() -> Callable[..., Path]:
    """Import the function that downloads, and with it the Hub client. Errors: BertcliError for a bad variable."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of variables that the client no longer reads
            from bertcli.folder.download import download
    except ValueError as error:  # HF_HUB_ETAG_TIMEOUT=abc
        raise BertcliError(f"The Hub client cannot be loaded ({error}): check the variables HF_….") from None
    return download


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
        taken_from = "" if os.path.isabs(path) else f", which is taken from {quoted(os.getcwd())}"
        raise BertcliError(f"There is no folder {quoted(model)}: check the path{taken_from}.")
    if not HUB_ID.fullmatch(model):
        raise BertcliError(f"{quoted(model)} is neither a folder nor a Hub id such as google-bert/bert-base-uncased.")
    advice = "" if "/" in model else did_you_mean(model, SAMPLES)
    if advice:
        raise BertcliError(f"There is no folder and no bundled model {quoted(model)}. {advice}")


def _names(model: str) -> list[str]:
    """List the names that a model may have in the cache and on the Hub, the given one first.

    Google's BERT models once had no organization, and sentence-transformers puts its own before a bare name.
    """
    bare = model.removeprefix("google-bert/")
    if "/" in bare:
        return [model]
    of_google = [bare, f"google-bert/{bare}"] if bare.startswith("bert-") else []
    of_sentence_transformers = [f"sentence-transformers/{model}"] if bare == model else []
    return [*dict.fromkeys([model, *of_google, *of_sentence_transformers])]
