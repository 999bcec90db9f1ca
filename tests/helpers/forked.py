"""Processes of their own that are forked, not started: a start takes a third of a second to a second of imports.

They are as fresh as started ones: nothing has run in them. Tests of what an import does, of options and variables that
Python or NumPy's library reads when it starts, and of how Python begins and ends, start theirs by `subprocess`.
"""

import atexit
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from threading import Timer
from typing import IO, Any

from helpers.deadlines import SECONDS

SERVER = Path(__file__).with_name("fork_server.py")
# Of the variables that Python reads at its start, those that fork_server.py heeds when it opens the streams.
OF_STREAMS = {"PYTHONUNBUFFERED", "PYTHONIOENCODING"}
MAIN = "from bertcli.cli import main; main()"
# What the commands that tests start import sooner or later.
IMPORTED = (
    *("numpy", "rich.table", "rich.progress", "tokenizers", "safetensors.numpy", "filelock", "typer"),
    *("bertcli.cli.app", "bertcli.cli.tasks", "bertcli.cli.tokenize", "bertcli.cli.params", "bertcli.cli.trace"),
    *("bertcli.model", "bertcli.tasks.compute.encode", "bertcli.tasks.compute.score", "bertcli.tasks.running.run"),
    *("bertcli.tokens", "bertcli.models.bert", "bertcli.kinds.read", "bertcli.kinds.dense", "bertcli.weights.loading"),
    *("bertcli.files.write.resumable_output", "bertcli.files.read.inputs", "bertcli.folder.hub"),
    *("httpx2", "httpcore2", "tqdm.auto", "yaml"),  # of the Hub's client, which itself reads its settings at import
    *("starlette.applications", "uvicorn", "pydantic", "orjson", "bertcli.wings.serve.run"),  # if they are installed
)


class Forked:
    """A forked process, with the methods of `subprocess.Popen` that tests use; streams are of bytes."""

    def __init__(self, pid: int, told: IO[bytes], pipes: dict[str, IO[bytes]]) -> None:
        self.pid, self._told = pid, told
        self.stdin, self.stdout, self.stderr = (pipes.get(name) for name in ("stdin", "stdout", "stderr"))
        self.returncode: int | None = None

    def wait(self) -> int:
        """The exit status, once the process has ended; negative for the signal that killed it."""
        if self.returncode is None:
            self.returncode = int(self._told.readline())
            self._told.close()
        return self.returncode

    def close(self) -> None:
        """Close the streams, as whoever reads them no longer does, and wait for the process to end."""
        for stream in (self.stdin, self.stdout, self.stderr):
            if stream is not None:
                stream.close()
        self.wait()

    def send_signal(self, number: int) -> None:
        """Send a signal, unless the process has ended."""
        if self.returncode is None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


@cache
def _server() -> socket.socket:
    """The connection to this process's server, which ends when that closes."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}  # its other threads would be missing after a fork
    command = [sys.executable, str(SERVER), str(theirs.fileno()), *IMPORTED]
    null = subprocess.DEVNULL
    process = subprocess.Popen(
        command, env=environment, pass_fds=[theirs.fileno()], stdin=null, stdout=null, start_new_session=True
    )
    theirs.close()
    atexit.register(process.wait)
    atexit.register(ours.close)
    return ours


def fork(
    *arguments: str | Path,
    code: str = MAIN,
    environment: Mapping[str, str] | None = None,
    folder: str | Path = ".",
    path: Sequence[str | Path] = (),
    session: bool = False,
    **streams: int | IO[bytes],
) -> Forked:
    """Fork a process that runs `code` with these arguments (`bertcli ARGUMENTS` unless told otherwise).

    path: folders to import from before all others, as PYTHONPATH names them. session: lead a session of its own.
    streams: stdin, stdout, stderr, each a file, PIPE or DEVNULL; nothing but DEVNULL unless told.
    """
    environment = os.environ if environment is None else environment
    at_start = {name for name in environment if name.startswith(("PYTHON", "OPENBLAS"))}
    changed = {name for name in at_start - OF_STREAMS if os.environ.get(name) != environment[name]}
    assert not changed, f"{', '.join(sorted(changed))}: read when a process starts, so it has to be started"
    request = {
        "code": code,
        "arguments": ["bertcli" if code == MAIN else "-c", *map(str, arguments)],
        "environment": dict(environment),
        "folder": str(Path(folder).absolute()),
        "path": [*map(str, path)],
        "session": session,
    }
    pipes: dict[str, IO[bytes]] = {}
    given: list[int] = []
    closed: list[int] = []
    for name in ("stdin", "stdout", "stderr"):
        stream = streams.get(name, subprocess.DEVNULL)
        if stream == subprocess.PIPE:
            reader, writer = os.pipe()
            theirs, mine = (reader, writer) if name == "stdin" else (writer, reader)
            pipes[name] = open(mine, "wb" if name == "stdin" else "rb")  # noqa: SIM115
            closed.append(theirs)
        elif stream == subprocess.DEVNULL:
            theirs = os.open(os.devnull, os.O_RDWR)
            closed.append(theirs)
        else:
            theirs = stream if isinstance(stream, int) else stream.fileno()
        given.append(theirs)
    reader, told = os.pipe()
    socket.send_fds(_server(), [json.dumps(request).encode()], [*given, told])
    for file in (*closed, told):
        os.close(file)
    status = open(reader, "rb")  # noqa: SIM115
    return Forked(int(status.readline()), status, pipes)


@contextmanager
def forked(*arguments: str | Path, **options: Any) -> Iterator[Forked]:
    """A process as `fork` makes it, killed when its time is up; its pipes are closed, and it has ended, at the end."""
    process = fork(*arguments, **options)
    timer = Timer(SECONDS, process.kill)
    timer.start()
    try:
        yield process
    finally:
        process.close()
        timer.cancel()


def run(*arguments: str | Path, stdin: bytes | int = b"", **options: Any) -> "subprocess.CompletedProcess[bytes]":
    """Run a forked process to its end, with these bytes or this file for it to read.

    What it writes is kept, unless `options` name a stream for it.
    """
    pipe = subprocess.PIPE
    streams = {"stdin": pipe if isinstance(stdin, bytes) else stdin, "stdout": pipe, "stderr": pipe}
    with forked(*arguments, **{**streams, **options}) as process:
        with ThreadPoolExecutor(3) as pool:
            pool.submit(_write, process.stdin, stdin)
            out, err = (pool.submit(_read, stream) for stream in (process.stdout, process.stderr))
        status = process.wait()
    return subprocess.CompletedProcess([*map(str, arguments)], status, out.result(), err.result())


def _write(stream: IO[bytes] | None, data: bytes | int) -> None:
    if stream is not None and isinstance(data, bytes):
        with suppress(BrokenPipeError), stream:
            stream.write(data)


def _read(stream: IO[bytes] | None) -> bytes:
    return b"" if stream is None else stream.read()
