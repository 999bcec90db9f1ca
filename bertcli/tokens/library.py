"""Turn failures of the tokenizers library into a BertcliError of one line.

The library is written in Rust. When it panics, as it may on a damaged tokenizer.json, it prints lines of its own to
stderr, and Python gets an exception. While a tokenizer is opened, those lines are suppressed, and a few texts are
tokenized, since most panics come with any text. Later, at a single text of the user's, a panic prints its lines before
ours: file descriptor 2 belongs to all threads, so nothing redirects it while they run.
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
        yield
    except BaseException as error:
        if type(error) not in (Exception, ValueError) and type(error).__name__ != PANIC:
            raise
        raise BertcliError(f"{what} ({error!s:.300}): {advice}.") from None


@contextmanager
def without_lines_of_panics() -> Iterator[None]:
    """Suppress the lines that a panic prints to stderr; anything else written there is printed at the end."""
    with _one_at_a_time:
        try:
            terminal = os.dup(STDERR)
        except OSError:  # stderr is closed
            yield
            return
        kept, into = os.pipe()
        for end in (kept, into):
            os.set_blocking(end, False)  # a full pipe loses lines instead of blocking
        os.dup2(into, STDERR)
        os.close(into)
        try:
            yield
        finally:
            os.dup2(terminal, STDERR)  # closes the pipe's other end
            os.close(terminal)
            with open(kept, "rb") as stream:
                written = stream.read() or b""
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
