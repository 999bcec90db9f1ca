"""Turn failures of the tokenizers library into a BertcliError of one line.

The library is written in Rust. When it panics, as it may on a damaged tokenizer.json or in a regular expression that
gives up at a text, it prints lines of its own to file descriptor 2, and Python gets an exception. Those lines are
suppressed: the descriptor is redirected during each call. What other threads write meanwhile is printed afterwards.
"""

import os
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from tokenizers import Tokenizer as Backend

from bertcli.errors import BertcliError

PANIC = "PanicException"  # pyo3 does not derive it from Exception, and it cannot be imported
FIRST_LINE = re.compile(rb"^\n?thread '.*panicked at", re.MULTILINE)
PROBES = ("", " ", "a a", "Ab é 中 1, the")  # empty, white space, pieces after a space, scripts, accents, digits
STDERR = 2
AT_OPENING = "fetch the model again, or use another"  # what to do where no text is to blame

_one_at_a_time = threading.Lock()


@contextmanager
def library_errors(what: str, advice: str = "try another text, or another model") -> Iterator[None]:
    """Turn the library's exceptions into a BertcliError that begins with `what` and ends with `advice`.

    The library raises plain Exception, ValueError, and a panic. Subclasses of these come from Python code that ran
    meanwhile, such as a signal handler, and pass.
    """
    try:
        with without_lines_of_panics():
            yield
    except BaseException as error:
        if type(error) not in (Exception, ValueError) and type(error).__name__ != PANIC:
            raise
        raise BertcliError(f"{what} ({error!s:.300}): {advice}.") from None


@contextmanager
def without_lines_of_panics() -> Iterator[None]:
    """Suppress the lines that a panic prints to stderr; anything else written there is printed at the end.

    Nothing more is done while another call of this function redirects stderr, in this thread or another.
    """
    # Waiting for the other call would let threads tokenize in turn only.
    if not _one_at_a_time.acquire(blocking=False):
        yield
        return
    try:
        try:
            terminal = os.dup(STDERR)
        except OSError:  # stderr is closed
            yield
            return
        # A file and not a pipe: it cannot be full, and a process that is started meanwhile can go on writing to it.
        kept = _file_in_memory()
        os.dup2(kept, STDERR)
        try:
            yield
        finally:
            os.dup2(terminal, STDERR)
            os.close(terminal)
            _print_all_but_panics(kept)
            os.close(kept)
    finally:
        _one_at_a_time.release()


def _file_in_memory() -> int:
    """Open an empty file without a name, in memory where the system has that, and return its descriptor."""
    if hasattr(os, "memfd_create"):
        return os.memfd_create("stderr")
    import tempfile  # takes time to import

    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())


def _print_all_but_panics(kept: int) -> None:
    """Print what is in a file to stderr, up to the lines of a panic."""
    size = os.lseek(kept, 0, os.SEEK_END)
    if size:
        os.lseek(kept, 0, os.SEEK_SET)
        written = os.read(kept, size)
        panic = FIRST_LINE.search(written)
        os.write(STDERR, written[: panic.start()] if panic else written)


def try_texts(backend: Backend) -> None:
    """Tokenize a few texts, so that a broken tokenizer panics when it is opened, not at the user's text."""
    try:
        backend.encode_batch(list(PROBES), add_special_tokens=False)
    except Exception:
        return  # an ordinary error concerns one text; it is raised again for the user's texts
    if backend.decoder is not None:
        backend.decoder.decode(["ab", ""])
