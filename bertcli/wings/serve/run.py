"""Run the server process: warm up the models, listen, and on a signal answer what was accepted before it ends."""

import gc
import logging
import os
import signal
import socket
import stat
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from threading import Thread, Timer
from types import FrameType

import uvicorn

from bertcli.cli.status import INTERRUPTED
from bertcli.engine.memory import one_arena
from bertcli.errors import BertcliError
from bertcli.wings.serve.app import Server
from bertcli.wings.serve.connections import configuration
from bertcli.wings.serve.served_model import Served
from bertcli.wings.serve.service import Limits

# The status of a process that Ctrl-C ended.
# Until a thread that waits for the interpreter gets it: requests are read between a batch's matrix products. Python's
# default is ten times as long, which costs 4 % of the texts a second.
SWITCH_SECONDS = 0.0005
# Of one wait for the server's thread: on Windows a signal is handled only when the main thread stops waiting.
WAIT_SECONDS = 0.5
# Seconds after `drain` for the 503s and for clients that read slowly.
SECONDS_TO_ANSWER = 1
# Seconds after `drain` for all of that and for the threads to end.
SECONDS_TO_END = 1.5


def serve(
    models: Sequence[Served],
    limits: Limits,
    host: str,
    port: int,
    uds: Path | None = None,
) -> None:
    """Serve until a signal comes; then answer accepted requests in `limits.drain` seconds, and the rest with 503.

    uds: the path of a Unix socket, in place of host and port. A second signal ends the process at once, with status
    130. Errors: BertcliError for an address that is not free, damaged weights.
    """
    one_arena()
    sys.setswitchinterval(SWITCH_SECONDS)
    for served in models:
        served.check()
    if uds is None:
        bound = listening(host, port)
        _, bound_port, *_ = bound.getsockname()
        address = f"http://{f'[{host}]' if ':' in host else host}:{bound_port}"
    else:
        bound = listening_at(uds)
        address = f"unix:{uds}"

    def ready() -> None:
        shorts = [served.short for served in models]
        for served in models:
            # Requests name a model by the last part of its name, or by all of it where two have that part.
            name = served.short if shorts.count(served.short) == 1 else served.name
            print(f"Serving {name} ({served.summary}) at {address}", file=sys.stderr, flush=True)

    # Errors are in our own log. uvicorn's would have tracebacks of the requests that it cancels at the end.
    logging.getLogger("uvicorn").addHandler(logging.NullHandler())
    logging.getLogger("uvicorn").propagate = False
    server = Server(models, limits, ready)
    # Models and modules stay until the end: the garbage collector need not visit them again and again.
    gc.collect()
    gc.freeze()
    seconds = int(limits.drain) + SECONDS_TO_ANSWER
    config = configuration(server.app, server.connections, timeout_graceful_shutdown=seconds)
    running = uvicorn.Server(config)
    # Not in the main thread, where uvicorn would handle the signals, and end the process by them.
    thread = Thread(target=running.run, args=([bound],), name="bertcli_serve")

    def end(number: int, frame: FrameType | None) -> None:
        if server.draining:
            os._exit(INTERRUPTED)
        running.should_exit = True
        server.drain()
        _after(limits.drain, server.abort)
        # In case that a client never reads its answer, or a batch takes minutes.
        _after(limits.drain + SECONDS_TO_END, lambda: os._exit(0))

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, end)
    thread.start()
    while thread.is_alive():
        thread.join(WAIT_SECONDS)
    if uds is not None:
        uds.unlink(missing_ok=True)
    # Python would wait for the threads.
    if server.is_computing:
        sys.stderr.flush()
        os._exit(0)


def _after(seconds: float, function: object) -> None:
    timer = Timer(seconds, function)  # type: ignore[arg-type]
    timer.daemon = True
    timer.start()


def listening(host: str, port: int) -> socket.socket:
    """Open a listening socket. Errors: BertcliError for an address that is not free."""
    # asyncio sends small packets at once only if the socket names TCP as its protocol.
    bound = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        # On Windows SO_REUSEADDR would let a second server take the same port.
        exclusive = getattr(socket, "SO_EXCLUSIVEADDRUSE", socket.SO_REUSEADDR)
        bound.setsockopt(socket.SOL_SOCKET, exclusive, 1)
        bound.bind((host, port))
        bound.listen(2048)
    except OSError as error:
        bound.close()
        reason = error.strerror or error
        raise BertcliError(
            f"Cannot listen at {host}, port {port} ({reason}): choose another (--host, --port)."
        ) from None
    return bound


def listening_at(path: Path) -> socket.socket:
    """Open a listening Unix socket that only this user may use; that of a server which is gone is replaced.

    Errors: BertcliError.
    """
    family = getattr(socket, "AF_UNIX", None)
    if family is None:
        raise BertcliError("This system has no Unix sockets: use --host and --port.")
    bound = socket.socket(family, socket.SOCK_STREAM)
    try:
        with suppress(FileNotFoundError):
            if stat.S_ISSOCK(path.stat().st_mode) and not _answers(path, family):
                path.unlink()
        # Set before the socket exists: a chmod afterwards would leave it open to others for a moment.
        mask = os.umask(0o177)
        try:
            bound.bind(str(path))
        finally:
            os.umask(mask)
        bound.listen(2048)
    except OSError as error:
        bound.close()
        reason = error.strerror or error
        raise BertcliError(f"Cannot listen at {path} ({reason}): choose another path (--uds).") from None
    return bound


def _answers(path: Path, family: int) -> bool:
    """True if a process listens at a Unix socket."""
    with socket.socket(family, socket.SOCK_STREAM) as client:
        return client.connect_ex(str(path)) == 0
