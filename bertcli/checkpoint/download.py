"""Fetches a model with the Hub's own client into the Hub's own cache. Imported only to fetch, as the client is slow.

Files are stored under their commit, the weights last, and only then does `refs/REVISION` name it: whatever fails on the
way, the model that was there before stays. What becomes part of a path is checked before; the rest of what a server
does is the client's affair.
"""

import logging
import re
import sys
import warnings
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from itertools import chain
from pathlib import Path

from huggingface_hub import constants  # the package itself prints what goes wrong in a lazy import
from huggingface_hub.errors import (
    EntryNotFoundError,
    GatedRepoError,
    HfHubHTTPError,
    RepositoryNotFoundError,
    RevisionNotFoundError,
)
from huggingface_hub.file_download import get_hf_file_metadata, hf_hub_download, hf_hub_url
from huggingface_hub.hf_api import HfApi
from huggingface_hub.utils.logging import get_verbosity, set_verbosity
from huggingface_hub.utils.tqdm import are_progress_bars_disabled, disable_progress_bars, enable_progress_bars

from bertcli.checkpoint.folders import (
    COMMIT,
    TOKENIZER_FILES,
    has_tokenizer,
    lacks_tokenizer,
    lacks_weights,
    missing,
    point,
    repo_folder,
)
from bertcli.checkpoint.tensors import SINGLE_FILE, WEIGHT_FILES
from bertcli.errors import BertcliError, first_line, shown

ETAG = re.compile(r"[\w-]{1,128}", re.ASCII)  # becomes the name of a file below blobs/
SMALL_FILES = re.compile(
    r"(\w*\d_\w+/)?(config|tokenizer|tokenizer_config|special_tokens_map|added_tokens|sentence_[\w-]+_config)\.json"
    r"|(modules|config_sentence_transformers|router_config)\.json|artifact\.metadata",
    re.ASCII,
)

# Errors of the client's own HTTP library, which is another in each of its versions: known by name, not imported.
BROKEN = {"RemoteProtocolError", "ReadError", "ChunkedEncodingError", "IncompleteRead"}
UNREACHABLE = {"ConnectError", "TimeoutException", "NetworkError", "ProxyError", "Timeout", "ConnectionError"}


def download(repos: list[str], revision: str | None, cache: Path, progress: bool, weights: bool) -> Path:
    """The folder of the first of `repos` that the Hub knows; files that are not cached are fetched, one by one."""
    try:
        with _quiet(progress and sys.stderr is not None and sys.stderr.isatty()):
            return _download(repos, revision, cache, weights)
    except BertcliError:
        raise
    except Exception as error:  # the client's errors have no common class
        raise _explained(error, repos[0], revision) from error


def _download(repos: list[str], revision: str | None, cache: Path, weights: bool) -> Path:
    for repo in repos:
        try:
            info = HfApi().model_info(repo, revision=revision or "main", timeout=constants.HF_HUB_ETAG_TIMEOUT)
            break
        except RepositoryNotFoundError as error:
            if isinstance(error, GatedRepoError) or repo == repos[-1]:
                raise
    commit, names = info.sha, {file.rfilename for file in info.siblings or ()}
    if commit is None or not COMMIT.fullmatch(commit):
        raise BertcliError(f"{constants.ENDPOINT} says that {repo} is at commit {shown(commit)}: check HF_ENDPOINT.")
    folder = repo_folder(cache, repo) / "snapshots" / commit
    _check(repo, names, weights)

    def fetch(name: str) -> None:
        if (folder / name).is_file():
            return
        told = get_hf_file_metadata(hf_hub_url(repo, name, revision=commit))
        if told.commit_hash != commit or not ETAG.fullmatch(told.etag or ""):
            raise BertcliError(f"{constants.ENDPOINT} does not answer like a Hub about {repo}: check HF_ENDPOINT.")
        hf_hub_download(repo, name, revision=commit, cache_dir=cache)

    for name in sorted(names):
        if SMALL_FILES.fullmatch(name) or _describes_tokenizer(name, names):
            fetch(name)
    if "modules.json" not in names:
        with suppress(EntryNotFoundError):  # leaves the mark that it was asked for
            hf_hub_download(repo, "modules.json", revision=commit, cache_dir=cache)
    while lost := missing(folder, weights):
        offered = {name: _offered(name, names) for name in lost}
        for name, offer in offered.items():
            if offer is None:
                raise BertcliError(f"{repo} on the Hub lacks {name}: the model is incomplete, use another.")
        for offer in filter(None, offered.values()):
            fetch(offer)
    if revision != commit:
        point(repo_folder(cache, repo) / "refs" / (revision or "main"), commit)
    return folder


def _check(repo: str, names: Collection[str], weights: bool) -> None:
    """Refuse a repository that is no use before anything is fetched."""
    where, own = f"{repo} on the Hub", {name.rpartition("/")[2] for name in names}
    if not {"config.json", "modules.json"}.intersection(names):
        raise lacks_weights(where, names, "no config.json")
    if weights and not own.intersection(WEIGHT_FILES):
        raise lacks_weights(where, names)
    if not has_tokenizer(own):
        raise lacks_tokenizer(where, names)


def _describes_tokenizer(name: str, names: Collection[str]) -> bool:
    """Whether a file is needed to make a tokenizer, since there is no tokenizer.json beside it."""
    folder = name.removesuffix(name.rpartition("/")[2])
    known = folder + "tokenizer.json" not in names and name.removeprefix(folder) in chain(*TOKENIZER_FILES)
    return known and re.fullmatch(r"(\w*\d_\w+/)?", folder) is not None


def _offered(name: str, names: Collection[str]) -> str | None:
    """The file to fetch for one that is missing: for weights, the best of their forms."""
    folder = name.removesuffix(SINGLE_FILE)
    forms = [folder + form for form in WEIGHT_FILES] if name.endswith(SINGLE_FILE) else [name]
    return next((form for form in forms if form in names), None)


@contextmanager
def _quiet(progress: bool) -> Iterator[None]:
    """Without the client's warnings and log lines, and with its bars only where there is someone to see them."""
    level, without = get_verbosity(), are_progress_bars_disabled()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        set_verbosity(logging.CRITICAL)
        if not progress:
            disable_progress_bars()
        try:
            yield
        finally:
            set_verbosity(level)
            if not without:
                enable_progress_bars()


def _explained(error: Exception, repo: str, revision: str | None) -> BertcliError:
    """What went wrong and what to do, in one line."""
    hub = constants.ENDPOINT or "An empty HF_ENDPOINT"
    kinds = {kind.__name__ for kind in type(error).__mro__}
    if isinstance(error, GatedRepoError):
        return BertcliError(f"{repo} is gated: accept its terms on {hub}/{repo} and set HF_TOKEN to your token.")
    if isinstance(error, RepositoryNotFoundError):
        return BertcliError(
            f"There is no folder {repo}, and no accessible model of that name on {hub}: check the spelling, or set "
            "HF_TOKEN if it is private."
        )
    if isinstance(error, RevisionNotFoundError):
        return BertcliError(f"{repo} on {hub} has no revision {revision or 'main'}: give a branch, tag or commit.")
    if isinstance(error, HfHubHTTPError):
        status = error.response.status_code
        if status in (401, 403):
            return BertcliError(f"{hub} refused {repo} with status {status}: check HF_TOKEN.")
        return BertcliError(f"{hub} answered {status} when asked for {repo}: try again later.")
    if "Consistency check failed" in str(error):
        return BertcliError(f"A file of {repo} arrived from {hub} with the wrong size and was discarded: try again.")
    if kinds & BROKEN:
        return BertcliError(f"The connection to {hub} broke off while fetching {repo}: try again.")
    if kinds & UNREACHABLE:
        return BertcliError(
            f"{hub} cannot be reached, and {repo} is not in the cache: check the connection, or give a folder."
        )
    if isinstance(error, OSError) and error.strerror:
        at = f" ({error.filename2 or error.filename})" if error.filename else ""
        return BertcliError(f"{repo} cannot be written to the cache{at}: {error.strerror}.")
    return BertcliError(
        f"{repo} could not be fetched from {hub} ({first_line(error)}): check HF_ENDPOINT and the proxy."
    )
