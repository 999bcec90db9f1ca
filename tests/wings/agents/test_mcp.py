"""`bertcli mcp` through the protocol's own client and a real process: what tools give, and what they refuse."""

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest

anyio = pytest.importorskip("anyio")
mcp = pytest.importorskip("mcp")
from helpers.known_taggers import guide_tagger  # noqa: E402
from helpers.roots import write_root  # noqa: E402
from helpers.terminal import bertcli  # noqa: E402
from mcp.client.stdio import stdio_client  # noqa: E402

import bertcli as bertcli_package  # noqa: E402
from bertcli.errors import BertcliError  # noqa: E402
from bertcli.wings import agents  # noqa: E402
from bertcli.wings.agents import roots  # noqa: E402
from bertcli.wings.agents.roots import Roots  # noqa: E402
from bertcli.wings.agents.tools import LIMITS, AvailableModels, tools  # noqa: E402
from bertcli.wings.search import calls  # noqa: E402
from bertcli.wings.search.files import Passages  # noqa: E402

TEXTS = "A dog ran home.\nThe puppy went back to its house.\nInterest rates rose.\n"


def talk(root: Path, *arguments: str, about: Callable[[Any], Awaitable[None]]) -> None:
    """Start the server, and let a client talk to it."""

    here = {"OPENBLAS_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "bertcli", "mcp", "--root", str(root), *arguments]
    anyio.run(in_session, command, about, here, str(root))


async def in_session(
    words: Sequence[str], about: Callable[[Any], Awaitable[None]], here: dict[str, str], folder: str | None = None
) -> None:
    """Start a server with these words, and let a client talk to it."""
    program, *arguments = words
    command = mcp.StdioServerParameters(command=program, args=arguments, env={**os.environ, **here}, cwd=folder)
    with open(os.devnull, "w", encoding="utf-8") as nowhere:
        async with (
            stdio_client(command, errlog=nowhere) as (answers, requests),
            mcp.ClientSession(answers, requests) as session,
        ):
            await session.initialize()
            await about(session)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return write_root(tmp_path)


def test_mcp_gives_the_records_of_the_commands(root: Path) -> None:
    async def about(session: Any) -> None:
        listed = {tool.name: tool for tool in (await session.list_tools()).tools}
        tools = ["search", "list_files", "classify", "keywords", "fill_mask", "redact", "similarity", "params"]
        assert [*listed] == tools
        properties = listed["classify"].input_schema["properties"]
        assert properties["top_k"]["type"] == "integer"
        assert all(tool.annotations.read_only_hint for tool in listed.values())
        assert properties["candidates"]["items"] == {"type": "string"}
        properties = listed["search"].input_schema["properties"]
        assert (properties["top_k"]["minimum"], properties["top_k"]["maximum"]) == (1, 100)
        assert properties["files"]["default"] == ["."]
        assert properties["files"]["description"].endswith("Names are relative to 'root'; . is all of it.")
        assert listed["search"].input_schema["required"] == ["query"]
        described = "Rank by keywords, too: BM25, joined by reciprocal rank fusion."  # as the command's help
        assert properties["hybrid"] == {"type": "boolean", "description": described}

        async def call(name: str, **arguments: Any) -> Any:
            answer = await session.call_tool(name, arguments)
            assert not answer.is_error, answer.content
            assert json.loads(answer.content[0].text) == answer.structured_content
            return answer.structured_content

        (hit,) = (await call("search", query="a walk with the dog", files=["**/*"], top_k=1))["records"]
        assert (hit["file"], hit["line"], hit["text"]) == ("notes.txt", 1, "A dog ran home.")
        (hit,) = (await call("search", query="a hot drink", files=["deep"], top_k=1))["records"]
        assert (hit["file"], hit["headings"]) == (os.path.join("deep", "more.md"), "Tea")
        listing = await call("list_files")
        named = [{"file": os.path.join("deep", "more.md"), "bytes": 33}, {"file": "notes.txt", "bytes": len(TEXTS)}]
        assert listing == {"records": named, "files": 2}
        (hit,) = (await call("search", query="tea in Japan", top_k=1))["records"]
        assert hit["text"] == "Green tea grows in Japan."
        (root / "many.txt").write_text("A river.\n" * 9, encoding="utf-8")
        assert len((await call("search", query="water", files=["many.txt"]))["records"]) == 5
        printed = bertcli("classify", "A warm film.", "--format", "json").json
        assert (await call("classify", texts=["A warm film."]))["records"] == printed
        printed = bertcli("keywords", "Green tea grows in Japan.", "--format", "json").json
        assert (await call("keywords", texts=["Green tea grows in Japan."]))["records"] == printed
        masks = (await call("fill_mask", texts=["She poured a cup of hot [MASK]."], top_k=1))["records"][0]["masks"]
        assert masks[0]["predictions"][0]["token_str"] == "tea"
        cosines = (await call("similarity", texts=["A dog ran home.", "Interest rates rose."]))["cosine"]
        assert cosines[0][1] == pytest.approx(0.0554, abs=1e-4)
        assert (await call("params", variant="tiny"))["total_params"] == 4_385_920

    talk(root, about=about)


def test_mcp_refuses_what_is_not_allowed_and_lives_on(root: Path) -> None:
    (root / "deep" / "bad.md").write_bytes(b"\xff\n")
    refused: list[tuple[str, dict[str, Any], str]] = [
        ("search", {"query": "a", "files": ["../secret.txt"]}, "is not below"),
        ("search", {"query": "a", "files": ["../*.txt"]}, "is not below"),
        ("search", {"query": "a", "files": ["/etc/passwd"]}, "is not below"),
        ("search", {"query": "a", "files": ["out.txt"]}, "is not below"),
        ("search", {"query": "a", "files": ["loop.txt"]}, "No file below"),
        ("search", {"query": "a", "files": ["z" * 5000]}, "No file below"),
        ("search", {"query": "a", "files": ["\0"]}, "No file below"),
        ("search", {"query": "a", "files": ["deep/bad.md"]}, "deep/bad.md, line 1: not UTF-8"),
        ("similarity", {"texts": ["a"] * 201}, "similarity: texts: maxItems is 200."),
        ("classify", {"texts": ["z" * 10_000_000]}, "10,000,000 characters, more than 1,000,000"),
        ("classify", {"texts": "one"}, "is not of type 'array'"),
        ("search", {"query": "a", "files": ["*"], "top_k": 1.0}, "search: top_k: 1.0 is not of type 'integer'."),
        ("classify", {}, "'texts' is a required property"),
        ("classify", {"texts": ["a"], "stop": 1}, "'stop' was unexpected"),
        ("redact", {"texts": ["Ann"]}, "No model for tag"),
        ("keywords", {"texts": [" ".join(map(str, range(120_000)))], "ngrams": [1, 10]}, "more than 1,048,576: send"),
        ("nothing", {}, "There is no tool"),
    ]

    async def about(session: Any) -> None:
        for name, arguments, words in refused:
            answer = await session.call_tool(name, arguments)
            assert answer.is_error, name
            assert words in answer.content[0].text
            assert str(root.parent) not in answer.content[0].text
            assert "swordfish" not in answer.content[0].text
        # A pattern passes over a link that leads out.
        answer = await session.call_tool("search", {"query": "the password", "files": ["*"]})
        assert "swordfish" not in answer.content[0].text
        with anyio.move_on_after(0.05):
            await session.call_tool("keywords", {"texts": ["Green tea grows in Japan. " * 200] * 50})
        answer = await session.call_tool("params", {"variant": "tiny"})
        assert not answer.is_error

    talk(root, about=about)


def searching(root: Path, index: Path | None = None) -> Callable[..., Any]:
    """The tool search over a folder, in this process."""
    models = AvailableModels([], bertcli_package.load)
    kept = None if index is None else str(index)
    (search,) = (tool for tool in tools(models, Roots([str(root)]), kept) if tool.name == "search")
    return lambda query, **more: search.call({"query": query, **more})["records"]


@pytest.fixture
def encoded(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The passages that search encodes, in this process; nothing is kept yet."""
    monkeypatch.setattr(calls, "KEPT", {})
    texts: list[str] = []
    encode = Passages._encode

    def noted(passages: Passages, new: Any, entries: Any) -> None:
        texts.extend(passage.text for _, of_file in new.values() for passage in of_file)
        encode(passages, new, entries)

    monkeypatch.setattr(Passages, "_encode", noted)
    return texts


def test_mcp_encodes_again_only_what_has_changed(root: Path, encoded: list[str]) -> None:
    search = searching(root)
    first = search("a hot drink")
    assert len(encoded) == 4
    assert search("a hot drink") == first
    assert [hit["text"] for hit in search("the rates of interest", top_k=1)] == ["Interest rates rose."]
    assert len(encoded) == 4
    notes = root / "notes.txt"
    notes.rename(root / "renamed.txt")
    assert {hit["file"] for hit in search("a hot drink")} == {os.path.join("deep", "more.md"), "renamed.txt"}
    assert len(encoded) == 4  # it goes by what a file holds, not by its name
    (root / "renamed.txt").write_text("Cocoa is sweet.\n")
    assert [hit["text"] for hit in search("sweet cocoa", top_k=1)] == ["Cocoa is sweet."]
    assert encoded[4:] == ["Cocoa is sweet."]
    (kept,) = calls.KEPT.values()
    assert len(kept._entries) == 2  # what the file held before is forgotten
    (root / "renamed.txt").unlink()
    (hit,) = search("chocolate")
    assert hit["text"] == "Green tea grows in Japan."


def test_mcp_keeps_as_many_vectors_as_fit(root: Path, encoded: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    of_a_passage = 256 * 4 + 3 * 4
    monkeypatch.setattr(calls, "MOST_KEPT", 3 * of_a_passage)
    search = searching(root)
    assert len(search("a hot drink")) == 4
    (kept,) = calls.KEPT.values()
    assert sum(entry.size for entry in kept._entries.values()) <= 3 * of_a_passage
    search("a walk", files=["notes.txt"])
    before = len(encoded)
    search("a walk", files=["notes.txt"])
    assert len(encoded) == before, "three passages fit, and what is searched now is kept first"
    assert len(search("a hot drink")) == 4


def test_mcp_keeps_vectors_in_a_file_for_the_next_start(
    root: Path, tmp_path: Path, encoded: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    index = tmp_path / "notes.index"
    first = searching(root, index)("a hot drink")
    assert index.exists()
    monkeypatch.setattr(calls, "KEPT", {})  # as in another process
    again = searching(root, index)
    assert again("a hot drink") == first
    assert len(encoded) == 4
    (root / "notes.txt").write_text("Cocoa is sweet.\n")
    assert [hit["text"] for hit in again("sweet cocoa", top_k=1)] == ["Cocoa is sweet."]
    assert len(encoded) == 5
    index.unlink()
    assert len(again("chocolate")) == 2  # a lost index is written again
    assert index.exists()


def test_mcp_takes_no_index_that_search_would_read(root: Path) -> None:
    result = bertcli("mcp", "--root", root, "--index", root / "index.txt")
    assert result.status == 2
    assert "choose a name that does not end in .txt" in " ".join(result.err.split())


def test_mcp_bounds_passages_and_their_lengths(root: Path, monkeypatch: pytest.MonkeyPatch, encoded: list[str]) -> None:
    search = searching(root)
    (root / "many.txt").write_text("a\n" * 300_000)
    with pytest.raises(BertcliError, match=r"These files have more than 262,144 passages: name fewer\."):
        search("a", files=["many.txt"])
    (root / "many.txt").write_text("a" * 1_000_001)
    with pytest.raises(BertcliError, match="line 1 has 1,000,001 characters, more than"):
        search("a", files=["many.txt"])
    assert encoded == []


class Pipes:
    """The server at the other end of two pipes, line by line, as a client that does not keep to the protocol."""

    def __init__(self, root: Path, *arguments: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "bertcli", "mcp", "--root", str(root), *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
            cwd=str(root),
        )
        information = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}
        self.ask(0, "initialize", information)
        self.write(b'{"jsonrpc": "2.0", "method": "notifications/initialized"}\n')

    def __enter__(self) -> "Pipes":
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            stream.close()  # type: ignore[union-attr]

    def write(self, line: bytes) -> None:
        assert self.process.stdin
        self.process.stdin.write(line)
        self.process.stdin.flush()

    def start(self, number: int, method: str, parameters: dict[str, Any]) -> None:
        message = {"jsonrpc": "2.0", "id": number, "method": method, "params": parameters}
        self.write(json.dumps(message).encode() + b"\n")

    def answer(self) -> Any:
        assert self.process.stdout
        return json.loads(self.process.stdout.readline())

    def ask(self, number: int, method: str, parameters: dict[str, Any]) -> Any:
        self.start(number, method, parameters)
        answer = self.answer()
        assert answer["id"] == number
        return answer

    def call(self, number: int, tool: str, **arguments: Any) -> Any:
        return self.ask(number, "tools/call", {"name": tool, "arguments": arguments})["result"]

    def leave(self) -> None:
        """Close standard input."""
        self.process.stdin.close()  # type: ignore[union-attr]

    def seconds_to_end(self) -> float:
        """How long the process goes on; it ends with status 0 and says nothing more."""
        begun = time.monotonic()
        assert self.process.wait(30) == 0
        assert self.process.stderr
        assert b"Error" not in self.process.stderr.read()
        return time.monotonic() - begun


MUCH = ["Green tea grows in Japan, and the hills are wet. " * 300] * 60  # takes a minute


def test_mcp_answers_what_is_no_message(root: Path) -> None:
    surrogate = b'{"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": "\\ud800"}}'
    wrong = {
        b"{nonsense": -32700,
        surrogate: -32700,
        b"\xff\xfe": -32700,
        b"z" * 17_000_000: -32700,
        b"[" * 100_000: -32700,
        b"[]": -32600,
        b"7": -32600,
        b'{"jsonrpc": "2.0", "id": 7}': -32600,
    }
    with Pipes(root) as pipes:
        for line, code in wrong.items():
            pipes.write(b"\n" + line + b"\n")
            answer = pipes.answer()
            assert (answer["id"], answer["error"]["code"]) == (None, code), line[:20]
            assert len(answer["error"]["message"]) < 100
        assert pipes.call(1, "params", variant="tiny")["structuredContent"]["total_params"] == 4_385_920
        pipes.leave()
        assert pipes.seconds_to_end() < 10


@pytest.mark.skipif(sys.platform != "linux", reason="names of files are UTF-8 there")
def test_mcp_names_files_whose_names_are_not_utf8(root: Path) -> None:
    (root / os.fsdecode(b"caf\xe9.txt")).write_text("A hot drink.\n")
    (root / os.fsdecode(b"b\xff.txt")).write_bytes(b"\xff\n")
    with Pipes(root) as pipes:
        refused = pipes.call(1, "search", query="a hot drink", files=["**/*"])
        assert refused["content"][0]["text"].startswith("b\\xff.txt, line 1: not UTF-8")
        (root / os.fsdecode(b"b\xff.txt")).unlink()
        (hit,) = pipes.call(2, "search", query="a hot drink", files=["**/*"], top_k=1)["structuredContent"]["records"]
        assert hit["file"] == "caf\\xe9.txt"


def test_mcp_stops_what_is_cancelled_and_computes_one_at_a_time(root: Path) -> None:
    with Pipes(root) as pipes:
        pipes.call(1, "keywords", texts=["tea"])
        for number in range(2, 12):
            pipes.start(number, "tools/call", {"name": "keywords", "arguments": {"texts": MUCH}})
            time.sleep(0.05)
            gone = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": number}}
            pipes.write(json.dumps(gone).encode() + b"\n")
        begun = time.monotonic()
        assert not pipes.call(12, "params", variant="tiny")["isError"]
        assert time.monotonic() - begun < 20  # ten minutes, if they went on one after the other
        pipes.start(13, "tools/call", {"name": "keywords", "arguments": {"texts": MUCH}})
        time.sleep(0.3)
        pipes.leave()
        assert pipes.seconds_to_end() < 20


def test_mcp_ends_quietly_when_nobody_reads_its_answers(root: Path) -> None:
    with Pipes(root) as pipes:
        pipes.process.stdout.close()  # type: ignore[union-attr]
        pipes.start(1, "tools/list", {})
        assert pipes.seconds_to_end() < 10  # though standard input stays open


PAGE = (Path(agents.__file__).parent / "guide" / "agents.md").read_text(encoding="utf-8")


def test_mcp_is_started_as_the_page_tells_each_editor(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    configurations = [
        json.loads(block) for block in re.findall(r"^```json\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    ]
    assert [[*configuration] for configuration in configurations] == [["servers"], ["mcpServers"], ["context_servers"]]
    servers = [configuration["bertcli"] for one in configurations for configuration in one.values()]
    lines = [[server["command"], *server["args"]] for server in servers]
    lines += [line.split() for line in re.findall(r"`claude mcp add bertcli -- (.*)`", PAGE)]
    assert len(lines) == 4
    tagger = str(guide_tagger(root.parent / "tagger"))
    here = {word: str(root) for word in ("${workspaceFolder}", "/home/me/notes", "~/notes")}
    here["dslim/bert-base-NER"] = tagger
    # Several editors say the same: each command line is started once.
    typed = {tuple(here.get(word, word) for word in line) for line in lines}
    alone = ("bertcli", "mcp", "--root", str(root))
    assert typed == {alone, (*alone, "-m", tagger)}

    async def asked(line: Sequence[str], session: Any) -> None:
        listed = await session.call_tool("list_files", {})
        files = [record["file"] for record in listed.structured_content["records"]]
        answer = await session.call_tool("search", {"query": "tea in Japan", "top_k": 1})
        assert answer.structured_content["records"][0]["text"] == "Green tea grows in Japan."
        assert answer.structured_content["records"][0]["file"] in files
        hidden = await session.call_tool("redact", {"texts": ["Anna Lee called"]})
        if tagger in line:
            assert hidden.structured_content["records"][0]["redacted"] == "[PER] called"
        else:
            assert hidden.is_error

    for line in typed:
        anyio.run(in_session, line, partial(asked, line), {})


def test_the_page_names_every_tool_with_its_arguments(root: Path) -> None:
    rows = re.findall(r"^\| `(\w+)` \| .*? \| (.*) \|$", PAGE, re.MULTILINE)
    named = {tool: re.findall(r"`(\w+)`", re.sub(r"\([^()]*\)", "", arguments)) for tool, arguments in rows}
    made = {
        tool.name: [*tool.arguments] for tool in tools(AvailableModels([], bertcli_package.load), Roots([str(root)]))
    }
    assert {name: {*arguments} for name, arguments in named.items()} == {
        name: {*arguments} for name, arguments in made.items()
    }
    assert [*named] == [*made]
    bounds = (LIMITS.characters, LIMITS.texts, LIMITS.tokens, LIMITS.predictions, roots.MOST_FILES)
    assert all(f"{bound:,}" in PAGE for bound in bounds)
    assert (LIMITS.files, calls.MOST_KEPT) == (64_000_000, 256 << 20)


def test_mcp_says_what_is_missing(tmp_path: Path) -> None:
    result = bertcli("mcp", "--root", tmp_path / "none")
    assert result.status == 1
    assert "There is no folder" in result.err


def test_mcp_tells_a_person_who_starts_it_what_it_waits_for(root: Path) -> None:
    keyboard, terminal = os.openpty()
    os.write(keyboard, b"\x04")  # Ctrl-D: no more requests
    command = [sys.executable, "-m", "bertcli", "mcp"]
    done = subprocess.run(command, stdin=terminal, capture_output=True, text=True, cwd=root, timeout=60)
    os.close(keyboard)
    os.close(terminal)
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr == (
        "Note: waiting for the requests of an assistant, which starts this command: bertcli guide agents.\n"
    )
