"""The examples that info gives of the commands that can use a model, and files for those that read one."""

import json
import shlex
from pathlib import Path
from typing import Any

import pytest
from helpers.draws import FEW, draw
from helpers.terminal import bertcli as run

from bertcli import load
from bertcli.wings.serve.served_model import Served

LABELLED = {
    "candidates.jsonl": '{"query": "tea", "documents": ["the king", "a cup of tea"], "labels": [0, 1]}',
    "tags.conll": "the O\nking O",
    "squad.json": json.dumps({
        "data": [{"paragraphs": [{"context": "the king", "qas": [
            {"id": "1", "question": "who?", "answers": [{"text": "the king", "answer_start": 0}]}
        ]}]}]
    }),
    "masks.csv": "text,word\na MASK,king",
    "labels.csv": "text,text2,label\ntea,coffee,0",
    "probe": "text,label\n" + "a cup of tea,1\nthe king,0\n" * 5,
    "pairs.csv": "text,text2,score\ntea,coffee,0.9\ntea,the king,0.2",
}  # fmt: skip


def asked(*arguments: str | Path) -> dict[str, Any]:
    """The record of a model."""
    result = run("info", "--format", "json", *arguments)
    assert result.status == 0
    assert [line for line in result.err.splitlines() if " is an adapter (LoRA) of " not in line] == []
    record = result.json
    assert isinstance(record, dict)
    return record


def commands(record: dict[str, Any]) -> set[str]:
    return {use["command"].split(" sports")[0] for use in record["commands"]}


def try_each(record: dict[str, Any], folder: Path, beside: Path) -> None:
    """Run every example; those that need another model or a file of their own get one, in the folder `beside`."""
    file = beside / "vectors.parquet"
    if "encode" in commands(record):
        assert run("encode", "-m", folder, "tea", "coffee", "-o", file).status == 0
    for use in record["commands"]:
        words = shlex.split(use["example"])[1:]
        words = [str(folder) if word == "my-fine-tune" else word for word in words]
        words = [str(beside / word) if word in ("model.onnx", file.name) else word for word in words]
        if words[0] == "serve":
            Served(load(folder), "model").check()
            continue
        if words[0] in ("evaluate", "probe"):
            data = LABELLED["probe" if words[0] == "probe" else words[-1]]
            words[-1] = str(beside / words[-1])
            Path(words[-1]).write_text(data.replace("MASK", str(record["mask_token"])))
        with pytest.MonkeyPatch.context() as patch:
            if words[0] == "probe":
                # Five folds, and ten draws of its control task, would take a quarter of the time of all examples.
                words += ["--folds", "3"]
                draw(FEW, patch)
            result = run(*words)
        if use["command"] == "patch" and "so there is no difference" in result.err:
            continue  # random weights may say the same of both texts
        assert result.status == 0, (use["example"], result.err)
        assert result.out or use["command"] == "export"
