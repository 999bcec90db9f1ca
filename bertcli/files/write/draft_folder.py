"""Write several files that belong together: into a temporary folder, then each to its place, weights first."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory

from filelock import FileLock, Timeout

from bertcli.files.write.atomic import writing
from bertcli.platforms import sync_folder

# A temporary folder beside what is written, and the file in it that is locked while its process lives.
DRAFT, LOCK = ".bertcli.", ".lock"


@contextmanager
def draft_folder(folder: Path, what: str) -> Iterator[Path]:
    """Yield a temporary folder on the same disk as `folder`; at the end its files are moved there.

    After an error it is removed with all its files. Errors: BertcliError for an OSError, naming `what`.
    """
    with writing(what):
        existing = next(parent for parent in (folder, *folder.parents) if parent.is_dir())
        _remove_left(existing)
        with TemporaryDirectory(prefix=DRAFT, dir=existing) as draft, FileLock(Path(draft, LOCK)):
            yield Path(draft)
            files = sorted((path for path in Path(draft).rglob("*") if path.is_file()), reverse=True)
            files = [path for path in files if path.name != LOCK]
            for file_in_draft in files:
                with file_in_draft.open("r+b") as written:
                    os.fsync(written.fileno())
            for file_in_draft in files:  # weights before the file that refers to them
                destination = folder / file_in_draft.relative_to(draft)
                destination.parent.mkdir(parents=True, exist_ok=True)
                os.replace(file_in_draft, destination)
            for place in {(folder / path.relative_to(draft)).parent for path in files}:
                sync_folder(place)


def _remove_left(folder: Path) -> None:
    """Remove drafts of processes that were killed: their locks ended with them."""
    for draft in folder.glob(f"{DRAFT}*"):
        with suppress(Timeout, OSError):
            if (draft / LOCK).is_file():
                with FileLock(draft / LOCK, blocking=False):
                    pass
                shutil.rmtree(draft)
