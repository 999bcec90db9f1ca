"""The Hugging Face cache: find a model in it, and list the files that a cached model still lacks.

`models--ORGANIZATION--NAME/refs/REVISION` holds a commit, `snapshots/COMMIT/` the files. The cache is read without the
Hub client, so a cached model needs neither its import nor the network.
"""

import os
import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from secrets import token_hex

from bertcli.errors import BertcliError
from bertcli.folder.adapter import CONFIG_FILE
from bertcli.folder.files import ADAPTER_FILES, INDEX_ENDING, SINGLE_FILE, Folder, shard_names, weights_file
from bertcli.folder.folder_types import PLAIN
from bertcli.folder.layout import Layout

COMMIT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")  # a hash of Git


def cache_folder(cache_dir: str | Path | None = None) -> Path:
    """Return the folder of the Hugging Face cache, from the environment variables that the Hub client reads."""
    if cache_dir is not None:
        return Path(cache_dir).expanduser()
    setting = os.environ.get
    home = setting("HF_HOME") or os.path.join(setting("XDG_CACHE_HOME") or os.path.join("~", ".cache"), "huggingface")
    folder = setting("HF_HUB_CACHE") or setting("HUGGINGFACE_HUB_CACHE") or os.path.join(home, "hub")
    return Path(os.path.expandvars(os.path.expanduser(folder)))


def repo_folder(cache: Path, repo: str) -> Path:
    """Return the folder in which the cache keeps all revisions of a model."""
    return cache / f"models--{repo.replace('/', '--')}"


def snapshot(cache: Path, repo: str, revision: str) -> Path | None:
    """Find the cached folder of a revision, complete or not; None if there is none."""
    storage = repo_folder(cache, repo)
    ref = storage / "refs" / revision
    if ref.is_file():
        revision = ref.read_text(encoding="ascii", errors="replace").strip()
        if not COMMIT.fullmatch(revision):
            return None
    folder = storage / "snapshots" / revision
    return folder if folder.is_dir() else None


def cached(cache: Path) -> Iterator[tuple[str, str, Path]]:
    """Yield name, revision and folder of each model in the cache, complete or not, sorted by name."""
    for storage in sorted(cache.glob("models--*")):
        name = storage.name.removeprefix("models--").replace("--", "/")
        for ref in sorted(path for path in storage.glob("refs/**/*") if path.is_file()):
            revision = ref.relative_to(storage / "refs").as_posix()
            folder = snapshot(cache, name, revision)
            if folder is not None:
                yield name, revision, folder


def point(ref: Path, commit: str) -> None:
    """Write the commit to `ref` in one atomic step, readable by everyone who shares the cache."""
    ref.parent.mkdir(parents=True, exist_ok=True)
    temporary = ref.with_name(f".{ref.name}.{token_hex(8)}")
    try:
        temporary.write_text(commit, encoding="ascii")
        temporary.replace(ref)
    finally:
        temporary.unlink(missing_ok=True)


def missing(folder: Folder, weights: bool = True) -> list[str]:
    """List the files that a snapshot lacks; none for a complete model.

    A model needs its configuration and a tokenizer; with `weights` also all shards and the modules' files.
    """
    try:
        layout = Layout(folder)
        network, folder_type, modules = layout.transformer, layout.folder_type, layout.missing_files()
        if not folder.route:
            for route in layout.network_routes:
                modules += missing(Folder(folder.path, folder.base, folder.adapter, route))
    except BertcliError:
        # A damaged file is not missing: reading it later raises the error.
        network, folder_type, modules = folder, PLAIN, []
    if network.has(CONFIG_FILE):
        has_adapter = any(network.has(name) for name in ADAPTER_FILES)
        return [] if has_adapter or not weights else [ADAPTER_FILES[0]]
    needed = folder_type.needed_files(network.names)
    if weights:
        needed += _weights_needed(network)
    paths = [network.file(name) for name in needed]
    lost = [path.relative_to(folder.path).as_posix() for path in paths if not path.is_file()]
    return [*lost, *modules] if weights else lost


def _weights_needed(network: Folder) -> list[str]:
    """List the files of weights that a network needs: with an index, also the shards that it lists."""
    file = weights_file(network) or network.file(SINGLE_FILE)
    if not file.name.endswith(INDEX_ENDING):
        return [file.name]
    with suppress(BertcliError):
        return [file.name, *sorted(set(shard_names(network, file.name).values()))]
    return [file.name]
