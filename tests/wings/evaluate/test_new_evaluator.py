"""A new evaluator is a file and a line: `bertcli evaluate` then knows its task by a table's fields."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from helpers.lines import write_lines
from helpers.package_copy import copy_package
from helpers.printed import program_of

from bertcli.wings.evaluate.command import evaluate
from bertcli.wings.evaluate.options import TASKS

EVALUATOR = '''
"""Evaluator of `length`: is a text as many tokens long as people say?"""

import numpy as np

from bertcli.tasks.registry import MASKED_SAMPLE
from bertcli.wings.evaluate.evaluators.evaluator import Evaluator, FigureSpec
from bertcli.files.labelled.fields import NOTHING, TEXT, FieldSpec, read_number
from bertcli.wings.evaluate.outcome import Outcome, means_of


def evaluate(model, data, options):
    lengths = np.array([len(record["tokens"]) for record in model.tokenize([row.text for row in data.rows])])
    gaps = np.abs(lengths - np.array([row.label for row in data.rows]))
    hits = {f"within@{k}": gaps <= k for k in options.ranks((1, 2))}
    return [
        Outcome(
            name=model.name,
            **means_of({"gap": gaps, **hits}),
            usable=np.ones(len(gaps), bool),
            badness=gaps,
            expected=[f"{row.label:g}" for row in data.rows],
            found=[str(length) for length in lengths],
        )
    ]


EVALUATORS = {
    "length": Evaluator(
        unit="texts",
        fields=(TEXT, NOTHING, FieldSpec(("length", "tokens"), read_number)),
        figures={
            "gap": FigureSpec("mean difference of the lengths", True),
            "within@K": FigureSpec("share of the texts whose lengths differ by K tokens at most"),
        },
        evaluate=evaluate,
        place=3,
        options=("k",),
        ranks=(1, 2),
        sample=MASKED_SAMPLE,
    ),
}
'''
ROWS = (("tea", 3), ("hot tea", 4), ("a cup of tea", 8))  # with [CLS] and [SEP], the last is 6


def test_a_new_evaluator_is_a_file_and_a_line(tmp_path: Path) -> None:
    copy_package(tmp_path)
    wing = tmp_path / "bertcli" / "wings" / "evaluate"
    (wing / "evaluators" / "length.py").write_text(EVALUATOR, encoding="utf-8")
    options = wing / "options.py"
    code = options.read_text(encoding="utf-8")
    options.write_text(code.replace("TASKS = {\n", 'TASKS = {\n    "length": "length",\n', 1), encoding="utf-8")
    data = tmp_path / "data.jsonl"
    rows = [json.dumps({"text": text, "length": length}) for text, length in ROWS]
    write_lines(data, rows)

    commands = [
        ["evaluate", "data.jsonl", "--at-least", "within@2=1", "--format", "jsonl"],
        ["evaluate", "data.jsonl", "--at-least", "gap=0.1", "-o", "page.html"],
        ["evaluate", "data.jsonl", "--idf"],
        ["evaluate", "--help"],
    ]
    environment = {**os.environ, "PYTHONPATH": str(tmp_path), "COLUMNS": "200"}
    command = [sys.executable, "-P", "-c", program_of(commands)]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (fine, figures), (bad, _), (wrong, _), (_, help) = json.loads(done.stdout)
    assert (fine, bad, wrong) == (0, 1, 1)
    assert "evaluating as length, because its fields are 'text', 'length' (--task" in done.stderr
    assert {row["metric"]: row["value"] for row in map(json.loads, figures.splitlines())} == {
        "gap": pytest.approx(2 / 3),
        "within@1": pytest.approx(2 / 3),
        "within@2": 1,
    }
    assert "mean difference of the lengths" in (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "gap of bert-mini-mlm is 0.6667, more than 0.1 (--at-least)." in done.stderr
    assert "--idf is for bertscore, and data.jsonl is for length: leave it out." in done.stderr
    assert "length, sts, pairs, triplets," in " ".join(help.split())


def test_the_help_says_what_a_row_of_each_task_is() -> None:
    for task in TASKS:
        assert re.search(rf"^ +(\w+, )?{task}\b", evaluate.__doc__ or "", re.MULTILINE), (
            f"{task}: a line in the docstring"
        )
