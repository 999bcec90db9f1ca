"""Failures of the tokenizers library in one line of ours.

The library is written in Rust, where a mistake is a panic: the thread prints lines of its own, then Python gets an
exception. A damaged or hostile tokenizer.json is one way to a panic. While a tokenizer is opened, such lines are kept
off the terminal, and a few texts are tried, since most panics come with any text. A panic at one text of the user's
alone does print its lines before ours: file descriptor 2 belongs to all threads, so it is left alone while they run.
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
PROBES = ("", " ", "a a", "Ab é 中 1, the")
STDERR = 2
AT_OPENING = "fetch the model again, or use another"  # what to do where no text is to blame

_one_at_a_time = threading.Lock()


@contextmanager
def library_errors(what: str, advice: str = "try another text, or fetch the model again") -> Iterator[None]:
    """Turn what the library raises into a BertcliError that begins with `what` and ends with advice.

    The library has no class of its own for errors. Subclasses of those it uses are not its errors: they come from
    Python code that ran meanwhile, such as a handler of signals.
    """
    try:
        yield
    except BaseException as error:
        if type(error) not in (Exception, ValueError) and type(error).__name__ != PANIC:
            raise
        raise BertcliError(f"{what} ({error!s:.300}): {advice}.") from None


@contextmanager
def without_lines_of_panics() -> Iterator[None]:
    """Keep off stderr what a panic in the block prints; whatever else is written there meanwhile comes afterwards."""
    with _one_at_a_time:
        try:
            terminal = os.dup(STDERR)
        except OSError:  # stderr is closed
            yield
            return
        kept, into = os.pipe()
        for end in (kept, into):
            os.set_blocking(end, False)  # a full pipe loses lines and stops nobody
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
    """Panic now rather than at a text of the user's."""
    try:
        backend.encode_batch(list(PROBES), add_special_tokens=False)
    except Exception:
        return  # an ordinary error is about one text, and comes again with such a text
    if backend.decoder is not None:
        backend.decoder.decode(["ab", ""])
