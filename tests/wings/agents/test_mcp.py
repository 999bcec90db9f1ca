"""`bertcli mcp` through the protocol's own client and a real process: what tools give, and what they refuse."""

import json
import os
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

anyio = pytest.importorskip("anyio")
mcp = pytest.importorskip("mcp")
from helpers.terminal import bertcli  # noqa: E402
from mcp.client.stdio import stdio_client  # noqa: E402

from bertcli.errors import BertcliError  # noqa: E402
from bertcli.wings.agents import roots  # noqa: E402
from bertcli.wings.agents.roots import Roots  # noqa: E402

TEXTS = "A dog ran home.\nThe puppy went back to its house.\nInterest rates rose.\n"


def talk(root: Path, *arguments: str, about: Callable[[Any], Awaitable[None]]) -> None:
    """Start the server, and let a client talk to it."""

    async def run() -> None:
        command = mcp.StdioServerParameters(
            command=sys.executable,
            args=["-m", "bertcli", "mcp", "--root", str(root), *arguments],
            env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
            cwd=str(root),
        )
        with open(os.devnull, "w", encoding="utf-8") as nowhere:
            async with (
                stdio_client(command, errlog=nowhere) as (answers, requests),
                mcp.ClientSession(answers, requests) as session,
            ):
                await session.initialize()
                await about(session)

    anyio.run(run)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A folder of texts, with a link out of it, and a cycle of links."""
    folder = tmp_path / "root"
    (folder / "deep").mkdir(parents=True)
    (folder / "notes.txt").write_text(TEXTS, encoding="utf-8")
    (folder / "deep" / "more.md").write_text("# Tea\n\nGreen tea grows in Japan.\n", encoding="utf-8")
    (tmp_path / "secret.txt").write_text("The password is swordfish.\n", encoding="utf-8")
    (folder / "out.txt").symlink_to(tmp_path / "secret.txt")
    (folder / "deep" / "again").symlink_to(folder)
    (folder / "loop.txt").symlink_to(folder / "loop.txt")
    return folder


def test_mcp_gives_the_records_of_the_commands(root: Path) -> None:
    async def about(session: Any) -> None:
        listed = {tool.name: tool for tool in (await session.list_tools()).tools}
        assert set(listed) == {"search", "classify", "keywords", "fill_mask", "redact", "similarity", "params"}
        properties = listed["classify"].input_schema["properties"]
        assert properties["top_k"]["type"] == "integer"
        assert all(tool.annotations.read_only_hint for tool in listed.values())
        assert properties["candidates"]["items"] == {"type": "string"}
        properties = listed["search"].input_schema["properties"]
        assert (properties["top_k"]["minimum"], properties["top_k"]["maximum"]) == (1, 100)
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
        (root / "many.txt").write_text("A river.\n" * 9, encoding="utf-8")
        assert len((await call("search", query="water", files=["many.txt"]))["records"]) == 5
        printed = json.loads(bertcli("classify", "A warm film.", "--format", "json").out)
        assert (await call("classify", texts=["A warm film."]))["records"] == printed
        printed = json.loads(bertcli("keywords", "Green tea grows in Japan.", "--format", "json").out)
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
        ("search", {"query": "a", "files": ["/etc/none"]}, "is not below"),  # nor does it say that it is not there
        ("search", {"query": "a", "files": ["out.txt"]}, "is not below"),
        ("search", {"query": "a", "files": ["loop.txt"]}, "No file below"),
        ("search", {"query": "a", "files": ["none/*.txt"]}, "No file below"),
        ("search", {"query": "a", "files": ["z" * 5000]}, "No file below"),
        ("search", {"query": "a", "files": ["\0"]}, "No file below"),
        ("search", {"query": "a", "files": ["deep/bad.md"]}, "deep/bad.md, line 1: not UTF-8"),
        ("similarity", {"texts": ["a"] * 201}, "similarity: texts: maxItems is 200."),
        ("classify", {"texts": ["z" * 10_000_000]}, "10,000,000 characters, more than 1,000,000"),
        ("classify", {"texts": "one"}, "is not of type 'array'"),
        ("classify", {"texts": []}, "texts"),
        ("search", {"query": "a", "files": ["*"], "top_k": 1.0}, "search: top_k: 1.0 is not of type 'integer'."),
        ("classify", {}, "'texts' is a required property"),
        ("classify", {"texts": ["a"], "stop": 1}, "'stop' was unexpected"),
        ("fill_mask", {"texts": ["no mask"]}, "mask"),
        ("redact", {"texts": ["Ann"]}, "No model for tag"),
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


def test_mcp_names_of_files_may_look_like_patterns(root: Path) -> None:
    (root / "a[1].txt").write_text("A cat.\n")
    (root / "b[1]").mkdir()
    (root / "b[1]" / "c.txt").write_text("A dog.\n")
    known = Roots([str(root)])
    for name, file in (("a[1].txt", "a[1].txt"), ("b[1]", "b[1]/c.txt"), ("n[o]tes.txt", "notes.txt")):
        assert [known.shown(found) for found in known.files([name])] == [str(Path(file))]


def test_mcp_bounds_the_files_of_a_search(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    known = Roots([str(root)])
    (root / "prices.csv").write_text("price\n2\n")
    assert [known.shown(file) for file in known.files(["**/*"])] == [os.path.join("deep", "more.md"), "notes.txt"]
    monkeypatch.setattr(roots, "MOST_FILES", 1)
    with pytest.raises(BertcliError, match="names more than 1 files"):
        known.files(["**/*"])
    monkeypatch.setattr(roots, "MOST_FILES", 3)
    monkeypatch.setattr(roots, "MOST_BYTES", 50)
    with pytest.raises(BertcliError, match="more than 50: name fewer"):
        known.files(["**/*"])


def test_mcp_reads_a_folder_of_the_second_root(root: Path, tmp_path: Path) -> None:
    (tmp_path / "other" / "deep").mkdir(parents=True)
    (tmp_path / "other" / "deep" / "b.txt").write_text("Tea.\n")
    both = Roots([str(root), str(tmp_path / "other")])
    named = both.files([str(tmp_path / "other")])
    assert named == [str(tmp_path / "other" / "deep" / "b.txt")]
    assert both.shown(named[0]) == os.path.join("deep", "b.txt")


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
