"""Fetches a model from the Hub into its cache. The only module to import the Hub client, and imported only to fetch.

The files are stored under their commit, the weights last, and only then is `refs/REVISION` pointed to it: whatever
fails on the way, the cache holds either the previous model or the new one, complete. Nothing that the server says
becomes part of a path unchecked (the client's own cache makes paths of headers, so it fetches into an empty folder, and
files are named after what is in them), and nothing is waited for, or read, without limit.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import re
import sys
import warnings
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import Future, wait
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Thread
from time import monotonic
from typing import Any, NamedTuple, TypeVar
from urllib.parse import quote

from huggingface_hub import constants, hf_hub_download
from huggingface_hub.utils import (  # type: ignore[attr-defined, unused-ignore]
    WeakFileLock,
    build_hf_headers,
    get_session,
)
from huggingface_hub.utils.logging import get_verbosity, set_verbosity
from huggingface_hub.utils.tqdm import are_progress_bars_disabled, disable_progress_bars, enable_progress_bars

from bertcli.checkpoint.cache import COMMIT, missing, point, repo_folder
from bertcli.checkpoint.lacking import lacks_tokenizer, lacks_weights
from bertcli.checkpoint.tensors import INDEX_ENDING, SINGLE_FILE, WEIGHT_FILES, shard_names
from bertcli.checkpoint.untrusted import VOCABULARY_LIMIT
from bertcli.errors import BertcliError, shown

T = TypeVar("T")

SHA256 = re.compile("[0-9a-f]{64}")  # becomes a file name below blobs/

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
MODULE_WEIGHTS = re.compile(r"\d+_\w+/(model\.safetensors|pytorch_model\.bin)", re.ASCII)

# Error classes of requests, httpx and httpx2, one of which every Hub client uses: known by name, not imported.
BROKEN = {"RemoteProtocolError", "ReadError", "ChunkedEncodingError", "IncompleteRead"}
UNREACHABLE = {"ConnectError", "TimeoutException", "NetworkError", "ProxyError", "Timeout", "ConnectionError"}
# JSON of another form, or none; a redirection to no address; bytes that are not compressed as they are said to be.
OF_NO_HUB = {"ValueError", "TypeError", "AttributeError", "LookupError", "RecursionError", "UnsupportedProtocol"}
OF_NO_HUB |= {"InvalidURL", "TooManyRedirects", "DecodingError", "ContentDecodingError", "FileMetadataError"}


class _Listed(NamedTuple):
    """What the Hub says of a file, if it does; it has the SHA-256 of those that are not in Git but beside it (LFS)."""

    size: int | None
    sha256: str | None

    @classmethod
    def of(cls, told: dict[str, Any]) -> _Listed:
        beside = told.get("lfs") or {}
        size, sha256 = told.get("size"), beside.get("sha256") or beside.get("oid")
        if not isinstance(size, int | None) or not (sha256 is None or SHA256.fullmatch(sha256)):
            raise TypeError(f"{told!r} is no file")
        return cls(size, sha256)

    def matches(self, path: Path) -> bool:
        """Whether that is in a file; False if there is none."""
        if not path.is_file() or self.size not in (None, path.stat().st_size):
            return False
        return self.sha256 in (None, _digest(path, hashlib.sha256()))


class _Listing(NamedTuple):
    """The files of a repository at a commit."""

    repo: str
    commit: str
    files: dict[str, _Listed]


class _Refused(Exception):
    """An answer with a status of 400 or more; the client's own errors have its `response`, too."""

    def __init__(self, response: Any) -> None:
        self.response = response


def download(repos: list[str], revision: str | None, cache: Path, progress: bool, weights: bool) -> Path:
    """The folder of the first of `repos` that the Hub knows; files that are not cached are fetched."""
    try:
        with _quiet():
            listing = _list(repos, revision or "main")
            small, large = _wanted(listing.repo, listing.files, weights)
            folder = _fetch(listing, small, cache)
            if large[0:1] and large[0].endswith(INDEX_ENDING):
                _fetch(listing, large, cache)
                large = sorted(set(shard_names(folder / large[0]).values()))
            lost = [name for name in [*large, *missing(folder, weights)] if name not in listing.files]
            lost = [name for name in lost if name.replace(SINGLE_FILE, "pytorch_model.bin") not in listing.files]
            if lost:
                raise BertcliError(f"{listing.repo} on the Hub lacks {lost[0]}: the model is incomplete, use another.")
            _fetch(listing, large, cache, progress and sys.stderr is not None and sys.stderr.isatty())
            if revision != listing.commit:
                point(repo_folder(cache, listing.repo) / "refs" / (revision or "main"), listing.commit)
    except BertcliError:
        raise
    except Exception as error:  # the client's errors have no common class
        raise _explained(error, repos[0], revision) from error
    return folder


@contextmanager
def _quiet() -> Iterator[None]:
    """Without the client's warnings, log lines and progress bars, which may say what the server wants them to."""
    level, without = get_verbosity(), are_progress_bars_disabled()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        set_verbosity(logging.CRITICAL)
        disable_progress_bars()
        try:
            yield
        finally:
            set_verbosity(level)
            if not without:
                enable_progress_bars()


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
    files = {file["rfilename"]: _Listed.of(file) for file in info.get("siblings") or ()}
    if not files:  # a mirror that leaves them out
        tree = _in_time(partial(_asked, f"{repo}/tree/{commit}?recursive=true"), repo)
        files = {file["path"]: _Listed.of(file) for file in tree}
    if not all(isinstance(name, str) for name in files):
        raise TypeError("a name is no text")
    return _Listing(repo, commit, files)


def _asked(path: str) -> Any:
    """The Hub's answer about a model, of at most LISTING_LIMIT bytes: the client itself reads one of any length."""
    try:
        session: Any = get_session()
    except OSError as error:
        raise BertcliError(f"The Hub's client cannot be started ({error}): check SSL_CERT_FILE.") from None
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
        raise lacks_tokenizer(where, names)
    if not weights:
        return small, []
    own = sorted(name for name in names if MODULE_WEIGHTS.fullmatch(name))
    own = [name for name in own if not name.endswith(".bin") or f"{name.partition('/')[0]}/{SINGLE_FILE}" not in own]
    large = next(([name] for name in WEIGHT_FILES if name in names), [])
    large = large or [name for name in own if name.startswith("0_")]
    if not large:
        raise lacks_weights(where, names, f"has neither {SINGLE_FILE} nor pytorch_model.bin: use another model")
    return small + [name for name in own if name not in large], large


def _fetch(listing: _Listing, names: Sequence[str], cache: Path, progress: bool = False) -> Path:
    """The folder of the commit with these files as they were listed; what is not, is fetched again.

    One file after the other: the threads of the client's snapshot_download keep a program from ending before they have
    finished, also after Ctrl-C and when a download is given up.
    """
    storage = repo_folder(cache, listing.repo)
    folder, blobs, locks = storage / "snapshots" / listing.commit, storage / "blobs", cache / ".locks" / storage.name
    for place in (folder, blobs, locks):
        place.mkdir(parents=True, exist_ok=True)

    def fetch(draft: Path) -> None:
        with WeakFileLock(locks / f"{listing.commit}.lock"):  # of several processes, one fetches
            for name in names:
                listed = listing.files[name]
                if listed.matches(folder / name):
                    continue
                file = blobs / (listed.sha256 or "")  # of another commit
                if not listed.matches(file):
                    hf_hub_download(listing.repo, name, revision=listing.commit, local_dir=draft, cache_dir=draft)
                    file = draft / name
                if not listed.matches(file):
                    hub = constants.ENDPOINT
                    raise BertcliError(f"{name} of {listing.repo} is not what {hub} lists under this name: try again.")
                _store(file, folder / name, blobs / (listed.sha256 or _name_in_git(file)), draft / "link")

    most = sum(listing.files[name].size or VOCABULARY_LIMIT for name in names)
    with TemporaryDirectory(prefix=".bertcli.", dir=storage, ignore_cleanup_errors=True) as draft:
        _in_time(partial(fetch, Path(draft)), listing.repo, storage, most, progress)
    return folder


def _store(file: Path, place: Path, blob: Path, link: Path) -> None:
    """Make a file that of `blob`, where the Hub's client looks for it, and `place` a link to it.

    `link` is a name for the moment. Where links cannot be made, the file itself is at `place`.
    """
    place.parent.mkdir(parents=True, exist_ok=True)
    try:
        link.symlink_to(os.path.relpath(blob, place.parent))
    except OSError:
        file.replace(place)
    else:
        file.replace(blob)
        link.replace(place)


def _name_in_git(file: Path) -> str:
    """Git's name of a file with this content, and the Hub's ETag of it."""
    return _digest(file, hashlib.sha1(b"blob %d\0" % file.stat().st_size, usedforsecurity=False))


def _digest(path: Path, state: Any) -> str:
    """The hexadecimal digest of a file, appended to what a digest of hashlib has taken in already."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, lambda: state).hexdigest()


def _in_time(work: Callable[[], T], repo: str, storage: Path | None = None, most: int = 0, progress: bool = False) -> T:
    """What `work` returns, unless a minute goes by in which too little arrives in `storage`, or far more than `most`.

    Without `storage` all of it must be done in that time. With `progress` a line on standard error says what has
    arrived. Work that is given up goes on in its thread, which ends with the program: nothing else can end it.
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
    line = ""
    try:
        while not wait([result], timeout=min(1.0, PATIENCE)).done:
            size, now = _stored(storage), monotonic()
            if progress:
                line = f"fetching weights: {(size - first) / 1e6:,.0f} of {most / 1e6:,.0f} MB"
                print(f"\r{line}", end="", file=sys.stderr, flush=True)
            if storage is not None and size - first > most + BEYOND:
                raise BertcliError(f"{constants.ENDPOINT} sends more of {repo} than it listed: check HF_ENDPOINT.")
            if size - stored >= SLOWEST * PATIENCE:
                stored, since = size, now
            if now - since > PATIENCE:
                raise BertcliError(
                    f"{constants.ENDPOINT} sends {repo} too slowly (less than {SLOWEST:,} bytes a second for "
                    f"{PATIENCE:g} seconds): try again later."
                )
    finally:
        if line:
            print(f"\r{' ' * len(line)}\r", end="", file=sys.stderr, flush=True)
    return result.result()


def _stored(folder: Path | None) -> int:
    """How many bytes are in a folder, with the parts of files that are still arriving."""
    size = 0
    for place, _, names in os.walk(folder) if folder is not None else ():
        for name in names:
            with suppress(FileNotFoundError):  # a part that has just become the file
                size += os.lstat(os.path.join(place, name)).st_size
    return size


def _explained(error: Exception, repo: str, revision: str | None) -> BertcliError:
    """What went wrong and what to do, from what the Hub answered, or from the classes of the error and its causes."""
    hub = constants.ENDPOINT or "An empty HF_ENDPOINT"
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
        place = system.filename2 or system.filename  # where a file was to be moved
        at = f" ({place})" if place else ""
        return BertcliError(f"{repo} cannot be written to the cache{at}: {system.strerror}.")
    if kinds & OF_NO_HUB:
        return BertcliError(f"{hub} does not answer like a Hub: check HF_ENDPOINT and the proxy.")
    reason = (str(chain[-1]).strip() or type(error).__name__).splitlines()[0]
    return BertcliError(f"{repo} could not be fetched from {hub}: {reason}")
