"""A small Hub on 127.0.0.1: folders served as repositories, with faults to switch on.

It speaks what the hub client asks for: model info (with file sizes), the file tree, and `resolve` by HEAD and GET with
ETag, commit and byte ranges; large files (.safetensors, .bin) are redirected, as the Hub does, to another host, which
is the same server under the name localhost. Errors carry the Hub's X-Error-Code.
"""

import json
import re
import threading
import time
from dataclasses import dataclass, field
from hashlib import sha1, sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

LARGE = (".safetensors", ".bin")


@dataclass
class Faults:
    """What goes wrong; all may be changed while the server runs."""

    private: set[str] = field(default_factory=set)  # repositories that want a token
    gated: set[str] = field(default_factory=set)  # repositories whose terms nobody accepted
    status: int | None = None  # answer everything with this status
    cut: dict[str, int] = field(default_factory=dict)  # file -> the connection breaks after so many of its bytes
    delay: float = 0.0  # seconds before every answer
    described: dict[str, Any] = field(default_factory=dict)  # in place of what model info says
    headers: dict[str, str] = field(default_factory=dict)  # in place of those of files, and beside them
    digest: str | None = None  # announced for large files, in model info
    other: dict[str, bytes] = field(default_factory=dict)  # file -> the bytes that come in place of its own


@dataclass(frozen=True)
class Request:
    """One request: `host` is 127.0.0.1 for the Hub and localhost for its storage of large files."""

    method: str
    host: str
    path: str
    token: str | None


class Hub:
    """Serves `repos` (id -> folder; other revisions as id@revision) between `with Hub(…) as hub` and its end."""

    def __init__(self, repos: dict[str, Path]) -> None:
        self.repos = {name: load_files(folder) for name, folder in repos.items()}
        self.faults = Faults()
        self.requests: list[Request] = []
        self.server: ThreadingHTTPServer | None = None

    def __enter__(self) -> "Hub":
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"hub": self}))
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        self.storage = f"http://localhost:{self.server.server_port}"
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        if self.server is not None:
            self.server.shutdown()
            self.server.server_close()
            self.server = None

    def fetched(self) -> set[str]:
        """The names of the files that were asked for with GET."""
        paths = [request.path for request in self.requests if request.method == "GET"]
        return {match[1] for path in paths if (match := re.search(r"/(?:resolve|large)/[^/]+/(.+)", path))}


def commit_of(files: dict[str, bytes]) -> str:
    """40 hexadecimal digits that change with the files."""
    digest = sha1()
    for name in sorted(files):
        digest.update(name.encode() + b"\0" + files[name] + b"\0")
    return digest.hexdigest()


def name_in_git(data: bytes) -> str:
    """The ETag of a file that lies in Git; of one that lies beside it, it is the SHA-256."""
    return sha1(b"blob %d\0" % len(data) + data).hexdigest()


def load_files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


class _Handler(BaseHTTPRequestHandler):
    hub: Hub
    protocol_version = "HTTP/1.1"
    # Otherwise the body waits for the other side to say that the headers came, which it does after 40 ms.
    disable_nagle_algorithm = True

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing: the tests read `hub.requests`."""

    def do_HEAD(self) -> None:
        self._answer()

    def do_GET(self) -> None:
        self._answer()

    def _answer(self) -> None:
        faults, url = self.hub.faults, urlsplit(self.path)
        path = unquote(url.path)
        self.hub.requests.append(
            Request(self.command, self.headers["Host"].split(":")[0], path, self.headers.get("Authorization"))
        )
        time.sleep(faults.delay)
        if faults.status is not None:
            self._send(faults.status, b"out of order")
        elif match := re.fullmatch(r"/api/models/(.+?)(?:/revision/(.+)|/tree/(.+))?", path):
            self._describe(match, "blobs" in parse_qs(url.query))
        elif match := re.fullmatch(r"/(.+?)/resolve/([^/]+)/(.+)", path):
            self._resolve(*match.groups())
        elif match := re.fullmatch(r"/large/([0-9a-f]{40})/(.+)", path):
            files = next(files for files in self.hub.repos.values() if commit_of(files) == match[1])
            self._send_file(match[2], files[match[2]], {})
        else:
            self._send(404, b"no such page")

    def _files(self, repo: str, revision: str) -> dict[str, bytes] | None:
        """The files of a repository at a branch, tag or commit; None when an error was sent instead."""
        repos = self.hub.repos
        versions = [files for name, files in repos.items() if name.split("@")[0] == repo]
        if not versions or (repo in self.hub.faults.private and not self.headers.get("Authorization")):
            self._error(401 if repo in self.hub.faults.private else 404, "RepoNotFound")
        elif repo in self.hub.faults.gated:
            self._error(403, "GatedRepo")
        else:
            named = repos.get(repo if revision == "main" else f"{repo}@{revision}")
            found = named or next((files for files in versions if commit_of(files) == revision), None)
            if found is None:
                self._error(404, "RevisionNotFound")
            return found
        return None

    def _describe(self, match: re.Match[str], sizes: bool) -> None:
        faults = self.hub.faults
        repo, revision, tree = match.groups()
        files = self._files(repo, revision or (tree or "main").split("/")[0])
        if files is None:
            return
        listed: dict[str, dict[str, int | str]] = {name: {"size": len(data)} for name, data in files.items()}
        beside = {name: sha256(files[name]).hexdigest() for name in files if name.endswith(LARGE)}
        answer: Any = [
            {"type": "file", "path": name} | told | ({"lfs": {"oid": beside[name]}} if name in beside else {})
            for name, told in listed.items()
        ]
        if not tree:
            pointer: dict[str, int | str] = {"pointerSize": 134}
            siblings = [
                {"rfilename": name}
                | (told if sizes else {})
                | (
                    {"lfs": told | {"sha256": faults.digest or beside[name]} | pointer}
                    if name in beside and sizes
                    else {}
                )
                for name, told in listed.items()
            ]
            answer = {
                "id": repo,
                "modelId": repo,
                "sha": commit_of(files),
                "private": False,
                "tags": [],
                "downloads": 0,
                "siblings": siblings,
            } | faults.described
        self._send(200, json.dumps(answer).encode(), {"Content-Type": "application/json"})

    def _resolve(self, repo: str, revision: str, name: str) -> None:
        files, told = self._files(repo, revision), self.hub.faults.headers
        if files is None:
            return
        commit = commit_of(files)
        if name not in files:
            self._error(404, "EntryNotFound", {"X-Repo-Commit": commit} | told)
            return
        data = files[name]
        headers = {
            "X-Repo-Commit": commit,
            "ETag": f'"{name_in_git(data)}"',
        }
        if name.endswith(LARGE):
            headers |= {
                "X-Linked-Size": str(len(data)),
                "X-Linked-Etag": f'"{sha256(data).hexdigest()}"',
            }
            self._send(302, b"", headers | {"Location": f"{self.hub.storage}/large/{commit}/{name}"} | told)
        else:
            self._send_file(name, data, headers | told)

    def _send_file(self, name: str, data: bytes, headers: dict[str, str]) -> None:
        faults, status, start = self.hub.faults, 200, 0
        if self.command == "GET":
            data = faults.other.get(name, data)
            if asked := re.fullmatch(r"bytes=(\d+)-", self.headers.get("Range") or ""):
                status, start = 206, int(asked[1])
                headers = headers | {"Content-Range": f"bytes {start}-{len(data) - 1}/{len(data)}"}
        stop = faults.cut.get(name) if self.command == "GET" else None
        self._send(status, data[start:], headers, stop=None if stop is None else max(stop - start, 0))

    def _error(self, status: int, code: str, headers: dict[str, str] | None = None) -> None:
        self._send(status, json.dumps({"error": code}).encode(), {"X-Error-Code": code} | (headers or {}))

    def _send(self, status: int, body: bytes, headers: dict[str, str] | None = None, stop: int | None = None) -> None:
        """The answer; with `stop`, only so many bytes of it before the connection is closed."""
        self.send_response(status)
        for key, value in ({"Content-Length": str(len(body))} | (headers or {})).items():
            self.send_header(key, value)
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(body if stop is None else body[:stop])
        if stop is not None:
            self.close_connection = True
