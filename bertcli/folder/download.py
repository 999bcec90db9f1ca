"""Download a model with huggingface_hub into its cache. Imported only for a download: the client takes long to import.

Files are stored under their commit, the weights last, and only then does `refs/REVISION` point to it: if anything
fails before, the model that was cached earlier stays. Names that become part of a path are checked here; everything
else that a server sends is checked by the client.
"""

import logging
import sys
import warnings
from collections.abc import Collection, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path

from huggingface_hub import constants, errors  # the package itself prints what goes wrong in a lazy import
from huggingface_hub.file_download import hf_hub_download
from huggingface_hub.hf_api import HfApi
from huggingface_hub.utils.logging import get_verbosity, set_verbosity
from huggingface_hub.utils.tqdm import are_progress_bars_disabled, disable_progress_bars, enable_progress_bars

from bertcli.errors import BertcliError, first_line
from bertcli.folder import missing_files
from bertcli.folder.cache import missing, point, repo_folder
from bertcli.folder.files import ADAPTER_FILES, SINGLE_FILE, WEIGHT_FILES, Folder
from bertcli.folder.folder_types import files_that_name_backbones
from bertcli.folder.model_files import SMALL_FILES, VOCABULARY

# Errors of the client's HTTP library, requests or httpx depending on its version: compared by name, not imported.
BROKEN = {"RemoteProtocolError", "ReadError", "ChunkedEncodingError", "IncompleteRead"}
UNREACHABLE = {"ConnectError", "TimeoutException", "NetworkError", "ProxyError", "Timeout", "ConnectionError"}


def download(repos: list[str], revision: str | None, cache: Path, progress: bool, weights: bool) -> Path:
    """Download the first of `repos` that the Hub has, and return its folder; cached files are not fetched again."""
    try:
        with _quiet(progress and sys.stderr is not None and sys.stderr.isatty()):
            return _download(repos, revision, cache, weights)
    except BertcliError:
        raise
    except Exception as error:  # the client's errors have no common class
        cause = error.__cause__ if isinstance(error, errors.LocalEntryNotFoundError) else None
        why = cause if isinstance(cause, Exception) else error
        raise BertcliError(_explained(why, repos[0], revision)) from error


def _download(repos: list[str], revision: str | None, cache: Path, weights: bool) -> Path:
    for repo in repos:
        try:
            info = HfApi().model_info(repo, revision=revision or "main", timeout=constants.HF_HUB_ETAG_TIMEOUT)
            break
        except errors.RepositoryNotFoundError as error:
            if isinstance(error, errors.GatedRepoError) or repo == repos[-1]:
                raise
    commit, names = info.sha, {file.rfilename for file in info.siblings or ()}
    storage = repo_folder(cache, repo)
    folder = storage / "snapshots" / str(commit)
    _check(repo, names, weights)
    fetch = partial(hf_hub_download, repo, revision=commit, cache_dir=cache)  # nothing for a file that is there
    for name in sorted(names):
        vocabulary = VOCABULARY.fullmatch(name)
        if SMALL_FILES.fullmatch(name) or (vocabulary and f"{vocabulary[1]}tokenizer.json" not in names):
            fetch(name)
    if "modules.json" not in names:
        # The client marks in the cache that the file does not exist; `Layout.is_known` looks for that mark.
        with suppress(errors.EntryNotFoundError):
            fetch("modules.json")
    while lost := missing(Folder(folder), weights):
        for name in [_offered(repo, name, names) for name in lost]:
            fetch(name)
    if revision != commit:
        point(storage / "refs" / (revision or "main"), str(commit))
    return folder


def _check(repo: str, names: Collection[str], weights: bool) -> None:
    """Refuse a repository without config, weights or tokenizer before anything is fetched."""
    where, files = f"{repo} on the Hub", {name.rpartition("/")[2] for name in names}
    if "adapter_config.json" in names:
        return
    has_backbone = not files_that_name_backbones().isdisjoint(names)
    if not has_backbone and not {"config.json", "modules.json"}.intersection(names):
        raise missing_files.lacks_weights(where, names, "no config.json", missing_files.OF_HUB)
    if weights and not files.intersection(WEIGHT_FILES):
        raise missing_files.lacks_weights(where, names, advice=missing_files.OF_HUB)
    if not has_backbone and not missing_files.has_tokenizer(files):
        raise missing_files.lacks_tokenizer(where, names)


def _offered(repo: str, name: str, names: Collection[str]) -> str:
    """Choose the file to fetch for a missing one: for weights, the first format of WEIGHT_FILES that the Hub has."""
    folder = name.removesuffix(SINGLE_FILE)
    forms = [folder + form for form in WEIGHT_FILES] if name.endswith(SINGLE_FILE) else [name]
    if name in ADAPTER_FILES:
        forms = [*ADAPTER_FILES]
    for form in forms:
        if form in names:
            return form
    raise BertcliError(f"{repo} on the Hub lacks {name}: the model is incomplete, use another.")


@contextmanager
def _quiet(progress: bool) -> Iterator[None]:
    """Silence the client's warnings and log lines, and its progress bars too without `progress`."""
    with warnings.catch_warnings(), ExitStack() as at_end:
        warnings.simplefilter("ignore")
        at_end.callback(set_verbosity, get_verbosity())
        set_verbosity(logging.CRITICAL)
        if not progress and not are_progress_bars_disabled():
            at_end.callback(enable_progress_bars)
            disable_progress_bars()
        yield


def _explained(error: Exception, repo: str, revision: str | None) -> str:
    """Explain an error of the Hub client: what went wrong and what to do, in one line."""
    hub = constants.ENDPOINT or "An empty HF_ENDPOINT"
    classes = {ancestor.__name__ for ancestor in type(error).__mro__}
    if isinstance(error, errors.GatedRepoError):
        return f"{repo} is gated: accept its terms on {hub}/{repo} and set HF_TOKEN to your token."
    if isinstance(error, errors.RepositoryNotFoundError):
        return (
            f"There is no folder {repo}, and no accessible model of that name on {hub}: check the spelling, or set "
            "HF_TOKEN if it is private."
        )
    if isinstance(error, errors.RevisionNotFoundError):
        return f"{repo} on {hub} has no revision {revision or 'main'}: give a branch, tag or commit."
    if isinstance(error, errors.HfHubHTTPError):
        status = error.response.status_code
        if status in (401, 403):
            return f"{hub} refused {repo} with status {status}: check HF_TOKEN."
        return f"{hub} answered {status} when asked for {repo}: try again later."
    if "Consistency check failed" in str(error):
        return f"A file of {repo} arrived from {hub} with the wrong size and was discarded: try again."
    if classes & BROKEN:
        return f"The connection to {hub} broke off while fetching {repo}: try again."
    if classes & UNREACHABLE:
        return f"{hub} cannot be reached, and {repo} is not in the cache: check the connection, or give a folder."
    if isinstance(error, OSError) and error.strerror:
        at = f" ({error.filename2 or error.filename})" if error.filename else ""
        return f"{repo} cannot be written to the cache{at}: {error.strerror}."
    return f"{repo} could not be fetched from {hub} ({first_line(error)}): check HF_ENDPOINT and the proxy."
