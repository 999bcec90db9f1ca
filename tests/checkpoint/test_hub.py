"""Finding a model by name, with real downloads from a small Hub on 127.0.0.1 and everything that can go wrong."""

import fcntl
import json
import os
import pty
import re
import stat
import struct
import subprocess
import termios
from collections.abc import Callable, Iterator
from hashlib import sha256
from pathlib import Path
from threading import Timer
from typing import IO, Any

import pytest
from helpers.adapters import write_lora
from helpers.bin_files import convert
from helpers.checkpoints import Dense, Sentence, make
from helpers.deadlines import SECONDS
from helpers.forked import fork
from helpers.gliner import write_gliner
from helpers.hub_server import Faults, Hub, commit_of, load_files
from helpers.opened_folders import sentence_of
from helpers.static_models import write_static
from huggingface_hub import hf_hub_download, scan_cache_dir

import bertcli
from bertcli.analysis import info
from bertcli.errors import BertcliError
from bertcli.folder import hub as hub_module
from bertcli.folder.cache import cache_folder, cached, missing
from bertcli.folder.files import Folder
from bertcli.folder.hub import Source, sample
from bertcli.weights.tensors import open_tensors

MODEL = "someone/model"

# The hub client reads its settings when it is imported, so it runs in a process of its own: one question a line. It
# waits between its attempts; here it need not.
SCRIPT = """
import json, os, sys, time
time.sleep = lambda seconds: None
if "SECONDS_FOR_ANSWER" in os.environ:  # the client's own variable, HF_HUB_ETAG_TIMEOUT, takes whole ones
    from huggingface_hub import constants
    constants.HF_HUB_ETAG_TIMEOUT = float(os.environ["SECONDS_FOR_ANSWER"])
from bertcli.errors import BertcliError
from bertcli.folder.hub import Source
for line in sys.stdin:
    asked = json.loads(line)
    weights = asked.pop("weights", True)
    try:
        answer = {"folder": str(Source(**asked).find(weights).path)}
    except BertcliError as error:
        answer = {"error": str(error)}
    print(json.dumps(answer | {"client": "huggingface_hub" in sys.modules}), flush=True)
"""


class Process:
    """Asks Source.find in a process of its own, with the cache in `home` and the Hub at `url`."""

    def __init__(self, home: Path, url: str, stderr: int | IO[bytes], **environment: str) -> None:
        inherited = {name: os.environ[name] for name in ("PATH", "SYSTEMROOT") if name in os.environ}
        settings = {
            "HOME": str(home),
            "HF_HOME": str(home / "hf"),
            "HF_ENDPOINT": url,
            "NO_PROXY": "127.0.0.1,localhost",
            "SSL_CERT_DIR": str(home),  # no certificates: all that the system has take longer than most answers
        }
        streams: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": stderr}
        self.process = fork(code=SCRIPT, environment=inherited | settings | environment, **streams)
        self.deadline = Timer(SECONDS, self.process.kill)
        self.deadline.start()

    def send(self, model: str = MODEL, **options: Any) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(f"{json.dumps({'model': model} | options)}\n".encode())
        self.process.stdin.flush()

    def answer(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        answer = json.loads(self.process.stdout.readline())
        assert isinstance(answer, dict)
        return answer

    def folder(self, model: str = MODEL, **options: Any) -> Path:
        self.send(model, **options)
        answer = self.answer()
        assert "folder" in answer, answer
        assert missing(Folder(Path(answer["folder"])), options.get("weights", True)) == []
        return Path(answer["folder"])

    def error(self, model: str = MODEL, **options: Any) -> str:
        self.send(model, **options)
        error = str(self.answer()["error"])
        assert "\n" not in error
        return error

    def close(self) -> None:
        self.process.close()
        self.deadline.cancel()


Start = Callable[..., Process]


@pytest.fixture(scope="module")
def repos(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Repositories with what real ones hold besides: other formats, a read-me, pictures."""
    root = tmp_path_factory.mktemp("repos")
    plain = make(root / "plain", head="mlm", tokenizer="both")
    for name in ("pytorch_model.bin", "tf_model.h5", "model.onnx", "README.md", ".gitattributes"):
        (plain / name).write_text("not to be fetched")
    sentence = make(
        root / "sentence", sentence=Sentence(("cls",), dense=(Dense(7),), normalize=True, max_seq_length=20)
    )
    (sentence / "2_Dense" / "pytorch_model.bin").write_text("not to be fetched")
    (sentence / "onnx").mkdir()
    (sentence / "onnx" / "config.json").write_text("{}")
    return {MODEL: plain, f"{MODEL}@v2": make(root / "v2", head="mlm", seed=2), "someone/sentence": sentence,
            "someone/shards": make(root / "shards", shards=3)}  # fmt: skip


@pytest.fixture
def hub(repos: dict[str, Path]) -> Iterator[Hub]:
    with Hub(repos) as server:
        yield server


@pytest.fixture
def start(hub: Hub, tmp_path: Path) -> Iterator[Start]:
    """Starts processes; at the end none of them has written a word to stderr."""
    started: list[Process] = []
    with (tmp_path / "stderr").open("w+b") as stderr:

        def start_one(**environment: str) -> Process:
            started.append(Process(tmp_path, hub.url, stderr, **environment))
            return started[-1]

        yield start_one
        for process in started:
            process.close()
        stderr.seek(0)
        assert stderr.read() == b""


# ------------------------------------------------------------------------------------------------------- downloads


def test_a_download_then_the_cache_without_a_network(hub: Hub, start: Start, repos: dict[str, Path]) -> None:
    wanted = {"config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"}
    folder = start().folder(progress=True)  # and yet no bar, for stderr is a file
    assert {path.name for path in folder.iterdir()} == wanted
    assert hub.fetched() == wanted
    for name in wanted:
        assert (folder / name).read_bytes() == (repos[MODEL] / name).read_bytes()
    assert open_tensors(Folder(folder))

    hub.stop()
    again = start()
    again.send()
    assert again.answer() == {"folder": str(folder), "client": False}  # not even imported
    assert again.folder(offline=True) == folder
    assert start(HF_HUB_OFFLINE="1").folder() == folder


def test_who_only_tokenizes_fetches_no_weights(hub: Hub, start: Start) -> None:
    process = start()
    folder = process.folder(weights=False)
    assert hub.fetched() == {"config.json", "tokenizer.json", "tokenizer_config.json"}
    assert process.folder(weights=False, offline=True) == folder
    assert "is in the cache without model.safetensors" in process.error(offline=True)
    assert process.folder() == folder  # and now the rest
    assert "model.safetensors" in hub.fetched()


def test_offline_asks_nobody(hub: Hub, start: Start) -> None:
    process = start()
    error = process.error(offline=True)
    assert f"There is no folder {MODEL}, and the Hub model of that name is not in the cache" in error
    assert "offline mode (--offline) forbids downloading it" in error
    assert "at revision v2" in process.error(offline=True, revision="v2")
    assert "HF_HUB_OFFLINE forbids downloading it" in start(HF_HUB_OFFLINE="yes").error()
    assert hub.requests == []


def test_sentence_transformers_files_come_with_it(hub: Hub, start: Start) -> None:
    folder = start().folder("someone/sentence")
    expected = {"config.json", "vocab.txt", "tokenizer_config.json", "model.safetensors", "modules.json"}
    expected |= {
        "sentence_bert_config.json",
        "1_Pooling/config.json",
        "2_Dense/config.json",
        "2_Dense/model.safetensors",
    }
    assert hub.fetched() == expected
    (folder / "1_Pooling" / "config.json").unlink()  # as if fetched only in part
    assert missing(Folder(folder)) == ["1_Pooling/config.json"]
    process = start()
    assert "is in the cache without 1_Pooling/config.json" in process.error("someone/sentence", offline=True)
    assert process.folder("someone/sentence") == folder


@pytest.mark.parametrize("layout", ["folder", "root", "model2vec"])
def test_static_models_need_nothing_that_is_not_there(hub: Hub, start: Start, tmp_path: Path, layout: str) -> None:
    write_static(tmp_path / "static", layout)
    hub.repos["someone/static"] = load_files(tmp_path / "static")
    process = start()
    table = {"folder": "0_StaticEmbedding/model.safetensors"}.get(layout, "model.safetensors")
    without_weights = process.folder("someone/static", weights=False)
    assert hub.fetched() == hub.repos["someone/static"].keys() - {table}
    assert process.folder("someone/static") == process.folder("someone/static", offline=True) == without_weights
    assert hub.fetched() == hub.repos["someone/static"].keys()


def test_gliner_comes_with_the_tokenizer_of_its_backbone(hub: Hub, start: Start, tmp_path: Path) -> None:
    """The weights of the backbone are GLiNER's own: of its folder only the small files are fetched, once."""
    name = "someone/backbone"
    folder = write_gliner(tmp_path / "gliner", tokenizer=False, embedded=False, form="bin", model_name=name)
    hub.repos["someone/gliner"] = load_files(folder)
    hub.repos[name] = load_files(tmp_path / "gliner-base") | {"pytorch_model.bin": b"none of these"}
    found = start().folder("someone/gliner")
    assert sorted(path.name for path in found.iterdir()) == ["gliner_config.json", "pytorch_model.bin"]
    cache = found.parents[2]
    (backbone,) = (cache / "models--someone--backbone" / "snapshots").iterdir()
    assert sorted(path.name for path in backbone.iterdir()) == [
        "config.json",
        "tokenizer.json",
        "tokenizer_config.json",
    ]
    fetched = len(hub.fetched())
    model = bertcli.load("someone/gliner", cache_dir=cache, offline=True)
    assert len(hub.fetched()) == fetched
    text = "She poured a cup of hot coffee in Paris"
    given = bertcli.load(write_gliner(tmp_path / "whole"))
    assert model.tag(text, labels="drink, person") == given.tag(text, labels="drink, person")
    here = {one["model"]: one for one in info.models_here(str(cache))}
    assert here["someone/gliner"]["runs"]
    assert here["someone/gliner"]["what"] == f"entities of any type, on {name}"
    hub.repos.pop(name)
    (backbone / "tokenizer.json").unlink()
    error = start().error("someone/gliner", offline=True)
    assert f"someone/gliner is a GLiNER model without a tokenizer of its own, and needs that of '{name}'" in error
    assert "is in the cache without tokenizer.json" in error


def test_shards_come_with_their_index(hub: Hub, start: Start) -> None:
    folder = start().folder("someone/shards")
    assert len(list(folder.glob("*.safetensors"))) == 3
    assert open_tensors(Folder(folder))
    (folder / "model-00002-of-00003.safetensors").unlink()
    assert missing(Folder(folder)) == ["model-00002-of-00003.safetensors"]
    assert start().folder("someone/shards") == folder


def test_revisions_lie_side_by_side(hub: Hub, start: Start) -> None:
    for name, revision in (("a/latest", None), ("a/second", "v2")):  # adapters, which name a revision of their base
        settings = {"peft_type": "LORA", "base_model_name_or_path": MODEL, "revision": revision}
        weights = {"adapter_model.safetensors": b"weights"}
        hub.repos[name] = {"adapter_config.json": json.dumps(settings).encode(), **weights}
    process = start()
    main, second = process.folder(), process.folder(revision="v2")
    assert main != second
    assert (process.folder("a/latest"), process.folder("a/second")) == (main, second)
    hub.stop()
    assert (process.folder("a/latest"), process.folder("a/second")) == (main, second)
    assert process.folder(revision="v2") == second
    assert process.folder(revision=second.name) == second  # by its commit
    assert process.folder(f"{MODEL}@v2") == process.folder(f"{MODEL}@{second.name}") == second
    assert process.folder("a/second@main") == second  # of the adapter, whose base has its own
    assert process.folder() == main


def test_a_commit_can_be_asked_for(hub: Hub, start: Start) -> None:
    commit = commit_of(hub.repos[f"{MODEL}@v2"])
    folder = start().folder(revision=commit)
    assert folder.name == commit
    assert not (folder.parents[1] / "refs" / commit).exists()


def test_a_cache_of_ones_own(start: Start, tmp_path: Path) -> None:
    assert start().folder(cache_dir=str(tmp_path / "mine")).is_relative_to(tmp_path / "mine")
    assert start(HF_HUB_CACHE=str(tmp_path / "theirs")).folder().is_relative_to(tmp_path / "theirs")


def test_a_setting_of_the_client_that_is_none(start: Start) -> None:
    assert "The Hub client cannot be loaded (invalid literal" in start(HF_HUB_ETAG_TIMEOUT="abc").error()
    assert start(HF_HUB_ENABLE_HF_TRANSFER="1").folder()  # that it is read no more is not worth a warning


def test_weights_that_are_only_a_pickle_come_as_they_are(hub: Hub, start: Start, tmp_path: Path) -> None:
    for name, shards in (("whole", 0), ("shards", 2)):
        convert(make(tmp_path / name, shards=shards))
        hub.repos[f"someone/{name}"] = load_files(tmp_path / name)
        folder = start().folder(f"someone/{name}")
        assert {path.name for path in folder.iterdir()} == {path.name for path in (tmp_path / name).iterdir()}
        assert open_tensors(Folder(folder))


def test_whether_there_is_a_modules_json_is_asked_once(hub: Hub, start: Start, tmp_path: Path) -> None:
    """transformers leaves a cache without modules.json and with no mark that it was asked for."""
    process = start()
    folder = process.folder("someone/sentence")
    for name in ("modules.json", "sentence_bert_config.json", "1_Pooling/config.json", "2_Dense/config.json"):
        (folder / name).unlink()
    assert process.folder("someone/sentence", offline=True) == folder
    assert not (folder / "modules.json").exists()
    assert sentence_of(folder).reason == "mean, since this cached copy has no modules.json, which the Hub may have"
    assert process.folder("someone/sentence") == folder
    assert sentence_of(folder).pooling == ("cls",)
    plain = process.folder()
    mark = plain.parents[1] / ".no_exist" / plain.name / "modules.json"
    assert sentence_of(plain).reason == "mean, since the checkpoint specifies no pooling"
    hub.requests.clear()
    assert process.folder() == plain
    assert hub.requests == []
    mark.unlink()
    assert process.folder() == plain
    assert mark.is_file()
    mark.unlink()
    hub.stop()
    assert process.folder() == plain  # what cannot be asked is no error


def test_the_cache_is_that_of_the_client(start: Start, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    folder = start().folder(cache_dir=str(cache))
    for name in ("config.json", "model.safetensors"):
        assert hf_hub_download(MODEL, name, cache_dir=cache, local_files_only=True) == str(folder / name)
    found = scan_cache_dir(cache)
    assert found.warnings == []
    assert [(repo.repo_id, repo.nb_files, [*repo.refs]) for repo in found.repos] == [(MODEL, 4, ["main"])]


def test_weights_of_another_commit_are_not_fetched_again(hub: Hub, start: Start) -> None:
    process = start()
    folder = process.folder()
    hub.repos[f"{MODEL}@v3"] = hub.repos[MODEL] | {"config.json": hub.repos[MODEL]["config.json"] + b"\n"}
    hub.requests.clear()
    later = process.folder(revision="v3")
    assert "config.json" in hub.fetched()
    assert "model.safetensors" not in hub.fetched()
    assert (later / "model.safetensors").samefile(folder / "model.safetensors")


def test_old_and_new_names_are_one_model(hub: Hub, start: Start) -> None:
    new, old = "google-bert/bert-base-uncased", "bert-base-uncased"
    hub.repos = {new: hub.repos[MODEL]}
    process = start()
    folder = process.folder(old)
    assert folder.parents[1].name == "models--google-bert--bert-base-uncased"
    assert process.folder(new, offline=True) == process.folder(old, offline=True) == folder
    hub.repos = {"bert-base-cased": hub.repos[new]}
    assert process.folder("google-bert/bert-base-cased").parents[1].name == "models--bert-base-cased"
    assert process.folder("bert-base-cased", offline=True)
    assert "There is no folder someone/roberta-base" in process.error("someone/roberta-base")
    hub.requests.clear()
    assert "There is no folder bert-nlp/my-model" in process.error("bert-nlp/my-model")
    assert not [one.path for one in hub.requests if "google-bert" in one.path]


def test_two_processes_at_once(start: Start) -> None:
    processes = [start(), start()]
    for process in processes:
        process.send()
    first, second = (process.answer() for process in processes)
    assert first == second
    assert missing(Folder(Path(first["folder"]))) == []


def test_the_token_goes_to_the_hub_alone(hub: Hub, start: Start) -> None:
    hub.faults.private = {MODEL}
    error = start().error()
    assert f"There is no folder {MODEL}, and no accessible model of that name on {hub.url}" in error
    hub.requests.clear()
    start(HF_TOKEN="hf_secret").folder()
    asked = [request for request in hub.requests if MODEL in request.path]
    assert {request.token for request in asked} == {"Bearer hf_secret"}
    stored = [request for request in hub.requests if request.host == "localhost"]
    assert [request.token for request in stored] == [None]


def test_what_has_arrived_only_for_those_who_can_see_it(hub: Hub, tmp_path: Path) -> None:
    def shown(name: str, **options: Any) -> bytes:
        terminal, stderr = pty.openpty()
        fcntl.ioctl(stderr, termios.TIOCSWINSZ, struct.pack("4H", 24, 100, 0, 0))
        process = Process(tmp_path / name, hub.url, stderr)
        process.folder(weights=False)
        hub.faults.delay = 0.1
        process.folder(**options)
        hub.faults.delay = 0
        process.close()
        os.write(stderr, b"end")
        text = b""
        while not text.endswith(b"end"):
            text += os.read(terminal, 10_000)
        os.close(terminal)
        os.close(stderr)
        return text.removesuffix(b"end")

    assert b"model.safetensors" in shown("1", progress=True)
    assert shown("2", progress=False) == b""


# ---------------------------------------------------------------------------------------------------------- faults


def test_there_is_no_such_model(hub: Hub, start: Start) -> None:
    process = start()
    error = f"There is no folder someone/else, and no accessible model of that name on {hub.url}: check the spelling"
    assert error in process.error("someone/else")
    assert "has no revision v9: give a branch, tag or commit." in process.error(revision="v9")
    hub.faults.gated = {MODEL}
    assert f"{MODEL} is gated: accept its terms on {hub.url}/{MODEL} and set HF_TOKEN" in process.error()
    assert hub.fetched() == set()


def test_the_hub_is_down(hub: Hub, start: Start) -> None:
    process = start()
    hub.faults.status = 503
    assert f"{hub.url} answered 503 when asked for {MODEL}: try again later." in process.error()
    hub.faults.status = 403
    assert f"{hub.url} refused {MODEL} with status 403: check HF_TOKEN." in process.error()
    hub.faults.status = 200
    assert f"{MODEL} could not be fetched from {hub.url} (Expecting value" in process.error()
    hub.faults.status, hub.faults.delay = None, 0.3
    assert f"{hub.url} cannot be reached, and {MODEL} is not in the cache" in start(SECONDS_FOR_ANSWER="0.1").error()
    hub.faults.delay = 0
    hub.stop()
    assert f"{hub.url} cannot be reached, and {MODEL} is not in the cache" in process.error()
    assert (
        f"{MODEL} could not be fetched from nonsense (Request URL is missing" in start(HF_ENDPOINT="nonsense").error()
    )


def test_the_connection_is_cut_half_way(hub: Hub, start: Start) -> None:
    hub.faults.cut = {"model.safetensors": 5000}
    process = start()
    assert f"The connection to {hub.url} broke off while fetching {MODEL}: try again." in process.error()
    assert "is not in the cache" in process.error(offline=True)  # half a model is none
    hub.faults.cut = {}
    hub.requests.clear()
    assert open_tensors(Folder(process.folder()))
    assert hub.fetched() == {"model.safetensors"}  # the rest had come already


def test_a_cut_anywhere_leaves_no_half_model(hub: Hub, start: Start, tmp_path: Path) -> None:
    process = start()
    for number, name in enumerate(["config.json", "vocab.txt", "1_Pooling/config.json", "2_Dense/model.safetensors"]):
        options: dict[str, Any] = {"model": "someone/sentence", "cache_dir": str(tmp_path / str(number))}
        hub.faults.cut = {name: 10}
        assert "broke off" in process.error(**options)
        assert "is not in the cache" in process.error(**options, offline=True)
        hub.faults.cut = {}
        assert process.folder(**options)


def test_what_was_cached_survives_a_failed_update(hub: Hub, start: Start) -> None:
    process = start()
    before = process.folder()
    hub.repos[MODEL] = hub.repos[f"{MODEL}@v2"]
    hub.repos[f"{MODEL}@next"] = hub.repos.pop(f"{MODEL}@v2")
    hub.faults.cut = {"model.safetensors": 5000}
    assert "broke off" in process.error(revision="next")
    hub.stop()
    assert process.folder() == before
    assert "is not in the cache" in process.error(revision="next", offline=True)


def test_repositories_that_are_no_use_are_refused_before_anything_large(hub: Hub, start: Start) -> None:
    whole = hub.repos[MODEL]
    shards = hub.repos["someone/shards"]
    dense = hub.repos["someone/sentence"]

    def without(files: dict[str, bytes], *names: str) -> dict[str, bytes]:
        return {name: data for name, data in files.items() if name not in names}

    hub.repos = {
        "a/config": without(whole, "config.json"),
        "a/tokenizer": without(whole, "tokenizer.json", "vocab.txt"),
        "a/weights": without(whole, "model.safetensors", "pytorch_model.bin", "tf_model.h5", "model.onnx"),
        "a/adapter": {"adapter_config.json": b"{}", "adapter_model.safetensors": b""},
        "a/graph": {
            "onnx/model.onnx": b"",
            **without(whole, "model.safetensors", "pytorch_model.bin", "model.onnx", "tf_model.h5"),
        },
        "a/shard": without(shards, "model-00002-of-00003.safetensors"),
        "a/dense": without(dense, "2_Dense/model.safetensors", "2_Dense/pytorch_model.bin"),
    }
    process = start()
    assert "a/config on the Hub has no config.json" in process.error("a/config")
    assert "neither tokenizer.json nor vocab.txt" in process.error("a/tokenizer")
    assert "a/weights on the Hub has no weights: use another model" in process.error("a/weights")
    assert "has the peft_type null; bertcli applies LORA" in process.error("a/adapter")
    assert "a/graph on the Hub has its weights as an ONNX graph only (onnx/model.onnx)" in process.error("a/graph")
    assert "a/shard on the Hub lacks model-00002-of-00003.safetensors" in process.error("a/shard")
    assert "a/dense on the Hub lacks 2_Dense/model.safetensors" in process.error("a/dense")
    assert not any(name.endswith((".safetensors", ".bin")) for name in hub.fetched())


def test_a_cache_that_cannot_be_written(start: Start, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    error = start().error(cache_dir=str(tmp_path / "file" / "cache"))
    assert f"{MODEL} cannot be written to the cache" in error
    assert error.endswith("Not a directory.")


# ------------------------------------------------------------------------------------------- what a Hub may not say

COMMIT_HEADER, ETAG, LINKED_ETAG, LINKED_SIZE = "X-Repo-Commit", "ETag", "X-Linked-Etag", "X-Linked-Size"
# All that an answer holds, with hostile values, and what is said then.
HOSTILE: list[tuple[str, dict[str, Any], str]] = [
    ("described", {"sha": "/any/path"}, "has the commit '/any/path', which is no hash: check HF_ENDPOINT"),
    ("described", {"sha": "0" * 39}, "which is no hash"),
    ("described", {"sha": None}, "has the commit null, which is no hash"),
    ("described", {"siblings": None}, "on the Hub has no config.json"),
    ("described", {"siblings": [{"rfilename": "../../config.json"}]}, "on the Hub has no config.json"),
    ("described", {"siblings": [{}]}, "could not be fetched from"),
    ("described", {"siblings": 7}, "could not be fetched from"),
    ("headers", {COMMIT_HEADER: "/any/path"}, "has a file of the commit '/any/path', which is not the one asked for"),
    ("headers", {COMMIT_HEADER: "0" * 40}, f"has a file of the commit '{'0' * 40}', which is not the one asked for"),
    ("headers", {ETAG: '"../../../../x"'}, "has a file with the ETag '../../../../x', which is no name"),
    ("headers", {ETAG: "W/.."}, "has a file with the ETag '..', which is no name"),
    ("headers", {LINKED_ETAG: "../../../x"}, "has a file with the ETag '../../../x', which is no name"),
    ("headers", {LINKED_SIZE: "1"}, "arrived from"),
    ("headers", {LINKED_SIZE: "-1"}, "arrived from"),
    ("headers", {"Location": "file:///etc/passwd"}, "could not be fetched from"),
    ("headers", {"Location": "http://127.0.0.1:9/x"}, "cannot be reached"),
    ("digest", {"": "0" * 64}, "with other bytes than announced (SHA-256) and was discarded: try again."),
]  # fmt: skip


@pytest.fixture(scope="module")
def one_process(repos: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Hub, Process]]:
    """A Hub and a process that asks it, for all hostile answers."""
    home = tmp_path_factory.mktemp("hostile")
    with Hub(repos) as server, (home / "stderr").open("w+b") as stderr:
        process = Process(home, server.url, stderr)
        yield server, process
        process.close()
        stderr.seek(0)
        assert stderr.read() == b""


@pytest.mark.parametrize(("where", "values", "why"), HOSTILE)
def test_nothing_that_a_hub_says_leaves_the_cache(
    where: str, values: dict[str, Any], why: str, one_process: tuple[Hub, Process], tmp_path: Path
) -> None:
    hub, process = one_process
    hub.faults = Faults(**{where: values.get("", values)})
    cache = tmp_path / "deep" / "cache"
    error = process.error(cache_dir=str(cache))
    assert why in error
    assert len(error) < 400
    assert {path for path in tmp_path.rglob("*") if not path.is_relative_to(cache)} <= {cache.parent}
    assert not list(cache.glob("models--*/refs/*"))
    assert not list(cache.glob("models--*/snapshots/*/model.safetensors"))
    assert COMMIT_HEADER not in values or not list(cache.glob("models--*/.no_exist/*"))
    assert "is not in the cache" in process.error(cache_dir=str(cache), offline=True)
    hub.faults = Faults()
    assert open_tensors(Folder(process.folder(cache_dir=str(cache))))


def test_a_redirect_in_a_circle_ends(one_process: tuple[Hub, Process], tmp_path: Path) -> None:
    hub, process = one_process
    commit = commit_of(hub.repos[MODEL])
    hub.faults = Faults(headers={"Location": f"{hub.url}/{MODEL}/resolve/{commit}/model.safetensors"})
    assert f"{MODEL} could not be fetched from {hub.url} (" in process.error(cache_dir=str(tmp_path))
    hub.faults = Faults()


@pytest.mark.parametrize("name", ["model.safetensors", "config.json"])
def test_other_bytes_than_those_announced_are_not_used(
    name: str, one_process: tuple[Hub, Process], tmp_path: Path
) -> None:
    """Of a file in Git the ETag is no SHA-256 of its bytes; where a Hub announces one, it is compared."""
    hub, process = one_process
    data = hub.repos[MODEL][name]
    hub.faults = Faults(other={name: data[:-1] + bytes([data[-1] ^ 1])})
    if name == "config.json":
        hub.faults.headers = {ETAG: f'"{sha256(data).hexdigest()}"', LINKED_ETAG: f'"{sha256(data).hexdigest()}"'}
    cache = tmp_path / "cache"
    error = process.error(cache_dir=str(cache))
    assert f"{name} of {MODEL} arrived from {hub.url} with other bytes than announced (SHA-256)" in error
    assert not list(cache.rglob(name))
    assert not [path for path in cache.rglob("blobs/*") if path.name == sha256(data).hexdigest()]
    hub.faults = Faults()
    assert (process.folder(cache_dir=str(cache)) / name).read_bytes() == data


def test_a_reference_in_the_cache_that_is_no_commit_leads_nowhere(tmp_path: Path) -> None:
    make(tmp_path / "elsewhere")
    for number, text in enumerate(("../../../elsewhere", str(tmp_path / "elsewhere"), "\xff", "")):
        (tmp_path / f"models--a--{number}" / "refs").mkdir(parents=True)
        (tmp_path / f"models--a--{number}" / "snapshots").mkdir()
        (tmp_path / f"models--a--{number}" / "refs" / "main").write_bytes(text.encode("latin-1"))
        with pytest.raises(BertcliError, match="is not in the cache"):
            Source(f"a/{number}", cache_dir=tmp_path, offline=True).find()
    assert [*cached(tmp_path)] == []


# ----------------------------------------------------------------------------------------------- without a network


@pytest.mark.parametrize(
    "name", ["./model", "../model", "/no/model", "~/no-model", "a/b/c", "model/", "a\\b", ".", ".x"]
)
def test_a_path_is_not_looked_for_in_the_network(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    if name == ".":
        assert Source(name).find().path == Path()
    else:
        with pytest.raises(BertcliError, match="There is no folder"):
            Source(name).find()


@pytest.mark.parametrize(
    "name", ["", "a b", "a--b", "a..b", "x.git", "-a", "a/-b", "ä", "a" * 97, "a\0b", "http:x", "a/b\n"]
)
def test_what_is_no_hub_id_is_refused(name: str) -> None:
    with pytest.raises(BertcliError, match="is neither a folder nor a Hub id such as") as caught:
        Source(name).find()
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("revision", ["", "../x", "a/../b", "/x", "a//b", "x/", "a b", "-x", "a\n", "x" * 300])
def test_what_is_no_revision_is_refused(revision: str) -> None:
    with pytest.raises(BertcliError, match=f"is not a revision: give a branch, tag or commit of {MODEL}"):
        Source(MODEL, revision=revision, offline=True).find()


@pytest.mark.parametrize("revision", ["main", "v1.0", "refs/pr/1", "0" * 40])
def test_a_revision_in_the_name_is_a_revision(
    revision: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(
        BertcliError, match=f"There is no folder {MODEL}, .* at revision {re.escape(revision)} is not in"
    ):
        Source(f"{MODEL}@{revision}", offline=True, cache_dir=tmp_path).find()
    with pytest.raises(BertcliError, match="has a revision in its name, and 'v9' is another"):
        Source(f"{MODEL}@{revision}", revision="v9", offline=True, cache_dir=tmp_path).find()
    monkeypatch.chdir(tmp_path)
    folder = make(tmp_path / "mine")
    assert Source(f"mine@{revision}").find().path == Path("mine")
    assert f"mine is a folder: the revision {revision} is ignored." in caplog.text
    (tmp_path / "mine@v1").mkdir()
    assert Source("mine@v1").find().path == Path("mine@v1")
    with pytest.raises(BertcliError, match=r"There is no folder '\./nothing@v1'"):
        Source("./nothing@v1").find()
    assert folder.is_dir()


def test_an_adapter_may_follow_its_base(tmp_path: Path) -> None:
    base, adapter = write_lora(tmp_path, "bert vectors")
    both = bertcli.load(f"{base}+{adapter}").encode("t5")
    assert (both == bertcli.load(base, adapter=adapter).encode("t5")).all()
    assert (both != bertcli.load(base).encode("t5")).any()
    (tmp_path / "c++").mkdir()
    assert Source(str(tmp_path / "c++")).find().path == tmp_path / "c++"
    with pytest.raises(BertcliError, match=r"There is no folder '/c\+\+/nothing'"):
        Source("/c++/nothing").find()


def test_sentence_transformers_may_be_left_out(hub: Hub, start: Start) -> None:
    hub.repos["sentence-transformers/all-tea-v2"] = hub.repos["someone/sentence"]
    process = start()
    folder = process.folder("all-tea-v2")
    assert "models--sentence-transformers--all-tea-v2" in folder.parts
    hub.stop()
    assert process.folder("all-tea-v2") == process.folder("all-tea-v2@main") == folder
    assert "There is no folder other/all-tea-v2" in process.error("other/all-tea-v2", offline=True)


def test_a_file_is_no_model(tmp_path: Path) -> None:
    file = make(tmp_path) / "model.safetensors"
    (tmp_path / "onnx").mkdir()
    for one in (file, tmp_path / "onnx" / "model.onnx"):
        one.touch()
        with pytest.raises(BertcliError, match=f"is a file: give the folder '{tmp_path}'\\."):
            Source(str(one)).find()
    (tmp_path / "config.json").unlink()
    with pytest.raises(BertcliError, match=r"is a file: a model is a folder with config.json and weights such as"):
        Source(str(file)).find()


def test_a_name_like_that_of_a_bundled_model_is_not_looked_up(tmp_path: Path) -> None:
    with pytest.raises(BertcliError, match=r"no bundled model 'bert-mini-mln'. Did you mean bert-mini-mlm\?"):
        Source("bert-mini-mln", cache_dir=tmp_path).find()
    for name in (
        "bert-base-uncased",
        "roberta-base",
        "distilbert-base-uncased-finetuned-sst-2-english",
        "bert-base-cased",
    ):
        with pytest.raises(BertcliError, match="is not in the cache"):
            Source(name, offline=True, cache_dir=tmp_path).find()


def test_a_folder_of_a_training_run_names_the_last_of_its_checkpoints(tmp_path: Path) -> None:
    for number, name in enumerate(("checkpoint-500", "checkpoint-1000")):
        os.utime(make(tmp_path / name) / "config.json", (number, number))
    with pytest.raises(BertcliError, match=r"has no config.json.*: give .*checkpoint-1000, which has one\."):
        bertcli.load(tmp_path)


def test_a_folder_comes_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "bert-base-uncased").mkdir()
    assert Source("bert-base-uncased").find().path == Path("bert-base-uncased")
    assert Source("~/bert-base-uncased").find().path == tmp_path / "bert-base-uncased"
    assert caplog.text == ""
    Source("bert-base-uncased", revision="v2").find()
    assert "bert-base-uncased is a folder: the revision v2 is ignored." in caplog.text


def test_bundled_models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hub_module, "__file__", str(tmp_path / "bertcli" / "checkpoint" / "hub.py"))
    with pytest.raises(BertcliError, match="bert-mini-mlm is not in this installation"):
        Source("bert-mini-mlm").find()
    beside = make(tmp_path / "sample_weights" / "bert-mini-mlm")
    assert sample("bert-mini-mlm") == Source("bert-mini-mlm").find().path == beside
    inside = make(tmp_path / "bertcli" / "sample_weights" / "bert-mini-mlm")
    assert sample("bert-mini-mlm") == inside


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({}, "/home/me/.cache/huggingface/hub"),
        ({"XDG_CACHE_HOME": "/x"}, "/x/huggingface/hub"),
        ({"XDG_CACHE_HOME": "/x", "HF_HOME": "~/h"}, "/home/me/h/hub"),
        ({"HF_HOME": "/h", "HUGGINGFACE_HUB_CACHE": "/old"}, "/old"),
        ({"HF_HOME": "/h", "HUGGINGFACE_HUB_CACHE": "/old", "HF_HUB_CACHE": "$HF_HOME/c"}, "/h/c"),
    ],
)
def test_the_cache_is_where_its_client_has_it(
    environment: dict[str, str], expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("XDG_CACHE_HOME", "HF_HOME", "HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE"):
        monkeypatch.delenv(name, raising=False)
    for name, value in (environment | {"HOME": "/home/me"}).items():
        monkeypatch.setenv(name, value)
    assert cache_folder() == Path(expected)
    assert cache_folder("~/mine") == Path("/home/me/mine")


def test_hub_ref_in_the_cache_can_be_read_by_others(tmp_path: Path) -> None:
    from bertcli.folder.cache import point

    before = os.umask(0o022)
    try:
        point(tmp_path / "refs" / "main", "0" * 40)
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "refs" / "main").stat().st_mode) == 0o644
    assert [file.name for file in (tmp_path / "refs").iterdir()] == ["main"]


def test_of_two_cached_names_of_a_model_the_given_one_counts(tmp_path: Path) -> None:
    for name, commit in (("bert-small", "1" * 40), ("google-bert--bert-small", "2" * 40)):
        storage = tmp_path / f"models--{name}"
        make(storage / "snapshots" / commit)
        (storage / "refs").mkdir()
        (storage / "refs" / "main").write_text(commit)
    found = [
        Source(name, offline=True, cache_dir=tmp_path).find().path.name
        for name in ("bert-small", "google-bert/bert-small")
    ]
    assert found == ["1" * 40, "2" * 40]
