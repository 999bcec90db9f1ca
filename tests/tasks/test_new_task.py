"""A new task is two files: it is then a command, a method, an entry of `bertcli info` and a route of the server."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from helpers.package_copy import copy_package

SPEC = '''
"""spell: the pieces of a text."""

from collections.abc import Iterator

from dataclasses import dataclass

from bertcli.report.tables import Record, Row, Table
from bertcli.report.terminal import Column
from bertcli.tasks.examples import CAT, Example, Subject
from bertcli.tasks.options import ReadOptions, option
from bertcli.tasks.registry import MASKED_SAMPLE, SINGLE_TEXTS, Fields, Needs, TaskSpec


@dataclass(frozen=True, eq=False, repr=False)
class SpellOptions(ReadOptions):
    """Say the pieces of a text."""

    most: int | None = option(None, "N", "At most N pieces.", least=1)


def record(options: SpellOptions) -> Fields:
    """Records {index, text, truncated, pieces}."""
    return {"index": int, "text": str, "truncated": bool, "pieces": [str]}


def rows(record: Record) -> Iterator[Row]:
    yield record["index"], " ".join(record["pieces"])


def examples(subject: Subject) -> Iterator[Example]:
    yield Example("spell", [CAT])


SPEC = TaskSpec(
    SpellOptions,
    reads=SINGLE_TEXTS,
    needs=lambda options: Needs("spell", sample=MASKED_SAMPLE),
    record=record,
    table=lambda options: Table((Column("index", int), Column("pieces")), rows),
    examples=examples,
    position=8,
)
'''
WORK = '''
"""spell: its work."""

from dataclasses import dataclass

from bertcli.tasks.running.task import RecordTask


@dataclass(frozen=True, eq=False, repr=False)
class SpellTask(RecordTask):
    most: int | None = None

    def records(self, items):
        for item in items:
            yield {
                "index": item.index,
                "text": item.text.text,
                "truncated": bool(item.tokens.truncated),
                "pieces": list(item.tokens.pieces)[: self.most],
            }


def plan(model, options):
    return SpellTask(model, options.read_options, options.most)
'''


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the package with a task more; the bundled models are those of the checkout."""
    root = copy_package(tmp_path_factory.mktemp("package"))
    (root / "bertcli/tasks/spell.py").write_text(SPEC, encoding="utf-8")
    (root / "bertcli/tasks/compute/spell.py").write_text(WORK, encoding="utf-8")
    return root


def run(package: Path, *arguments: str) -> str:
    """What Python prints where this copy is the package."""
    environment = {**os.environ, "PYTHONPATH": str(package)}
    command = [sys.executable, "-P", *arguments]
    done = subprocess.run(command, cwd=package, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


SPELL_AND_LIST = """
from bertcli.cli.app import application
spell = ["spell", "Hot tea.", "--most", "3"]
for words in ([*spell, "--format", "jsonl"], spell, ["--help"], ["info", "bert-mini-mlm", "--format", "json"]):
    try:
        application(words[0])(words, prog_name="bertcli")
    except SystemExit as end:
        assert not end.code, (words, end.code)
    print("END")
"""


def test_a_new_task_is_a_command_and_an_entry_of_info(package: Path) -> None:
    records, table, help, info, _ = run(package, "-c", SPELL_AND_LIST).split("END\n")
    expected = {"index": 0, "text": "Hot tea.", "truncated": False, "pieces": ["[CLS]", "hot", "tea"]}
    assert json.loads(records) == expected
    assert "[CLS] hot tea" in table
    assert "\n  spell       Say the pieces of a text.\n" in help
    found = json.loads(info)
    example = 'bertcli spell -m bert-mini-mlm "The cat sat on the mat."'
    assert {"command": "spell", "example": example} in found["commands"]


def test_a_new_task_is_a_method(package: Path) -> None:
    code = (
        "import bertcli, inspect; method = bertcli.load().spell; "
        "print(method(['Hot tea.'], most=2)[0]['pieces'], list(inspect.signature(method).parameters)[:2]); "
        "print(method.__doc__)"
    )
    shown = ["['[CLS]', 'hot'] ['texts', 'most']", "Records {index, text, truncated, pieces}."]
    assert run(package, "-c", code).splitlines()[:2] == shown


def test_a_new_task_is_a_route(package: Path) -> None:
    pytest.importorskip("starlette")
    code = f"""
import sys
sys.path.append({str(Path(__file__).parents[1])!r})
import bertcli
from helpers.served import serving
with serving([bertcli.load("bert-mini-mlm")]) as running:
    print(running.given("/spell", {{"inputs": ["Hot tea."], "parameters": {{"most": 2}}}})[0]["pieces"])
    print("/spell" in running.given("/openapi.json")["paths"])
"""
    assert run(package, "-c", code).splitlines() == ["['[CLS]', 'hot']", "True"]
