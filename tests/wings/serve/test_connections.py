"""Connections that send nothing or read nothing: they cost the others nothing, and are closed."""

import json
import socket
import time
from urllib.parse import urlsplit

import pytest
from helpers.served import Running, serving

import bertcli
from bertcli.wings.serve import connections
from bertcli.wings.serve.service import Limits

HEAD = b"POST /embed HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"


def connected(running: Running) -> socket.socket:
    address = urlsplit(running.url)
    return socket.create_connection((address.hostname, address.port), timeout=10)


def closed(client: socket.socket) -> bool:
    """True if the server has closed a connection, perhaps while something of it was on its way."""
    try:
        while client.recv(1 << 16):
            pass
    except ConnectionError:
        pass
    except TimeoutError:
        return False
    return True


def test_connections_without_a_request_are_few_and_short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "SECONDS_FOR_HEAD", 0.5)
    with serving([bertcli.load("bert-mini-sentence")]) as running:
        running.server.connections.most = 8
        silent = [connected(running) for _ in range(40)]
        half = [connected(running) for _ in range(4)]
        for client in half:
            client.sendall(HEAD)
        begun = time.monotonic()
        assert running.given("/health") == {"status": "ok"}
        assert time.monotonic() - begun < 0.4, "not only when others have been closed"
        assert running.server.connections.count <= 8
        again = connected(running)
        again.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert again.recv(100).startswith(b"HTTP/1.1 200")
        again.sendall(HEAD)
        for client in (*silent, *half, again):
            assert closed(client)
            client.close()
        assert running.server.connections.count == 0


def test_an_answer_that_is_not_read_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    body = json.dumps({"inputs": ["a"] * 2000}).encode()
    with serving([bertcli.load("bert-mini-sentence")], Limits(quiet=True)) as running:
        running.server.connections.seconds_for_answer = 0.3
        deaf = connected(running)
        deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1024)
        deaf.sendall(HEAD + f"Content-Length: {len(body)}\r\n\r\n".encode() + body)
        assert deaf.recv(4) == b"HTTP"
        end = time.monotonic() + 10
        while running.server.connections.count and time.monotonic() < end:
            time.sleep(0.01)
        assert running.server.connections.count == 0
        deaf.close()
