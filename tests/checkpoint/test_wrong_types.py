"""Values of the wrong type, wherever in the files of a folder: one line, never an unexpected error."""

import json
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from helpers.checkpoint_files import Dense, Sentence
from helpers.checkpoints import make
from helpers.family_checkpoints import FAMILIES, make_family
from helpers.json_files import write_json
from helpers.late_folders import write_late
from helpers.modular import write_router
from helpers.rerankers import KINDS, write_reranker
from helpers.terminal import bertcli

WRONG: tuple[Any, ...] = (None, True, 0, -1, 1e-12, "rr", [], [1], {}, {"x": 1})
COUNT = 60  # changes of each folder, of some thousand

WRITE: dict[str, Callable[[Path], object]] = {
    "sentence": lambda folder: make(folder, tokenizer="json", sentence=Sentence(("mean",), dense=(Dense(7),))),
    "words": lambda folder: make(folder, head="mlm"),
    "late": lambda folder: write_late(folder, "modules fixed"),
    "stanford": lambda folder: write_late(folder, "stanford"),
    "reranker": lambda folder: write_reranker(folder, **KINDS["published"]),
    "router": write_router,
}
COMMANDS = {
    "reranker": ("rank", "tea", "hot tea"),
    "router": ("encode", "--sparse", "tea"),
    "words": ("fill-mask", "tea [MASK]"),
}


def places(value: Any, at: tuple[Any, ...] = (), depth: int = 3) -> Iterator[tuple[Any, ...]]:
    """Where a value and those in it stand."""
    yield at
    if depth and isinstance(value, dict | list):
        for key in value if isinstance(value, dict) else range(min(2, len(value))):
            yield from places(value[key], (*at, key), depth - 1)


def changed(value: Any, at: tuple[Any, ...], wrong: Any) -> Any:
    """The same with another value at a place."""
    if not at:
        return wrong
    copied = value.copy()
    copied[at[0]] = changed(value[at[0]], at[1:], wrong)
    return copied


@pytest.mark.parametrize("kind", WRITE)
def test_a_value_of_the_wrong_type_is_one_line(kind: str, tmp_path: Path) -> None:
    folder = tmp_path / "model"
    WRITE[kind](folder)
    written = {
        file: json.loads(file.read_bytes())
        for file in sorted(folder.rglob("*"))
        if file.suffix in (".json", ".metadata") and file.name not in ("tokenizer.json", "vocab.json")
    }
    every = [(file, at, wrong) for file, value in written.items() for at in places(value) for wrong in WRONG]
    for file, at, wrong in random.Random(kind).sample(every, COUNT):
        write_json(file, changed(written[file], at, wrong))
        result = bertcli(*COMMANDS.get(kind, ("encode", "tea")), "-m", folder)
        if result.status:
            assert "Unexpected error" not in result.error, (file.name, at, wrong)
        write_json(file, written[file])


@pytest.mark.parametrize("family", FAMILIES)
def test_info_formats_no_value_that_nobody_has_checked(family: str, tmp_path: Path) -> None:
    """The sizes in a config.json are reported also where the model cannot be opened."""
    folder = make_family(tmp_path / "model", family)
    file = folder / "config.json"
    written = json.loads(file.read_bytes())
    wrong = ("rr", [441, 441], {"x": 1}, 1e-12, 10**30, None)
    keys = [key for key in ("vocab_size", "hidden_size", "d_model", "n_positions", "max_position_embeddings",
                            "architectures", "model_type") if key in (*written, "architectures")]  # fmt: skip
    for key, value in [(key, value) for key in keys for value in wrong]:
        write_json(file, {**written, key: value})
        result = bertcli("info", folder)  # the table formats what the record holds
        assert "Unexpected error" not in result.err, (key, value, result.err)
        assert result.out
    file.write_text("[1]")
    (folder / "modules.json").write_text("7")
    assert "Unexpected error" not in bertcli("info", folder).err
