"""The files that a model is opened from are all listed: digests cover them, so that --resume sees what has changed."""

import ast
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.adapters import write_lora, write_numbers
from helpers.bge_m3 import write_bge_m3
from helpers.checkpoints import Dense, Sentence, make
from helpers.crashes import break_off
from helpers.gliner import write_gliner
from helpers.gliner2 import write_gliner2
from helpers.json_files import change_json, write_json
from helpers.late_folders import write_late
from helpers.modular import write_cross_encoder, write_router
from helpers.rerankers import PUBLISHED, write_reranker
from helpers.static_models import write_static
from helpers.terminal import bertcli as run
from safetensors.numpy import load_file, save_file

import bertcli
from bertcli.errors import BertcliError
from bertcli.folder.cache import missing
from bertcli.folder.files import Folder
from bertcli.folder.model_files import SMALL_FILES, VOCABULARY
from bertcli.weights.digest import fingerprint

opened: list[Path] | None = None


def note(event: str, arguments: tuple[Any, ...]) -> None:
    """Note the files that Python opens; hooks cannot be removed."""
    if event == "open" and opened is not None and isinstance(arguments[0], str | Path):
        opened.append(Path(arguments[0]))


sys.addaudithook(note)


@contextmanager
def noting() -> Iterator[list[Path]]:
    global opened
    found: list[Path] = []
    opened = found
    try:
        yield found
    finally:
        opened = None


def adapter(root: Path) -> Path:
    _, folder = write_lora(root, "bert vectors")
    return folder


def adapter_with_modules(root: Path) -> Path:
    base, folder = write_lora(root, "bert vectors")
    write_numbers_of(base, folder)
    modules = [("", "Transformer"), ("1_Pooling", "Pooling")]
    listed = [{"path": path, "type": f"sentence_transformers.models.{kind}"} for path, kind in modules]
    write_json(folder / "modules.json", listed)
    (folder / "1_Pooling").mkdir()
    (folder / "1_Pooling" / "config.json").write_text('{"pooling_mode": "cls"}')
    return folder


def write_numbers_of(base: Path, folder: Path) -> None:
    """A tokenizer of the adapter's own."""
    config = (base / "config.json").read_bytes()
    (folder / "config.json").write_bytes(config)
    write_numbers(folder)
    (folder / "config.json").unlink()


def sentence(root: Path) -> Path:
    return make(root / "m", sentence=Sentence(("mean",), dense=(Dense(5),), normalize=True), tokenizer="both")


def static(root: Path) -> Path:
    write_static(root / "m", "root")
    return root / "m"


KINDS: dict[str, Callable[[Path], Path]] = {
    "plain": lambda root: make(root / "m", head="pretraining", tokenizer="both"),
    "vocab.txt": lambda root: make(root / "m", tokenizer="vocab"),
    "shards": lambda root: make(root / "m", shards=3),
    "sentence": sentence,
    "static": static,
    "late": lambda root: write_late(root / "m", "modules fixed"),
    "late of Stanford": lambda root: write_late(root / "m", "stanford"),
    "bge-m3": lambda root: Path(write_bge_m3(root / "m")),
    "cross-encoder": lambda root: write_cross_encoder(root / "m"),
    "router": lambda root: write_router(root / "m"),
    "reranker": lambda root: write_reranker(root / "m", template=PUBLISHED, in_file=True),
    "GLiNER": lambda root: Path(write_gliner(root / "m")),
    "GLiNER2": lambda root: Path(write_gliner2(root / "m")),
    "adapter": adapter,
    "adapter with modules": adapter_with_modules,
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_file_that_is_opened_is_listed(kind: str, tmp_path: Path) -> None:
    folder = KINDS[kind](tmp_path)
    with noting() as found:
        model = bertcli.load(folder)
        tries: tuple[Callable[[], Any], ...] = (
            lambda: model.encode(["tea"]),
            lambda: model.encode_sparse(["tea"], prompt_name="query"),
            lambda: model.rank("tea", ["hot tea"]),
        )
        for compute in tries:  # some files are read when they are first needed
            with suppress(BertcliError):
                compute()
    inside = {path.resolve() for path in found if path.resolve().is_relative_to(tmp_path.resolve())}
    listed = {path.resolve() for path in model.files_read}
    assert any(path.suffix == ".safetensors" for path in inside)
    assert inside <= listed, f"not in files_read: {sorted(inside - listed)}"


WEIGHTS = re.compile(r"([\w/-]*/)?(model|pytorch_model|adapter_model)[\w-]*\.(safetensors|bin)(\.index\.json)?")


@pytest.mark.parametrize("kind", KINDS)
def test_every_file_that_is_asked_for_is_fetched(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also those that a folder lacks: from the Hub a model must be what it is from a folder."""
    asked: set[str] = set()
    file = Folder.file

    def noted(folder: Folder, name: str) -> Path:
        asked.add(folder._inner + name)
        return file(folder, name)

    folder = KINDS[kind](tmp_path)
    monkeypatch.setattr(Folder, "file", noted)
    model = bertcli.load(folder)
    for compute in (lambda: model.encode(["tea"]), lambda: model.rank("tea", ["hot tea"])):
        with suppress(BertcliError):
            compute()
    names = {name for name in asked if not WEIGHTS.fullmatch(name)}
    assert "modules.json" in names
    lost = {name for name in names if not (SMALL_FILES.fullmatch(name) or VOCABULARY.fullmatch(name))}
    assert lost == set(), f"folder/download.py fetches no {sorted(lost)}"
    assert missing(Folder(folder)) == []


def test_a_run_is_not_resumed_if_the_base_of_its_adapter_has_changed(tmp_path: Path) -> None:
    folder = adapter_with_modules(tmp_path)
    (tmp_path / "in.txt").write_text("t5\n" * 4)
    words: list[Any] = ["encode", "-m", folder, "-i", tmp_path / "in.txt", "-o", tmp_path / "v.npy", "--resume"]
    break_off(*words)
    config = tmp_path / "base" / "config.json"
    change_json(config, {"layer_norm_eps": 0.1})
    assert "the model has changed; restore that" in run(*words).error


def changed(file: Path) -> None:
    """Multiply the numbers of a file of tensors by 1.1."""
    if file.suffix == ".safetensors":
        tensors = {name: array * np.asarray(1.1, array.dtype) for name, array in load_file(file).items()}
        save_file(tensors, file, {"format": "pt"})
    else:
        data = bytearray(file.read_bytes())
        for at in range(len(data) // 2, len(data) // 2 + 64):
            data[at] ^= 1
        file.write_bytes(data)


@pytest.mark.parametrize("kind", ["plain", "shards", "sentence", "static", "bge-m3", "adapter"])
def test_a_signature_covers_every_file_of_weights(kind: str, tmp_path: Path) -> None:
    """Of whatever ending: stored vectors are not taken for those of a model whose weights have changed."""
    folder = KINDS[kind](tmp_path)
    model = bertcli.load(folder)
    with suppress(BertcliError):
        model.encode_sparse("tea")
    files = [file for file in model.files_read if file.suffix not in (".json", ".txt")]
    assert len(files) >= {"shards": 3, "sentence": 2, "bge-m3": 3, "adapter": 2}.get(kind, 1)
    for file in files:
        before, data = fingerprint("m", files), file.read_bytes()
        changed(file)
        assert fingerprint("m", files) != before, file
        file.write_bytes(data)
        assert fingerprint("m", files) == before


def test_endings_of_weights_stand_in_one_list() -> None:
    """So that a format is opened, digested, copied and fetched, or none of these."""
    package = Path(bertcli.__file__).parent
    others = {"wings/onnx/command.py", "wings/search/index.py"}  # files that other tools write
    for path in package.rglob("*.py"):
        strings = {
            node.value for node in ast.walk(ast.parse(path.read_text("utf-8"))) if isinstance(node, ast.Constant)
        }
        name = path.relative_to(package).as_posix()
        assert name in {"folder/files.py", *others} or not strings & {".bin", ".pt", "adapter_model.bin"}, name
