"""The process from which forked.py has others forked: it has imported what commands import, and has done nothing else.

`python fork_server.py SOCKET MODULE...` reads requests from the socket and forks for each. What is forked leaves the
loop and runs the request's code at the end of this file, as Python runs `-c`: its end is that of any Python process.
"""

import atexit
import gc
import importlib
import io
import json
import os
import signal
import socket
import sys
from contextlib import suppress
from typing import Any

STREAMS = (0, 1, 2)


def serve(requests: socket.socket) -> dict[str, Any]:
    """Fork for each request; return it in the process that was forked for it, with its streams in their places."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # keepers need no parent
    while True:
        message, files, _, _ = socket.recv_fds(requests, 1 << 20, 4)
        if not message:
            os._exit(0)
        if os.fork() == 0:
            requests.close()
            return _kept(json.loads(message), *files)
        for file in files:
            os.close(file)


def _kept(request: dict[str, Any], stdin: int, stdout: int, stderr: int, told: int) -> dict[str, Any]:
    """Fork once more; in the parent, which keeps the child, tell its number and at the end its exit status."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    for file, place in zip((stdin, stdout, stderr), STREAMS, strict=True):
        os.dup2(file, place)
        os.close(file)
    child = os.fork()
    if child:
        for place in STREAMS:
            os.close(place)
        os.write(told, b"%d\n" % child)
        _, status = os.waitpid(child, 0)
        os.write(told, b"%d\n" % os.waitstatus_to_exitcode(status))
        os._exit(0)
    os.close(told)
    return request


def begin(request: dict[str, Any]) -> None:
    """Make this process one that was started with the request's arguments, environment and folder."""
    if request["session"]:
        os.setsid()
    os.chdir(request["folder"])
    os.environ.clear()
    os.environ.update(request["environment"])
    for place, name in enumerate(("stdin", "stdout", "stderr")):
        setattr(sys, name, _stream(place, name))
        setattr(sys, f"__{name}__", getattr(sys, name))
    sys.argv = request["arguments"]
    sys.path[:1] = ["", *request["path"]]  # as for -c with PYTHONPATH


def _stream(place: int, name: str) -> io.TextIOWrapper:
    """Open a standard stream as Python does when it starts."""
    before = getattr(sys, name)
    unbuffered = bool(os.environ.get("PYTHONUNBUFFERED"))
    without_buffer = unbuffered and place > 0
    file: Any = open(place, "wb" if place else "rb", buffering=0 if without_buffer else -1, closefd=False)  # noqa: SIM115
    (file if without_buffer else file.raw).name = before.name
    lines = not unbuffered and (place == 2 or file.isatty())
    encoding, _, errors = os.environ.get("PYTHONIOENCODING", "").partition(":")
    if encoding and not errors:
        errors = "strict"
    if place == 2:
        errors = before.errors
    return io.TextIOWrapper(
        file,
        encoding or before.encoding,
        errors or before.errors,
        newline="\n",
        line_buffering=lines,
        write_through=unbuffered,
    )


class End:
    """The last thing a forked process does: it leaves at once, where Python would take all that was imported apart.

    That takes five times as long as what most of them do, for each object is written to, and so copied.
    """

    status: int | None = None  # known where the code ended by itself or by `sys.exit(number)`

    def leave(self) -> None:
        """Leave, unless the end has something to tell: of an error, or of a stream that takes no more."""
        if self.status is None:
            return
        try:
            sys.stdout.flush()
            sys.stderr.flush()
        except (OSError, ValueError):
            return
        os._exit(self.status)


def run(code: str, end: End) -> None:
    """Run the code as Python runs `-c`."""
    names = {"__name__": "__main__", "__builtins__": __builtins__}
    try:
        exec(compile(code, "<string>", "exec"), names)
        end.status = 0
    except SystemExit as left:
        if isinstance(left.code, int):
            end.status = left.code & 0xFF
        raise


if __name__ == "__main__":
    end = End()
    atexit.register(end.leave)  # before all that imports register, and so after it
    connection = socket.socket(fileno=int(sys.argv[1]))
    for module in sys.argv[2:]:
        with suppress(ImportError):  # of an extra
            importlib.import_module(module)
    assert len(os.listdir("/proc/self/task")) == 1, "a thread would be missing in what is forked"
    gc.freeze()  # what is forked searches its own objects for garbage at its end, not those that were imported
    asked = serve(connection)
    begin(asked)
    run(asked["code"], end)
