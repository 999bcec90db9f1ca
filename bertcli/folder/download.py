"""Download a model with huggingface_hub into its cache. Imported only for a download: the client takes long to import.

Files are stored under their commit, the weights last, and only then does `refs/REVISION` point to it: if anything
fails before, the model that was cached earlier stays. What a server says is checked here before it becomes a part of a
path: commits, ETags, and the commit of each file. Bytes whose SHA-256 differs from the announced one are discarded.
"""

import hashlib
import logging
import os
import re
import sys
import warnings
from collections.abc import Collection, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

# Modules first: the package itself prints what goes wrong in a lazy import.
from huggingface_hub import constants, errors, get_session
from huggingface_hub.file_download import hf_hub_download
from huggingface_hub.hf_api import HfApi
from huggingface_hub.utils.logging import get_verbosity, set_verbosity
from huggingface_hub.utils.tqdm import are_progress_bars_disabled, disable_progress_bars, enable_progress_bars

from bertcli.errors import BertcliError, first_line, quoted
from bertcli.folder import missing_files
from bertcli.folder.cache import COMMIT, missing, point, repo_folder
from bertcli.folder.files import ADAPTER_FILES, SINGLE_FILE, WEIGHT_FILES, Folder, is_plain
from bertcli.folder.folder_types import files_that_name_backbones
from bertcli.folder.model_files import SMALL_FILES, VOCABULARY

# Errors of the client's HTTP library, requests or httpx depending on its version: compared by name, not imported.
BROKEN = {"RemoteProtocolError", "ReadError", "ChunkedEncodingError", "IncompleteRead"}
UNREACHABLE = {"ConnectError", "TimeoutException", "NetworkError", "ProxyError", "Timeout", "ConnectionError"}
SHA256 = re.compile(r"[0-9a-f]{64}")
LONGEST_ETAG = 200  # characters: the client makes file names of it


class Repository(NamedTuple):
    """A repository at a commit: its files, and the SHA-256 of those for which the Hub announces it."""

    name: str
    commit: str
    files: frozenset[str]
    digests: dict[str, str]


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
    repo = _described(repos, revision or "main")
    names, storage = repo.files, repo_folder(cache, repo.name)
    folder = storage / "snapshots" / repo.commit
    _check(repo.name, names, weights)
    for name in sorted(names):
        vocabulary = VOCABULARY.fullmatch(name)
        if SMALL_FILES.fullmatch(name) or (vocabulary and f"{vocabulary[1]}tokenizer.json" not in names):
            _fetch(repo, name, cache)
    if "modules.json" not in names:
        # The client marks in the cache that the file does not exist; `Layout.is_known` looks for that mark.
        with suppress(errors.EntryNotFoundError):
            _fetch(repo, "modules.json", cache)
    fetched: set[str] = set()
    while lost := missing(Folder(folder), weights):
        new = {_offered(repo.name, name, names) for name in lost} - fetched
        if not new:
            raise BertcliError(f"{repo.name} on the Hub lacks {lost[0]}: the model is incomplete, use another.")
        for name in sorted(new):
            _fetch(repo, name, cache)
        fetched |= new
    if revision != repo.commit:
        point(storage / "refs" / (revision or "main"), repo.commit)
    return folder


def _described(repos: list[str], revision: str) -> Repository:
    """Ask the Hub for the first of `repos` that it has."""
    for repo in repos:
        try:
            info = HfApi().model_info(
                repo, revision=revision, timeout=constants.HF_HUB_ETAG_TIMEOUT, files_metadata=True
            )
            break
        except errors.RepositoryNotFoundError as error:
            if isinstance(error, errors.GatedRepoError) or repo == repos[-1]:
                raise
    if not COMMIT.fullmatch(str(info.sha)):
        raise _distrusted(repo, f"has the commit {quoted(info.sha)}, which is no hash")
    files = info.siblings or ()
    digests = {file.rfilename: str(file.lfs.sha256) for file in files if file.lfs is not None}
    return Repository(repo, str(info.sha), frozenset(file.rfilename for file in files), digests)


def _fetch(repo: Repository, name: str, cache: Path) -> None:
    """Download a file, unless it is there. Errors: BertcliError for bytes that are not those that were announced."""
    if (repo_folder(cache, repo.name) / "snapshots" / repo.commit / name).exists():
        return
    path = hf_hub_download(repo.name, name, revision=repo.commit, cache_dir=cache)
    blob = os.path.join(os.path.dirname(path), os.readlink(path)) if os.path.islink(path) else path
    announced = {repo.digests.get(name), os.path.basename(blob) if SHA256.fullmatch(os.path.basename(blob)) else None}
    announced.discard(None)
    if not announced:
        return
    with open(path, "rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    if announced != {digest}:
        for discarded in {path, blob}:
            os.unlink(discarded)
        raise BertcliError(
            f"{name} of {repo.name} arrived from {constants.ENDPOINT} with other bytes than announced (SHA-256) and "
            "was discarded: try again."
        )


def _check_answer(response: Any, **_: object) -> None:
    """Refuse an answer on a file whose commit or ETag the client would make a path of.

    Called by the client's HTTP library for each answer.
    """
    asked = re.fullmatch(r"/(.+)/resolve/([^/]+)/.+", urlsplit(str(response.request.url)).path)
    # The answers to other threads' questions may pass here, too: bertcli asks for files by their commit.
    if response.request.method != "HEAD" or asked is None or not COMMIT.fullmatch(asked[2]):
        return
    repo, asked_for = asked.groups()
    commit = response.headers.get("X-Repo-Commit")
    if commit is not None and commit != asked_for:
        raise _distrusted(repo, f"has a file of the commit {quoted(commit)}, which is not the one asked for")
    for header in ("X-Linked-ETag", "ETag"):
        etag = response.headers.get(header, "").lstrip("W/").strip('"')  # as the client reads it
        if not is_plain(etag) or len(etag) > LONGEST_ETAG:
            raise _distrusted(repo, f"has a file with the ETag {quoted(etag)}, which is no name")


def _distrusted(repo: str, what: str) -> BertcliError:
    return BertcliError(f"{repo} on {constants.ENDPOINT} {what}: check HF_ENDPOINT, and do not use this model.")


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
        at_end.enter_context(_answers_checked())
        if not progress and not are_progress_bars_disabled():
            at_end.callback(enable_progress_bars)
            disable_progress_bars()
        yield


@contextmanager
def _answers_checked() -> Iterator[None]:
    """Check each answer that the client gets."""
    session: Any = get_session()
    # Of httpx, or of requests before version 1 of the client.
    hooks: list[Any] = (session.event_hooks if hasattr(session, "event_hooks") else session.hooks)["response"]
    hook = partial(_check_answer)  # not equal to that of another thread, so that each removes its own
    hooks.append(hook)
    try:
        yield
    finally:
        hooks.remove(hook)


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
