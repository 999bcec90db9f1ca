"""The examples in CONTRIBUTING run: a command that is no task, and a route of one's own."""

import json
import re
from importlib import import_module
from pathlib import Path

import pytest
import typer
from helpers.near import assert_near
from helpers.served import serving

import bertcli
from bertcli.cli.app import parts_of
from bertcli.cli.command import add_command
from bertcli.extensions import Command
from bertcli.wings.serve.routes import ROUTES, all_routes

PAGE = Path(__file__).parents[1] / ".github" / "CONTRIBUTING.md"
COMMAND, ROUTE = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


def test_the_command_on_the_page_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "hello_on_the_page.py").write_text(COMMAND, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    listed = Command("hello", "Guide", "Greet.", module="hello_on_the_page")
    app = typer.Typer()
    add_command(app, listed.name, parts_of(listed))
    app(["--name", "Ada", "--format", "jsonl"], standalone_mode=False)
    assert json.loads(capsys.readouterr().out) == {"hello": "Ada"}


def test_the_route_on_the_page_answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    declared = [*all_routes()]
    (tmp_path / "mean_on_the_page.py").write_text(ROUTE, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    import_module("mean_on_the_page")
    model = bertcli.load("bert-mini-sentence")
    texts = ["a cup of tea", "a red car"]
    try:
        with serving([model]) as running:
            answer = running.given("/mean", {"texts": texts})
    finally:
        ROUTES[:] = declared
    assert answer["model"] == "bert-mini-sentence"
    assert_near(answer["vector"], model.encode(texts).mean(axis=0), 2e-6)
