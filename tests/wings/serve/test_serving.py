"""`bertcli serve` as a process: what it says, how it begins, and how it ends."""

import json
import re
import signal
import socket
import stat
import subprocess
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from io import TextIOWrapper
from pathlib import Path
from typing import Any

import httpx
import pytest
from helpers.forked import MAIN, Forked, forked
from helpers.near import assert_near
from helpers.terminal import bertcli as run
from helpers.terminal import wrong_usage

import bertcli

LONG = "the dog ran home and " * 60


# The limits have no options.
WITH_LIMITS = (
    "from functools import partial; from bertcli.cli import main; from bertcli.wings.serve import service; "
    "service.Limits = partial(service.Limits, {}); main()"
)


@contextmanager
def started(*arguments: str, limits: str = "") -> Iterator[tuple[Forked, str, list[str]]]:
    """A process that serves at a free port, its address, and the lines it has written on stderr so far."""
    code = WITH_LIMITS.format(limits) if limits else MAIN
    pipe = subprocess.PIPE
    with forked("serve", "--port", "0", *arguments, code=code, stdout=pipe, stderr=pipe) as process:
        assert process.stderr
        said = TextIOWrapper(process.stderr)
        lines: list[str] = []
        for line in said:
            lines.append(line)
            if line.startswith("Serving"):
                break
        address = re.search(r"http://\S+", lines[-1])
        assert address, lines
        reading = threading.Thread(target=lambda: lines.extend(said))
        reading.start()
        try:
            yield process, address[0], lines
        finally:
            process.kill()
            reading.join()


def ask(url: str, body: Any = None) -> Any:
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.load(answer)


def test_clients_see_names_and_no_paths(tmp_path: Path) -> None:
    bundled = Path(bertcli.load("bert-mini-mlm").path or "")
    folders = [str(tmp_path / folder / "model") for folder in ("a", "b")]
    for name in folders:
        Path(name).parent.mkdir()
        Path(name).symlink_to(bundled)
    wrong_usage("serve", "-m", folders[0], "-m", folders[1], why="two models are called model")
    with started("-m", folders[0], "-m", f"other={folders[1]}", "--engine", "numpy") as (_, url, lines):
        listed = ask(f"{url}/v1/models")
        info = ask(f"{url}/info")
        with pytest.raises(urllib.error.HTTPError) as refused:
            ask(f"{url}/tag", {"inputs": "a", "model": "model"})
        with refused.value as error:
            said = error.read().decode()
        with urllib.request.urlopen(f"{url}/pass?text=hi&model=other", timeout=60) as answer:
            said += answer.read().decode()
    assert [one["id"] for one in listed["data"]] == ["model", "other"]
    assert [one["mask_token"] for one in info["models"]] == ["[MASK]", "[MASK]"]
    assert (info["max_concurrent_requests"], info["max_queue_tokens"]) == (1000, 262144)
    assert str(tmp_path) not in f"{listed} {info} {said}"
    assert '<p class="about">other: “hi”' in said, "the page of a pass, too"
    assert lines[0] == f"Serving model (fill-mask) at {url}\n"


def test_what_it_says_and_gives() -> None:
    with started("-m", "bert-mini-sentence", "-m", "bert-mini-mlm", "--engine", "numpy") as (process, url, lines):
        texts = ["A dog ran home.", LONG * 5]
        data = ask(f"{url}/v1/embeddings", {"input": texts})["data"]
        expected = bertcli.load("bert-mini-sentence").encode(texts, truncation="silent")
        assert_near([one["embedding"] for one in data], expected, 1e-6)
        assert ask(f"{url}/fill-mask", {"inputs": "A cup of hot [MASK]."})[0]["token_str"] == "water"
        process.send_signal(signal.SIGINT)
        assert process.wait() == 0
        assert process.stdout
        assert process.stdout.read() == b""
    assert lines[0] == f"Serving bert-mini-sentence (embedding, 256, mean) at {url}\n"
    assert lines[1].startswith("Serving bert-mini-mlm (fill-mask) at ")
    assert re.fullmatch(r"POST /v1/embeddings 200 2 texts 263 tokens [\d.]+ ms\n", lines[2])
    assert re.fullmatch(r"POST /fill-mask 200 1 text \d+ tokens [\d.]+ ms\n", lines[3])


def test_onnx_runtime_computes_where_it_is_installed_and_can(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    for cache, said in ((tmp_path / "cache", ""), (tmp_path / "file", "Note: NumPy computes bert-mini-sentence: ")):
        monkeypatch.setenv("BERTCLI_CACHE", str(cache))
        with started("--quiet", "-m", "bert-mini-sentence") as (process, url, lines):
            (found,) = ask(f"{url}/embed", {"inputs": "a"})
            process.terminate()
            assert process.wait() == 0
        *notes, serving = lines
        assert "".join(notes).startswith(said), notes
        assert (len(notes), serving.split()[0]) == (bool(said), "Serving")
        assert_near(found, bertcli.load("bert-mini-sentence").encode("a"), 1e-5)
    assert [*(tmp_path / "cache").rglob("model.onnx")]


def test_what_was_accepted_is_answered_at_the_end() -> None:
    with started("--quiet", "--threads", "1") as (process, url, _), ThreadPoolExecutor(8) as clients:
        body = {"inputs": [LONG] * 6}
        asked = [clients.submit(ask, f"{url}/embed", body) for _ in range(8)]
        waiting = 0
        while waiting < 3:  # accepted, and not yet computed
            with urllib.request.urlopen(f"{url}/metrics") as answer:
                waiting = int(re.findall(r"^te_queue_size (\d+)", answer.read().decode(), re.MULTILINE)[0])
        process.terminate()
        assert process.wait() == 0
        answered = [one.result() for one in asked if one.exception() is None]
        for one in asked:  # what was not accepted any more
            assert isinstance(one.exception(), urllib.error.URLError | ConnectionError | None)
    assert len(answered) >= waiting
    assert all(len(rows) == 6 for rows in answered)


def test_a_second_signal_ends_it_at_once() -> None:
    with (
        started("--quiet", "--threads", "1", limits="timeout=900") as (process, url, _),
        ThreadPoolExecutor(1) as clients,
    ):
        asked = clients.submit(ask, f"{url}/embed", {"inputs": [LONG] * 1500})
        time.sleep(0.5)
        process.terminate()
        time.sleep(0.3)
        process.terminate()
        assert process.wait() == 130
        assert isinstance(asked.exception(), urllib.error.URLError | ConnectionError)


@pytest.mark.parametrize(
    ("path", "body", "key"),
    [
        ("/v1/embeddings", {"input": [LONG] * 1500}, "message"),
        ("/score", {"inputs": [LONG] * 3}, None),
        ("/embed", {"inputs": ["a"] * 3}, None),
    ],
    ids=["many texts", "one text that costs much", "nothing"],
)
def test_the_end_is_bounded_and_says_so(path: str, body: Any, key: str | None) -> None:
    """What is not done in time is answered in the route's own error shape, and the process is gone soon."""
    models = ("-m", "bert-mini-sentence", "-m", "bert-mini-mlm")
    options = ("--quiet", "--threads", "1")
    with (
        started(*models, *options, limits="drain=0.5, timeout=900") as (process, url, lines),
        ThreadPoolExecutor(1) as clients,
    ):
        asked = clients.submit(ask, url + path, body)
        time.sleep(0.7)
        begun = time.monotonic()
        process.terminate()
        assert process.wait() == 0
        assert time.monotonic() - begun < 3.0
        error = asked.exception()
        if "a" in str(body)[:15]:
            assert len(asked.result()) == 3
        else:
            assert isinstance(error, urllib.error.HTTPError)
            with error:
                answer = json.load(error)["error"]
            assert (error.code, error.headers["content-type"]) == (503, "application/json"), answer
            assert (answer[key] if key else answer) == "The server is shutting down: send the request again later."
    assert "Traceback" not in "".join(lines)


def test_a_client_that_never_reads_does_not_keep_it() -> None:
    with started("--quiet") as (process, url, lines):
        port = int(url.rpartition(":")[2])
        data = json.dumps({"inputs": ["a"] * 2000}).encode()
        with socket.create_connection(("127.0.0.1", port)) as deaf:
            deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1024)
            head = f"POST /embed HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(data)}\r\n"
            deaf.sendall(f"{head}Content-Type: application/json\r\n\r\n".encode() + data)
            time.sleep(1.0)
            begun = time.monotonic()
            process.terminate()
            assert process.wait() == 0
            assert time.monotonic() - begun < 3.0
    assert "Traceback" not in "".join(lines)


def test_a_unix_socket(tmp_path: Path) -> None:
    path = tmp_path / "socket"
    stale = socket.socket(socket.AF_UNIX)
    stale.bind(str(path))
    stale.close()  # as a server that was killed leaves it
    with forked("serve", "--quiet", "--uds", path, stderr=subprocess.PIPE) as process:
        assert process.stderr
        line = next(line.decode() for line in process.stderr if line.startswith(b"Serving"))
        assert line.endswith(f" at unix:{path}\n")
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        with httpx.Client(transport=httpx.HTTPTransport(uds=str(path))) as client:
            answer = client.post("http://any.example/embed", json={"inputs": "tea"})
            assert (answer.status_code, len(answer.json()[0])) == (200, 256)
            taken = run("serve", "--uds", str(path), "--quiet").error
            assert "Cannot listen at" in taken
        process.terminate()
        assert process.wait() == 0
        assert not path.exists()


def test_an_address_that_is_taken() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        error = run("serve", "--port", str(port), "--quiet").error
    assert error.startswith(f"Error: Cannot listen at 127.0.0.1, port {port} (")
    assert "--port" in error


def test_a_port_that_there_is_not() -> None:
    wrong_usage("serve", "--port", "99999", why="99999 is no port: choose 1 to 65535")


@pytest.mark.parametrize(
    "arguments", [["-m", "no/such-model", "--offline"], ["-m", "bert-mini-sentence", "-m", "/nope"]]
)
def test_a_model_that_cannot_be_opened(arguments: list[str]) -> None:
    assert run("serve", *arguments).error.startswith("Error: ")


def test_the_extra_is_named_where_it_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bertcli.wings.serve.command.find_spec", lambda name: None)
    assert "pip install 'bertcli[serve]'" in run("serve").error
