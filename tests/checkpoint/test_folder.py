"""A model's folder: each small file is read once, strictly, when it is first asked for."""

import pickle
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from helpers.checkpoint_files import Dense, Sentence
from helpers.checkpoints import make
from helpers.json_files import read_json, write_json

import bertcli
from bertcli.errors import BertcliError
from bertcli.folder.files import Folder

OPENS = """
import sys
opened = []
def heard(event, arguments):
    if event == "open" and isinstance(arguments[0], str):
        opened.append(arguments[0])
sys.addaudithook(heard)
from bertcli.cli import main
sys.argv = ["bertcli", *{arguments!r}]
try:
    main()
finally:
    print(*opened, sep="\\n", file=sys.stderr)
"""


def opens(folder: Path, *arguments: str) -> Counter[str]:
    """How often a command opens each file of a folder."""
    code = OPENS.format(arguments=[*arguments, "-m", str(folder)])
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    paths = [Path(line) for line in done.stderr.splitlines() if line.startswith(str(folder))]
    return Counter(path.relative_to(folder).as_posix() for path in paths)


def test_a_command_reads_each_file_of_a_model_once(tmp_path: Path) -> None:
    folder = make(tmp_path / "model", tokenizer="json", sentence=Sentence(("mean",), dense=(Dense(7),)))
    (folder / "special_tokens_map.json").write_text("{}")
    (folder / "config_sentence_transformers.json").write_text('{"prompts": {"query": "a "}}')
    (folder / "sentence_bert_config.json").write_text('{"max_seq_length": 20}')
    found = opens(folder, "encode", "tea")
    assert found.keys() == {
        *("config.json", "config_sentence_transformers.json", "model.safetensors", "modules.json"),
        *("sentence_bert_config.json", "special_tokens_map.json", "tokenizer.json", "tokenizer_config.json"),
        *("1_Pooling/config.json", "2_Dense/config.json", "2_Dense/model.safetensors"),
    }
    assert max(count for name, count in found.items() if name != "config.json") == 1
    assert found.total() <= 12
    assert opens(make(tmp_path / "words", head="mlm"), "fill-mask", "The [MASK].").total() <= 7


def test_what_was_read_stays_as_it_was(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text('{"key": 1}')
    folder = Folder(tmp_path)
    assert folder.object("a.json") == {"key": 1}
    (tmp_path / "a.json").write_text("{")
    assert folder.object("a.json") == folder.optional("a.json") == folder.value("a.json") == {"key": 1}
    with pytest.raises(BertcliError, match=r"a.json is not valid JSON"):
        Folder(tmp_path).value("a.json")
    read_again: Folder = pickle.loads(pickle.dumps(folder))
    assert read_again.path == tmp_path
    with pytest.raises(BertcliError, match=r"a.json is not valid JSON"):
        read_again.value("a.json")


def test_a_damaged_file_is_an_error_whenever_it_is_asked_for(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text("[1]")
    folder = Folder(tmp_path)
    assert folder.value("a.json") == [1]
    for _ in range(2):
        with pytest.raises(BertcliError, match=rf"{tmp_path}/a.json is not a JSON object but \[1\]"):
            folder.optional("a.json")
    (tmp_path / "b.json").write_text('{"key": 1, "key": 2}')
    with pytest.raises(BertcliError, match="the key 'key' occurs twice"):
        folder.object("b.json")
    (tmp_path / "b.json").write_text("{}")
    assert folder.object("b.json") == {}  # an error is not kept
    assert folder.optional("c.json") == {}
    (tmp_path / "c.json").symlink_to(tmp_path / "nowhere")
    assert folder.has("c.json")
    with pytest.raises(BertcliError, match=r"c.json is a link to a file that no longer exists"):
        folder.optional("c.json")


def test_only_a_configuration_that_is_not_there_is_that_of_the_base(tmp_path: Path) -> None:
    own, base = tmp_path / "own", Folder(tmp_path / "base")
    for path in (own, base.path):
        path.mkdir()
    for name in ("config.json", "a.json"):
        (base.path / name).write_text('{"key": 1}')
    assert Folder(own, base).object("config.json") == {"key": 1}
    assert not Folder(own, base).has("a.json")
    (own / "config.json").symlink_to(tmp_path / "nowhere")
    with pytest.raises(BertcliError, match=r"own/config.json is a link to a file that no longer exists"):
        Folder(own, base).object("config.json")


def test_a_model_is_opened_from_what_was_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make(tmp_path / "model", head="mlm", tokenizer="json")
    monkeypatch.chdir(tmp_path)
    model = bertcli.load("model", text=False)
    monkeypatch.chdir("/")
    assert model.path == tmp_path / "model"
    assert model.fill_mask(["The [MASK]."])
    assert pickle.loads(pickle.dumps(model)).path == model.path
    assert bertcli.variant("tiny").path is None


def test_a_refused_setting_hinders_only_those_who_need_it(tmp_path: Path) -> None:
    folder = make(tmp_path / "model", tokenizer="json", head="mlm", sentence=Sentence(("mean",)))
    modules = read_json(folder / "modules.json")
    modules.append({"type": "sentence_transformers.models.CNN", "path": "2_CNN"})
    write_json(folder / "modules.json", modules)
    model = bertcli.load(folder)
    assert model.fill_mask(["The [MASK]."])
    for _ in range(2):  # the refusal is kept, not only raised once
        with pytest.raises(BertcliError, match=r"lists the module .sentence_transformers\.models\.CNN., which"):
            model.encode(["tea"])
