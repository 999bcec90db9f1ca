"""A server with models on a free port of 127.0.0.1, and requests to it as any client makes them."""

import http.client
import json
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import uvicorn

from bertcli.model import Model
from bertcli.wings.serve.app import Server
from bertcli.wings.serve.connections import configuration
from bertcli.wings.serve.run import listening
from bertcli.wings.serve.served_model import Served
from bertcli.wings.serve.service import Limits


class Answer(NamedTuple):
    """What came back: the status, the headers with small letters, and the body, as JSON where it is that."""

    status: int
    headers: dict[str, str]
    body: Any


class Running(NamedTuple):
    """A server that answers at `url`."""

    url: str
    server: Server

    def ask(
        self, path: str, body: Any = None, headers: dict[str, str] | None = None, method: str | None = None
    ) -> Answer:
        """A request: with a body, which is JSON unless it is bytes, a POST."""
        address = urlsplit(self.url)
        connection = http.client.HTTPConnection(address.hostname or "", address.port, timeout=60)
        sent = {"Content-Type": "application/json"} | (headers or {}) if body is not None else headers or {}
        data = body if isinstance(body, bytes | None) else json.dumps(body).encode()
        connection.request(method or ("GET" if body is None else "POST"), path, data, sent)
        response = connection.getresponse()
        content = response.read()
        connection.close()
        names = {name.lower(): value for name, value in response.getheaders()}
        is_json = names.get("content-type", "").startswith("application/json")
        return Answer(response.status, names, json.loads(content) if is_json else content.decode())

    def begun(self, path: str, body: Any = None) -> http.client.HTTPConnection:
        """A request whose answer nobody has read yet; who closes the connection is a client that leaves."""
        address = urlsplit(self.url)
        connection = http.client.HTTPConnection(address.hostname or "", address.port)
        data = None if body is None else json.dumps(body)
        connection.request("GET" if body is None else "POST", path, data, {"Content-Type": "application/json"})
        return connection

    def given(self, path: str, body: Any = None) -> Any:
        """The body of an answer with status 200."""
        answer = self.ask(path, body)
        assert answer.status == 200, answer
        return answer.body


@contextmanager
def serving(
    models: Sequence[Model], limits: Limits | None = None, ready: Callable[[], None] = lambda: None
) -> Iterator[Running]:
    """`with serving([model]) as running:` A server in this process, under the models' own names.

    ready: called by the event loop when the server answers.
    """
    server = Server([Served(model, model.name) for model in models], limits or Limits(quiet=True), ready)
    socket = listening("127.0.0.1", 0)
    config = configuration(server.app, server.connections)
    running = uvicorn.Server(config)
    thread = threading.Thread(target=running.run, args=([socket],))
    thread.start()
    try:
        yield Running(f"http://127.0.0.1:{socket.getsockname()[1]}", server)
    finally:
        running.should_exit = True
        thread.join()
        socket.close()
