"""The server beside `encode`, and beside that of another checkout, in one run."""

import json
import os
import random
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from importlib.util import find_spec
from pathlib import Path
from socket import create_server
from time import perf_counter, sleep
from typing import Any

from helpers.vocabulary import WORDS

import bertcli

# A server's command without its port.
Command = list[str]
Record = dict[str, Any]
CLIENTS = (1, 8, 32)
OURS = "import sys; from bertcli.cli import main; sys.exit(main())"
LENGTHS = {"short": (2, 4, 8, 12), "mixed": (4, 8, 16, 32, 64, 120)}  # words of a text


def served(model: Path, count: int, beside: Path | None = None) -> Iterator[Record]:
    """Requests a second, how long 95 % of them take at most, and the processor's time for each, for each engine.

    With 1, 8 and 32 clients. beside: another checkout, such as the last release, whose server is a peer; its engine is
    its default.
    """
    for kind, lengths in LENGTHS.items():
        drawn, words = random.Random(0), WORDS.split()  # each a token
        texts = [" ".join(drawn.choices(words, k=drawn.choice(lengths))) for _ in range(count)]
        loaded = bertcli.load(model)
        loaded.encode(texts[:32])
        begun = perf_counter()
        loaded.encode(texts)
        yield {"what": f"encode, {kind} texts", "texts/s": round(count / (perf_counter() - begun))}
        for name, command in servers(model, beside).items():
            with running(command) as (port, process):
                for clients in CLIENTS:
                    asked(port, texts[: 8 * clients], clients)  # warm
                    before = cpu_seconds(process)
                    rate, slow = asked(port, texts, clients)
                    cpu = 1000 * (cpu_seconds(process) - before) / count
                    times = {"p95 ms": round(1000 * slow, 1), "CPU ms": round(cpu, 2)}
                    record = {"clients": clients, "requests/s": round(rate), **times}
                    yield {"what": f"{name}, {kind} texts", **record}


def servers(model: Path, beside: Path | None) -> dict[str, Command]:
    """The command of each server, by its name."""
    ours = ["serve", "-m", str(model), "--quiet"]
    engines = ("numpy", "onnx") if find_spec("onnxruntime") else ("numpy",)
    found = {
        f"serve --engine {name}": [sys.executable, "-c", OURS, *ours, "--engine", name, "--port"] for name in engines
    }
    if beside:
        there = f"import sys; sys.path.insert(0, {str(beside)!r}); {OURS}"
        found[f"serve, {beside.name}"] = [sys.executable, "-c", there, *ours, "--port"]
    return found


@contextmanager
def running(command: Command) -> Iterator[tuple[int, int]]:
    """A server, started with a free port as its last argument; gives the port once it answers, and its process."""
    with create_server(("127.0.0.1", 0)) as free:
        port: int = free.getsockname()[1]
    process = subprocess.Popen([*command, str(port)], stderr=subprocess.DEVNULL)
    try:
        while not answers(port):
            assert process.poll() is None, f"{command} has ended"
            sleep(0.1)
        yield port, process.pid
    finally:
        process.terminate()
        process.wait()


def answers(port: int) -> bool:
    try:
        connection = HTTPConnection("127.0.0.1", port)
        connection.request("GET", "/ready")
        return connection.getresponse().status == 200
    except OSError:
        return False


def cpu_seconds(process: int) -> float:
    """The seconds that a process has computed; not a number where no /proc tells it."""
    stat = Path(f"/proc/{process}/stat")
    if not stat.exists():
        return float("nan")
    user, system = stat.read_text().rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


def asked(port: int, texts: list[str], clients: int) -> tuple[float, float]:
    """Requests a second, and the 95th percentile of their seconds."""
    waiting, lock, seconds = iter(texts), threading.Lock(), list[float]()

    def client() -> None:
        connection = HTTPConnection("127.0.0.1", port)
        while True:
            with lock:
                text = next(waiting, None)
            if text is None:
                break
            begun = perf_counter()
            body = json.dumps({"input": text, "encoding_format": "float"})
            connection.request("POST", "/v1/embeddings", body, {"Content-Type": "application/json"})
            answer = connection.getresponse()
            answer.read()
            assert answer.status == 200
            seconds.append(perf_counter() - begun)
        connection.close()

    threads = [threading.Thread(target=client) for _ in range(clients)]
    begun = perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return len(texts) / (perf_counter() - begun), sorted(seconds)[int(0.95 * len(seconds))]
