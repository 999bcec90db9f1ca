"""Write a file whole or not at all: under a temporary name first, which is synced and then renamed."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from bertcli.errors import BertcliError


@contextmanager
def writing(file: str) -> Iterator[None]:
    """Turn disk errors in this context into BertcliErrors that name the file."""
    try:
        yield
    except OSError as error:
        raise BertcliError(f"Cannot write {file}: {error.strerror or error}; nothing there was changed.") from None


@contextmanager
def replacing(path: Path, temporary: Path) -> Iterator[IO[bytes]]:
    """Yield a stream to a temporary file; sync and rename it to `path`, with the old permissions. Errors: OSError."""
    try:
        with open(temporary, "wb") as stream:
            yield stream
            stream.flush()
            if path.exists():
                os.chmod(temporary, path.stat().st_mode)
            os.fsync(stream.fileno())
    except BaseException:
        temporary.unlink(missing_ok=True)  # room on a full disk for what is to be kept
        raise
    os.replace(temporary, path)
