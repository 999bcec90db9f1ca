"""Fetches a model from the Hub into its cache. The only module to import the Hub client, and imported only to fetch.

The files are stored under their commit, the weights last, and only then is `refs/REVISION` pointed to it: whatever
fails on the way, the cache holds either the previous model or the new one, complete.
"""

from __future__ import annotations

import logging
import re
import sys
import warnings
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from secrets import token_hex
from typing import NamedTuple

from huggingface_hub import HfApi, constants, hf_hub_download
from huggingface_hub.errors import RepositoryNotFoundError
from huggingface_hub.utils.tqdm import are_progress_bars_disabled, disable_progress_bars, enable_progress_bars

from bertcli.errors import BertcliError
from bertcli.hub import missing, repo_folder
from bertcli.tensors import CONVERT_PICKLE, INDEX_FILE, SINGLE_FILE, shard_names

TOKENIZER_FILES = (
    "tokenizer.json", "vocab.txt", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json",
)  # fmt: skip
SENTENCE_FILES = ("modules.json", "sentence_bert_config.json", "config_sentence_transformers.json")
MODULE_FILES = re.compile(r"\d+_\w+/config\.json|\d+_Dense/model\.safetensors", re.ASCII)

# Error classes of requests, httpx and httpx2, one of which every Hub client uses: known by name, not imported.
BROKEN = {"RemoteProtocolError", "ReadError", "ChunkedEncodingError", "IncompleteRead"}
UNREACHABLE = {"ConnectError", "TimeoutException", "NetworkError", "ProxyError", "Timeout", "ConnectionError"}


class _Listing(NamedTuple):
    """The files of a repository at a commit, with their sizes if the Hub gives them."""

    repo: str
    commit: str
    sizes: dict[str, int | None]


def download(repos: list[str], revision: str | None, cache: Path, progress: bool, weights: bool = True) -> Path:
    """The folder of the first of `repos` that the Hub knows; files that are not cached are fetched."""
    with _quiet(), _bars(False):
        try:
            listing = _list(repos, revision)
            bars = progress and sys.stderr is not None and sys.stderr.isatty()
            folder = _fetch(listing, cache, bars) if weights else _fetch_tokenizer(listing, cache)
            if revision != listing.commit:
                _point(repo_folder(cache, listing.repo) / "refs" / (revision or "main"), listing.commit)
        except BertcliError:
            raise
        except Exception as error:  # the client's errors have no common class
            raise _explained(error, repos[0], revision) from error
    return folder


@contextmanager
def _quiet() -> Iterator[None]:
    """Silence the client's warnings and log lines: errors reach the user as one line of ours."""
    log = logging.getLogger("huggingface_hub")
    level = log.level
    log.setLevel(logging.CRITICAL)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        log.setLevel(level)


def _list(repos: list[str], revision: str | None) -> _Listing:
    api = HfApi()
    for position, repo in enumerate(repos):
        try:
            info = api.model_info(repo, revision=revision, files_metadata=True, timeout=constants.HF_HUB_ETAG_TIMEOUT)
        except RepositoryNotFoundError:
            if position + 1 < len(repos):
                continue
            raise
        break
    commit = str(info.sha)
    sizes = {file.rfilename: file.size for file in info.siblings or ()}
    if not sizes:  # a mirror that leaves them out
        sizes = dict.fromkeys(api.list_repo_files(repo, revision=commit))
    return _Listing(repo, commit, sizes)


def _fetch(listing: _Listing, cache: Path, progress: bool) -> Path:
    """Small files first: problems with the model show before anything large is fetched."""
    small, weights = _needed(listing.repo, listing.sizes)
    for name in small:
        _get(listing, name, cache)
    folder = _get(listing, "config.json", cache).parent
    if weights == [INDEX_FILE]:
        _get(listing, INDEX_FILE, cache)
        weights = sorted(set(shard_names(folder / INDEX_FILE).values()))
    lost = [name for name in weights if name not in listing.sizes]
    lost += [name for name in missing(folder) if name not in weights]
    if lost:
        raise BertcliError(f"{listing.repo} on the Hub lacks {lost[0]}: the model is incomplete, use another one.")
    with _bars(progress):
        for name in weights:
            _get(listing, name, cache)
    return folder


def _fetch_tokenizer(listing: _Listing, cache: Path) -> Path:
    """Fetch what is needed when nothing is computed."""
    paths = [_get(listing, name, cache) for name in _tokenizer_files(listing.repo, listing.sizes)]
    return paths[0].parent


def _needed(repo: str, names: Collection[str]) -> tuple[list[str], list[str]]:
    """The small files and the weights to fetch, out of all the names in a repository."""
    weights = next(([name] for name in (SINGLE_FILE, INDEX_FILE) if name in names), [])
    small = _tokenizer_files(repo, names)
    if not weights and any(name.startswith("pytorch_model") for name in names):
        raise BertcliError(
            f"{repo} on the Hub has its weights only as pytorch_model.bin, a pickle: opening one can run code from "
            "whoever made it, so bertcli does not; see whether --revision refs/pr/1 has safetensors, or, if you trust "
            f"it, fetch it yourself and convert it in its folder where PyTorch is installed: {CONVERT_PICKLE}"
        )
    if not weights:
        raise BertcliError(f"{repo} on the Hub has neither {SINGLE_FILE} nor {INDEX_FILE}: use another model.")
    small += [name for name in SENTENCE_FILES if name in names]
    if "modules.json" in names:
        small += sorted(name for name in names if MODULE_FILES.fullmatch(name))
    return small, weights


def _tokenizer_files(repo: str, names: Collection[str]) -> list[str]:
    """The configuration, and the files of the tokenizer."""
    if "config.json" not in names:
        raise BertcliError(f"{repo} on the Hub has no config.json: it is not a model that bertcli can read.")
    if not {"tokenizer.json", "vocab.txt"}.intersection(names):
        raise BertcliError(f"{repo} on the Hub has neither tokenizer.json nor vocab.txt: use another model.")
    return [name for name in ("config.json", *TOKENIZER_FILES) if name in names]


def _get(listing: _Listing, name: str, cache: Path) -> Path:
    """One file in the cache, fetched unless it is there; BertcliError if its size is not that of the listing."""
    path = Path(hf_hub_download(listing.repo, name, revision=listing.commit, cache_dir=cache))
    size = listing.sizes[name]
    if size is not None and path.stat().st_size != size:
        found = path.stat().st_size
        path.resolve().unlink()  # also what the link points to, or the next run would take it for the file
        path.unlink(missing_ok=True)
        raise BertcliError(f"{name} of {listing.repo} arrived with {found:,} bytes instead of {size:,}: try again.")
    return path


@contextmanager
def _bars(wanted: bool) -> Iterator[None]:
    """The client's progress bars, switched on or off for a while (HF_HUB_DISABLE_PROGRESS_BARS overrides)."""
    before = are_progress_bars_disabled()
    (enable_progress_bars if wanted else disable_progress_bars)()
    try:
        yield
    finally:
        (disable_progress_bars if before else enable_progress_bars)()


def _point(ref: Path, commit: str) -> None:
    """Write the commit to `ref` in one atomic step, readable by everyone who shares the cache."""
    ref.parent.mkdir(parents=True, exist_ok=True)
    temporary = ref.with_name(f".{ref.name}.{token_hex(8)}")
    try:
        temporary.write_text(commit, encoding="ascii")
        temporary.replace(ref)
    finally:
        temporary.unlink(missing_ok=True)


def _explained(error: Exception, repo: str, revision: str | None) -> BertcliError:
    """What went wrong and what to do, from the classes of the error and of its causes."""
    hub = constants.ENDPOINT
    chain: list[BaseException] = []
    cause: BaseException | None = error
    while cause is not None and cause not in chain:
        chain.append(cause)
        cause = cause.__cause__ or cause.__context__
    kinds = {kind.__name__ for link in chain for kind in type(link).__mro__}
    responses = [getattr(link, "response", None) for link in chain]
    status = next((response.status_code for response in responses if response is not None), None)
    system = next((link for link in chain if isinstance(link, OSError) and link.strerror), None)
    if "GatedRepoError" in kinds:
        return BertcliError(f"{repo} is gated: accept its terms on {hub}/{repo} and set HF_TOKEN to your token.")
    if "RepositoryNotFoundError" in kinds:
        return BertcliError(
            f"There is no folder {repo}, and no accessible model of that name on {hub}: check the spelling, or "
            "set HF_TOKEN if it is private."
        )
    if "RevisionNotFoundError" in kinds:
        return BertcliError(f"{repo} on {hub} has no revision {revision or 'main'}: give a branch, tag or commit.")
    if any("Consistency check failed" in str(link) for link in chain):
        return BertcliError(f"A file of {repo} arrived from {hub} with the wrong size and was discarded: try again.")
    if kinds & BROKEN:
        return BertcliError(f"The connection to {hub} broke off while fetching {repo}: try again.")
    if status in (401, 403):
        return BertcliError(f"{hub} refused {repo} with status {status}: check HF_TOKEN.")
    if status is not None:
        return BertcliError(f"{hub} answered {status} when asked for {repo}: try again later.")
    if kinds & UNREACHABLE:
        return BertcliError(
            f"{hub} cannot be reached, and {repo} is not in the cache: check the connection, or give a folder."
        )
    if system is not None:
        at = f" ({system.filename})" if system.filename else ""
        return BertcliError(f"{repo} cannot be written to the cache{at}: {system.strerror}.")
    if "JSONDecodeError" in kinds:
        return BertcliError(f"{hub} does not answer like a Hub: check HF_ENDPOINT and the proxy.")
    reason = (str(chain[-1]).strip() or type(error).__name__).splitlines()[0]
    return BertcliError(f"{repo} could not be fetched from {hub}: {reason}")
