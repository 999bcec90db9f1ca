"""Connections: how many there may be, and how long one may send nothing or read nothing."""

import asyncio
from copy import copy
from typing import Any

import uvicorn
from starlette.types import Message, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

# Seconds for the head of a request, from the beginning of a connection or the end of the last answer.
SECONDS_FOR_HEAD = 10.0
# Seconds that a client has to go on reading an answer once the server is ending.
SECONDS_AT_END = 2.0
MOST_CONNECTIONS = 1000
# Descriptors for files, libraries and the event loop itself.
OTHER_DESCRIPTORS = 48


def most_connections() -> int:
    """The connections that this process can have: a third of its descriptors, since the event loop
    accepts as many at once, and again before it closes what is too much.

    The soft limit of descriptors is raised, if it may be.
    """
    try:
        import resource
    except ImportError:
        return MOST_CONNECTIONS
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 3 * MOST_CONNECTIONS + OTHER_DESCRIPTORS
    if soft != resource.RLIM_INFINITY and soft < wanted:
        soft = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    if soft == resource.RLIM_INFINITY:
        return MOST_CONNECTIONS
    return max(8, min(MOST_CONNECTIONS, (soft - OTHER_DESCRIPTORS) // 3))


class Connections:
    """The open connections of a server, and their limits.

    most: beyond it the one is closed that has waited longest for a request, or the new one. seconds_for_answer: until a
    client must have read its answer.
    """

    def __init__(self, most: int, seconds_for_answer: float) -> None:
        self.most = most
        self.seconds_for_answer = seconds_for_answer
        self.ending = False
        # Those that wait for a request, the one that has waited longest first; and those that are being answered.
        self._waiting: dict[Connection, None] = {}
        self._answered: set[Connection] = set()

    def protocol(self, *arguments: Any, **keywords: Any) -> "Connection":
        """Make the protocol of a connection, as uvicorn asks for it."""
        return Connection(self, *arguments, **keywords)

    def end(self) -> None:
        """Close what reads nothing or sends nothing within SECONDS_AT_END."""
        self.ending = True
        for connection in (*self._waiting, *self._answered):
            connection.hurry()

    @property
    def count(self) -> int:
        """The number of open connections."""
        return len(self._waiting) + len(self._answered)

    def has_room(self) -> bool:
        """True if one more connection may be opened, perhaps in the place of one that waits."""
        if self.count < self.most:
            return True
        for longest_waiting in self._waiting:
            longest_waiting.close()
            return True
        return False

    def waits(self, connection: "Connection") -> None:
        """Count a connection as waiting for a request."""
        self._answered.discard(connection)
        self._waiting[connection] = None

    def is_answered(self, connection: "Connection") -> None:
        """Count a connection as having a request."""
        self._waiting.pop(connection, None)
        self._answered.add(connection)

    def closed(self, connection: "Connection") -> None:
        """Count a connection no more."""
        self._waiting.pop(connection, None)
        self._answered.discard(connection)


class Connection(H11Protocol):
    """uvicorn's protocol for HTTP/1.1, with a time for the head of a request and for reading its answer.

    A request's own time is the application's.
    """

    def __init__(self, connections: Connections, config: uvicorn.Config, *arguments: Any, **keywords: Any) -> None:
        self._connections = connections
        self._application: Any = config.loaded_app
        self._open: asyncio.Transport | None = None
        self._timer: asyncio.TimerHandle | None = None
        # uvicorn calls the application with each request whose head is complete.
        of_this = copy(config)
        of_this.loaded_app = self._answer
        super().__init__(of_this, *arguments, **keywords)

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        if not self._connections.has_room():
            transport.abort()
            return
        self._open = transport
        self._connections.waits(self)
        self._close_after(SECONDS_FOR_HEAD)
        super().connection_made(transport)

    def data_received(self, data: bytes) -> None:
        if self._open is not None:
            super().data_received(data)

    def eof_received(self) -> None:
        if self._open is not None:
            super().eof_received()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_timer()
        self._connections.closed(self)
        if self._open is not None:
            self._open = None
            super().connection_lost(exc)

    def close(self) -> None:
        """Close the connection at once, whatever is still to be sent."""
        self._connections.closed(self)
        if self._open is not None:
            self._open.abort()

    def hurry(self) -> None:
        """Shorten the time that is running."""
        if self._timer is not None:
            self._close_after(SECONDS_AT_END)

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Call the application with a request."""
        self._stop_timer()
        self._connections.is_answered(self)

        async def timed(message: Message) -> None:
            if message["type"] == "http.response.start":
                self._close_after(self._connections.seconds_for_answer)
            await send(message)

        try:
            await self._application(scope, receive, timed)
        finally:
            if self._open is not None:
                self._connections.waits(self)
                self._close_after(SECONDS_FOR_HEAD)

    def _close_after(self, seconds: float) -> None:
        self._stop_timer()
        if self._connections.ending:
            seconds = min(seconds, SECONDS_AT_END)
        self._timer = asyncio.get_running_loop().call_later(seconds, self.close)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


def configuration(application: Any, connections: Connections, **more: Any) -> uvicorn.Config:
    """uvicorn's configuration for an application whose connections are these."""
    return uvicorn.Config(
        application,
        log_config=None,
        access_log=False,
        server_header=False,
        lifespan="on",
        loop="asyncio",
        http=connections.protocol,  # type: ignore[arg-type]
        ws="none",
        proxy_headers=False,
        backlog=connections.most,
        **more,
    )
