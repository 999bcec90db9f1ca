"""The Hugging Face cache: `models--ORGANIZATION--NAME/refs/REVISION` holds a commit, `snapshots/COMMIT/` the files.

It is read without the Hub client, so a cached model needs neither its import nor the network.
"""

from __future__ import annotations

import os
import re
from contextlib import suppress
from pathlib import Path
from secrets import token_hex

from bertcli.checkpoint.lacking import has_tokenizer
from bertcli.checkpoint.sentence import missing_files, network_place
from bertcli.checkpoint.tensors import INDEX_ENDING, SINGLE_FILE, shard_names, weights_file
from bertcli.checkpoint.untrusted import read_whole
from bertcli.errors import BertcliError

COMMIT = re.compile("[0-9a-f]{40}")
REF_LIMIT = 1000  # bytes of a file below refs/


def cache_folder(cache_dir: str | Path | None = None) -> Path:
    """Where the Hugging Face cache is; environment variables are read as the Hub client reads them."""
    if cache_dir is not None:
        return Path(cache_dir).expanduser()
    read = os.environ.get
    home = read("HF_HOME") or os.path.join(read("XDG_CACHE_HOME") or os.path.join("~", ".cache"), "huggingface")
    folder = read("HF_HUB_CACHE") or read("HUGGINGFACE_HUB_CACHE") or os.path.join(home, "hub")
    return Path(os.path.expandvars(os.path.expanduser(folder)))


def repo_folder(cache: Path, repo: str) -> Path:
    return cache / f"models--{repo.replace('/', '--')}"


def snapshot(cache: Path, repo: str, revision: str) -> Path | None:
    """The cached folder of that revision, complete or not."""
    storage = repo_folder(cache, repo)
    commit = revision
    if not COMMIT.fullmatch(revision):
        try:
            commit = read_whole(storage / "refs" / revision, REF_LIMIT).decode("ascii").strip()
        except (BertcliError, ValueError):
            return None
    folder = storage / "snapshots" / commit
    return folder if COMMIT.fullmatch(commit) and folder.is_dir() else None


def point(ref: Path, commit: str) -> None:
    """Write the commit to `ref` in one atomic step, readable by everyone who shares the cache."""
    ref.parent.mkdir(parents=True, exist_ok=True)
    temporary = ref.with_name(f".{ref.name}.{token_hex(8)}")
    try:
        temporary.write_text(commit, encoding="ascii")
        temporary.replace(ref)
    finally:
        temporary.unlink(missing_ok=True)


def missing(folder: Path, weights: bool = True) -> list[str]:
    """The files a snapshot lacks; empty for a complete model.

    Needed are the configuration, a tokenizer, and with `weights` all their shards and what modules.json lists.
    """
    try:
        at, static = network_place(folder)
        modules = missing_files(folder)
    except BertcliError:  # a damaged file is not missing: reading it later raises the error
        at, static, modules = folder, False, []
    wanted = [] if static else ["config.json"]
    if static or not has_tokenizer([path.name for path in at.glob("*") if path.is_file()]):
        wanted.append("tokenizer.json")
    if weights:
        file = weights_file(at) or at / SINGLE_FILE
        wanted.append(file.name)
        if file.name.endswith(INDEX_ENDING):
            with suppress(BertcliError):
                wanted += sorted(set(shard_names(file).values()))
    lost = [(at / name).relative_to(folder).as_posix() for name in wanted if not (at / name).is_file()]
    return lost + modules * weights
