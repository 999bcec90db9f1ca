"""Fetches a model from the Hub into its cache. The only module to import the Hub client, and imported only to fetch.

The files are stored under their commit, the weights last, and only then is `refs/REVISION` pointed to it: whatever
fails on the way, the cache holds either the previous model or the new one, complete. Nothing that the server says
becomes part of a path unchecked, and nothing is waited for, or read, without limit.
"""

from __future__ import annotations

import json
import logging
import re
import sys
import warnings
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import Future, wait
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from threading import Thread
from time import monotonic
from typing import Any, NamedTuple, TypeVar
from urllib.parse import quote

from huggingface_hub import constants, get_hf_file_metadata, hf_hub_download, hf_hub_url
from huggingface_hub.utils import build_hf_headers, get_session  # type: ignore[attr-defined, unused-ignore]
from huggingface_hub.utils.logging import get_verbosity, set_verbosity
from huggingface_hub.utils.tqdm import are_progress_bars_disabled, disable_progress_bars, enable_progress_bars

from bertcli.checkpoint.cache import COMMIT, missing, point, repo_folder
from bertcli.checkpoint.lacking import lacks_tokenizer, lacks_weights
from bertcli.checkpoint.tensors import INDEX_FILE, SINGLE_FILE, shard_names
from bertcli.checkpoint.untrusted import VOCABULARY_LIMIT
from bertcli.errors import BertcliError, shown

T = TypeVar("T")

ETAG = re.compile(r"\w[\w-]{0,127}", re.ASCII)  # becomes a file name below blobs/

LISTING_LIMIT = 10_000_000  # bytes; a thousand files take 300 kB
PATIENCE = 60.0  # seconds that a listing may take, and that a download may stand still
SLOWEST = 1000  # bytes a second: less counts as standing still
BEYOND = 1 << 30  # bytes more than listed that end a download; another process may be fetching another revision

# The files of a repository that are fetched besides the weights.
SMALL_FILES = re.compile(
    r"(\d+_\w+/)?(config|tokenizer|tokenizer_config|special_tokens_map|added_tokens|sentence_[\w-]+_config)\.json"
    r"|(\d+_\w+/)?vocab\.txt|(modules|config_sentence_transformers)\.json",
    re.ASCII,
)
MODULE_WEIGHTS = re.compile(r"\d+_\w+/model\.safetensors", re.ASCII)

# Error classes of requests, httpx and httpx2, one of which every Hub client uses: known by name, not imported.
BROKEN = {"RemoteProtocolError", "ReadError", "ChunkedEncodingError", "IncompleteRead"}
UNREACHABLE = {"ConnectError", "TimeoutException", "NetworkError", "ProxyError", "Timeout", "ConnectionError"}


class _Listing(NamedTuple):
    """The files of a repository at a commit, with their sizes if the Hub gives them."""

    repo: str
    commit: str
    sizes: dict[str, int | None]


class _Refused(Exception):
    """An answer with a status of 400 or more; the client's own errors have its `response`, too."""

    def __init__(self, response: Any) -> None:
        self.response = response


def download(repos: list[str], revision: str | None, cache: Path, progress: bool, weights: bool) -> Path:
    """The folder of the first of `repos` that the Hub knows; files that are not cached are fetched."""
    try:
        with _quiet():
            listing = _list(repos, revision or "main")
            small, large = _wanted(listing.repo, listing.sizes, weights)
            folder = _fetch(listing, small, cache)
            if large == [INDEX_FILE]:
                _fetch(listing, large, cache)
                large = sorted(set(shard_names(folder / INDEX_FILE).values()))
            lost = [name for name in [*large, *missing(folder, weights)] if name not in listing.sizes]
            if lost:
                raise BertcliError(f"{listing.repo} on the Hub lacks {lost[0]}: the model is incomplete, use another.")
            with _quiet(bars=progress and sys.stderr is not None and sys.stderr.isatty()):
                _fetch(listing, large, cache)
            if revision != listing.commit:
                point(repo_folder(cache, listing.repo) / "refs" / (revision or "main"), listing.commit)
    except BertcliError:
        raise
    except Exception as error:  # the client's errors have no common class
        raise _explained(error, repos[0], revision) from error
    return folder


@contextmanager
def _quiet(bars: bool = False) -> Iterator[None]:
    """Without the client's warnings and log lines: errors are one line of ours. Its progress bars only if wanted."""
    level, without = get_verbosity(), are_progress_bars_disabled()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        set_verbosity(logging.CRITICAL)
        (enable_progress_bars if bars else disable_progress_bars)()
        try:
            yield
        finally:
            set_verbosity(level)
            (disable_progress_bars if without else enable_progress_bars)()


def _list(repos: list[str], revision: str) -> _Listing:
    """What the Hub says of the first of `repos` that it knows."""
    for repo in repos:
        try:
            info = _in_time(partial(_asked, f"{repo}/revision/{quote(revision, safe='')}?blobs=true"), repo)
            break
        except _Refused as refused:
            if _code(refused.response) != "RepoNotFound" or repo == repos[-1]:
                raise
    commit = info.get("sha")
    if not isinstance(commit, str) or not COMMIT.fullmatch(commit):  # it becomes part of a path
        raise BertcliError(f"{constants.ENDPOINT} says that {repo} is at commit {shown(commit)}: check HF_ENDPOINT.")
    sizes = {file["rfilename"]: file.get("size") for file in info.get("siblings") or ()}
    if not sizes:  # a mirror that leaves them out
        tree = _in_time(partial(_asked, f"{repo}/tree/{commit}?recursive=true"), repo)
        sizes = {file["path"]: file.get("size") for file in tree}
    for name, size in sizes.items():
        if not isinstance(name, str) or not isinstance(size, int | None):
            raise TypeError(f"{name!r} of {size!r} bytes is no file")
    return _Listing(repo, commit, sizes)


def _asked(path: str) -> Any:
    """The Hub's answer about a model, of at most LISTING_LIMIT bytes: the client itself reads one of any length."""
    session: Any = get_session()
    url = f"{constants.ENDPOINT}/api/models/{path}"
    how = {"headers": build_hf_headers(), "timeout": constants.HF_HUB_ETAG_TIMEOUT}
    of_httpx = callable(getattr(session, "stream", None))  # the client before version 1 has a session of requests
    with session.stream("GET", url, **how) if of_httpx else session.get(url, stream=True, **how) as response:
        body = bytearray()
        for part in response.iter_bytes() if of_httpx else response.iter_content(1 << 16):
            body += part
            if len(body) > LISTING_LIMIT:
                raise BertcliError(
                    f"{constants.ENDPOINT} sends more than {LISTING_LIMIT:,} bytes when asked which files a model has: "
                    "check HF_ENDPOINT."
                )
        if response.status_code >= 400:
            raise _Refused(response)
    return json.loads(body)


def _code(response: Any) -> str | None:
    """Why the Hub refuses, in its own word. A private repository is as if it were not there."""
    code = response.headers.get("X-Error-Code")
    return "RepoNotFound" if code is None and response.status_code == 401 else code


def _wanted(repo: str, names: Collection[str], weights: bool) -> tuple[list[str], list[str]]:
    """The small files and the weights to fetch, out of all the names in a repository."""
    where = f"{repo} on the Hub"
    small = sorted(name for name in names if SMALL_FILES.fullmatch(name))
    if not {"config.json", "modules.json"}.intersection(names):
        raise lacks_weights(where, names, "has no config.json: it is not a model that bertcli can read")
    if not any(name.endswith(("vocab.txt", "tokenizer.json")) for name in small):
        raise lacks_tokenizer(where, repo, names)
    if not weights:
        return small, []
    own = sorted(name for name in names if MODULE_WEIGHTS.fullmatch(name))
    large = next(([name] for name in (SINGLE_FILE, INDEX_FILE) if name in names), [])
    large = large or [name for name in own if name.startswith("0_")]
    if not large:
        otherwise = f"has neither {SINGLE_FILE} nor {INDEX_FILE}: use another model"
        raise lacks_weights(where, names, otherwise, elsewhere="see whether --revision refs/pr/1 has safetensors, or, ")
    return small + [name for name in own if name not in large], large


def _fetch(listing: _Listing, names: Sequence[str], cache: Path) -> Path:
    """The folder of the commit with these files, each of the size that the listing says.

    The client stores a file under its ETag, which the Hub may choose: one that could lead out of the cache is refused.
    One file after the other: the threads of the client's snapshot_download keep a program from ending before they have
    finished, also after Ctrl-C and when a download is given up.
    """
    storage = repo_folder(cache, listing.repo)
    folder = storage / "snapshots" / listing.commit

    def fetch() -> None:
        for name in names:
            if not (folder / name).exists():
                told = get_hf_file_metadata(hf_hub_url(listing.repo, name, revision=listing.commit))
                if told.commit_hash not in (None, listing.commit) or not ETAG.fullmatch(told.etag or ""):
                    where = f"at commit {shown(told.commit_hash)} with the ETag {shown(told.etag)}"
                    raise BertcliError(f"{name} of {listing.repo} is said to be {where}: check HF_ENDPOINT.")
            hf_hub_download(listing.repo, name, revision=listing.commit, cache_dir=cache)

    _in_time(fetch, listing.repo, storage, sum(listing.sizes[name] or VOCABULARY_LIMIT for name in names))
    for name in names:
        path, size = folder / name, listing.sizes[name]
        found = path.stat().st_size
        if not path.resolve().is_relative_to(storage.resolve()):
            raise BertcliError(f"{path} is a link that leads out of the cache: check HF_ENDPOINT, and remove it.")
        if size is not None and found != size:
            path.resolve().unlink()  # also what the link points to, or the next run would take it for the file
            path.unlink(missing_ok=True)
            raise BertcliError(f"{name} of {listing.repo} arrived with {found:,} bytes instead of {size:,}: try again.")
    return folder


def _in_time(work: Callable[[], T], repo: str, storage: Path | None = None, most: int = 0) -> T:
    """What `work` returns, unless a minute goes by in which too little arrives in `storage`, or far more than `most`.

    Without `storage` all of it must be done in that time. Work that is given up goes on in its thread, which ends with
    the program: nothing else can end it.
    """
    result: Future[T] = Future()

    def run() -> None:
        try:
            result.set_result(work())
        except BaseException as error:
            result.set_exception(error)

    Thread(target=run, daemon=True).start()
    first = stored = _stored(storage)
    since = monotonic()
    while not wait([result], timeout=min(1.0, PATIENCE)).done:
        size, now = _stored(storage), monotonic()
        if storage is not None and size - first > most + BEYOND:
            raise BertcliError(f"{constants.ENDPOINT} sends more of {repo} than it listed: check HF_ENDPOINT.")
        if size - stored >= SLOWEST * PATIENCE:
            stored, since = size, now
        if now - since > PATIENCE:
            raise BertcliError(
                f"{constants.ENDPOINT} sends {repo} too slowly (less than {SLOWEST:,} bytes a second for "
                f"{PATIENCE:g} seconds): try again later."
            )
    return result.result()


def _stored(folder: Path | None) -> int:
    """How many bytes are in a folder, with the parts of files that are still arriving."""
    size = 0
    for path in folder.rglob("*") if folder is not None else ():
        with suppress(FileNotFoundError):  # a part that has just become the file
            size += path.lstat().st_size
    return size


def _explained(error: Exception, repo: str, revision: str | None) -> BertcliError:
    """What went wrong and what to do, from what the Hub answered, or from the classes of the error and its causes."""
    hub = constants.ENDPOINT
    chain: list[BaseException] = []
    cause: BaseException | None = error
    while cause is not None and cause not in chain:
        chain.append(cause)
        cause = cause.__cause__ or cause.__context__
    kinds = {kind.__name__ for link in chain for kind in type(link).__mro__}
    response = next((found for link in chain if (found := getattr(link, "response", None)) is not None), None)
    system = next((link for link in chain if isinstance(link, OSError) and link.strerror), None)
    if any("Consistency check failed" in str(link) for link in chain):
        return BertcliError(f"A file of {repo} arrived from {hub} with the wrong size and was discarded: try again.")
    if kinds & BROKEN:
        return BertcliError(f"The connection to {hub} broke off while fetching {repo}: try again.")
    if response is not None:
        refusals = {
            "GatedRepo": f"{repo} is gated: accept its terms on {hub}/{repo} and set HF_TOKEN to your token.",
            "RepoNotFound": f"There is no folder {repo}, and no accessible model of that name on {hub}: check the "
            "spelling, or set HF_TOKEN if it is private.",
            "RevisionNotFound": f"{repo} on {hub} has no revision {revision or 'main'}: give a branch, tag or commit.",
        }
        status = response.status_code
        otherwise = f"refused {repo} with status {status}: check HF_TOKEN."
        if status not in (401, 403):
            otherwise = f"answered {status} when asked for {repo}: try again later."
        return BertcliError(refusals.get(_code(response) or "", f"{hub} {otherwise}"))
    if kinds & UNREACHABLE:
        return BertcliError(
            f"{hub} cannot be reached, and {repo} is not in the cache: check the connection, or give a folder."
        )
    if system is not None:
        at = f" ({system.filename})" if system.filename else ""
        return BertcliError(f"{repo} cannot be written to the cache{at}: {system.strerror}.")
    if kinds & {"ValueError", "TypeError", "AttributeError", "LookupError"}:  # JSON of another form, or none
        return BertcliError(f"{hub} does not answer like a Hub: check HF_ENDPOINT and the proxy.")
    reason = (str(chain[-1]).strip() or type(error).__name__).splitlines()[0]
    return BertcliError(f"{repo} could not be fetched from {hub}: {reason}")
