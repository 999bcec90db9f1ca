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

from bertcli.engine.memory import keep_memory
from bertcli.errors import BertcliError
from bertcli.serve.app import Server
from bertcli.serve.served import Served
from bertcli.serve.service import Limits

INTERRUPTED = 130
# Seconds until a thread that waits for the interpreter gets it: requests are read between a batch's products.
TURN = 0.0005
# Seconds: on Windows a signal is handled only when the main thread stops waiting.
HEED = 0.5
# Seconds after `drain` for the 503s and for clients that read slowly.
SECONDS_TO_ANSWER = 1
# Seconds after `drain` for all of that and for the threads to end.
SECONDS_TO_END = 1.5


def serve(
    models: Sequence[Served], limits: Limits, host: str, port: int, drain: float, uds: Path | None = None
) -> None:
    """Serve until a signal comes; then answer what was accepted, for at most `drain` seconds, and the rest with 503.

    uds: the path of a Unix socket, in place of host and port. A second signal ends the process at once, with status
    130. Errors: BertcliError for an address that cannot be had, damaged weights.
    """
    keep_memory(arenas=1)
    sys.setswitchinterval(TURN)  # ten times as often as by itself: 4 % more texts a second
    for served in models:
        served.check()
    bound = listening(host, port) if uds is None else listening_at(uds)
    address = f"unix:{uds}" if uds else f"http://{f'[{host}]' if ':' in host else host}:{bound.getsockname()[1]}"

    def ready() -> None:
        for served in models:
            print(f"Serving {served.short} ({served.summary}) at {address}", file=sys.stderr, flush=True)

    # Errors are in our own log. uvicorn's would have tracebacks of what it cancels at the end.
    logging.getLogger("uvicorn").addHandler(logging.NullHandler())
    logging.getLogger("uvicorn").propagate = False
    server = Server(models, limits, ready)
    gc.collect()
    gc.freeze()  # what is there now stays: the garbage collector need not go through it again and again
    config = uvicorn.Config(
        server.app, log_config=None, access_log=False, server_header=False, lifespan="on", loop="asyncio", http="h11",
        ws="none", proxy_headers=False, timeout_graceful_shutdown=int(drain) + SECONDS_TO_ANSWER,
    )  # fmt: skip
    running = uvicorn.Server(config)
    # In a thread of its own, since in the main thread it would handle signals, and end the process by them.
    thread = Thread(target=running.run, args=([bound],), name="bertcli_serve")

    def end(number: int, frame: FrameType | None) -> None:
        if server.draining:
            os._exit(INTERRUPTED)
        server.draining = running.should_exit = True
        _after(drain, server.abort)
        _after(drain + SECONDS_TO_END, lambda: os._exit(0))  # a client that never reads, a batch that takes minutes

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, end)
    thread.start()
    while thread.is_alive():
        thread.join(HEED)
    if uds is not None:
        uds.unlink(missing_ok=True)
    if server.is_computing:  # Python would wait for the threads
        sys.stderr.flush()
        os._exit(0)


def _after(seconds: float, function: object) -> None:
    timer = Timer(seconds, function)  # type: ignore[arg-type]
    timer.daemon = True
    timer.start()


def listening(host: str, port: int) -> socket.socket:
    """Open a listening socket. Errors: BertcliError for an address that cannot be had."""
    # asyncio sends small packets at once only where it sees that the protocol is TCP.
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
    """Open a listening Unix socket that only this user may use; a stale one of a dead server is replaced.

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
