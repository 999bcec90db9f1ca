"""Whatever happens between any two writes, `--resume` makes of it what an unbroken run gives, byte for byte."""

import json
import os
import random
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from conftest import Made
from helpers.batches import compute_together
from helpers.checkpoint_files import Sentence
from helpers.checkpoints import make
from helpers.crashes import crashing, full_disk
from helpers.deadlines import started
from helpers.json_files import write_json, write_json_lines
from helpers.late_folders import write_late
from helpers.rerankers import PUBLISHED, write_reranker
from helpers.terminal import bertcli, continued, wrong_usage

from bertcli.files.write import resumable_output
from bertcli.files.write.resumable_output import ResumableOutput
from bertcli.tasks.running.batches import BATCH_TOKENS

WORDS = ["the", "cat", "sat", "on", "a", "mat", "and", "drank", "hot", "tea", "with", "[MASK]", "while", "rain"]
FORMS = {
    "npy": ["encode"],
    "npz": ["encode", "--pooling", "none", "--dtype", "int8"],
    "safetensors": ["encode", "--pooling", "none"],
    "parquet": ["encode", "--id-column", "id", "--dtype", "int8"],
    "json": ["encode", "--keep-going"],
    "jsonl": ["fill-mask", "--keep-going", "--top-k", "2"],
}


@pytest.fixture
def model(made: Made) -> Path:
    return made(head="pretraining", seed=7)


@pytest.fixture(autouse=True)
def eager(monkeypatch: pytest.MonkeyPatch) -> None:
    """Windows are small, and each goes to the disk as a segment."""
    compute_together(20, monkeypatch)
    monkeypatch.setattr(resumable_output, "SHORTEST_SEGMENT", 0.0)
    monkeypatch.setattr(resumable_output, "LONGEST_SEGMENT", 0.0)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    choose = random.Random(0)
    path = tmp_path / "in.jsonl"
    texts = [" ".join(choose.choices(WORDS, k=choose.randint(0, 30))) for _ in range(24)]
    rows = ({"id": i, "text": text, "title": "tea"} for i, text in enumerate(texts))
    write_json_lines(path, rows)
    return path


def changed(arguments: list[str | Path], option: str, value: str | Path) -> list[str | Path]:
    """The same with another value for an option, which is given once."""
    place = arguments.index(option) if option in arguments else len(arguments)
    return [*arguments[:place], option, value, *arguments[place + 2 :]]


def command(form: str, model: Path, source: Path, target: Path, *more: str) -> list[str | Path]:
    if form == "parquet":
        pytest.importorskip("pyarrow")
    return [*FORMS[form], "-m", model, "-i", source, "-o", target, "--resume", *more]


def leftovers(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if path.name.startswith("."))


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_resume_has_something_to_crash(model: Path, source: Path, tmp_path: Path) -> None:
    for form in FORMS:
        with crashing(None) as disk:
            bertcli(*command(form, model, source, tmp_path / f"v.{form}"))
        assert disk.calls > 40, form
    assert leftovers(tmp_path) == []


@pytest.mark.parametrize("power_cut", [False, True], ids=["kill", "power cut"])
@pytest.mark.parametrize("form", FORMS)
def test_resume_after_a_crash_between_any_two_writes(
    form: str, power_cut: bool, model: Path, source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    compute_together(60, monkeypatch)  # seven windows
    whole, target = tmp_path / f"whole.{form}", tmp_path / f"v.{form}"
    arguments = command(form, model, source, target)
    with crashing(None) as disk:
        first = bertcli(*changed(arguments, "-o", whole))
    expected = whole.read_bytes()
    step = 1 if form == "npy" and not power_cut else 11
    went_on = 0
    for last in [*range(len(form), disk.calls - 5, step), *range(disk.calls - 5, disk.calls)]:
        target.write_bytes(b"old")
        with crashing(last, power_cut):
            bertcli(*arguments)
        assert target.read_bytes() in (b"old", expected), last
        again = bertcli(*arguments)
        went_on += "continuing an unfinished run of" in again.err
        assert again.status == first.status, last
        assert target.read_bytes() == expected, last
        assert leftovers(tmp_path) == []
    assert went_on > 1  # and did not begin anew each time


def test_resume_after_crash_after_crash(model: Path, source: Path, tmp_path: Path) -> None:
    target = tmp_path / "v.safetensors"
    arguments = command("safetensors", model, source, target)
    bertcli(*arguments)
    expected = target.read_bytes()
    choose = random.Random(1)
    for _ in range(3):
        target.unlink()
        for _ in range(3):
            with crashing(choose.randint(16, 24), power_cut=choose.random() < 0.5):
                bertcli(*arguments)
        continued(*arguments)
        assert target.read_bytes() == expected


def unfinished(arguments: list[str | Path]) -> None:
    with crashing(36):
        bertcli(*arguments)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("--pooling", "cls"), "--pooling was auto and is now cls"),
        (("--max-length", "9"), "--max-length was not given and is now 9"),
        (("--column", "title"), "--column was not given and is now title"),
    ],
)
def test_resume_with_other_options_is_refused(
    change: tuple[str, str], message: str, model: Path, source: Path, tmp_path: Path
) -> None:
    target = tmp_path / "v.npy"
    arguments = command("npy", model, source, target)
    unfinished(arguments)
    before = contents(tmp_path / ".v.npy.parts")
    other = changed(arguments, *change)
    assert f"Cannot resume {target}: {message}; restore that" in bertcli(*other).error
    assert contents(tmp_path / ".v.npy.parts") == before
    assert "000000.npz" in before
    assert not target.exists()
    assert bertcli(*arguments).status == 0


def test_resume_with_another_input_is_refused(model: Path, source: Path, tmp_path: Path) -> None:
    arguments = command("npy", model, source, tmp_path / "v.npy")
    unfinished(arguments)
    text = source.read_text(encoding="utf-8")
    lines = text.splitlines(keepends=True)
    for changed in (text + lines[0], "".join(lines[:-1]), text.replace("23", "32")):
        source.write_text(changed, encoding="utf-8")
        assert "the input has changed" in bertcli(*arguments).error
    source.write_text(text, encoding="utf-8")
    assert bertcli(*arguments).status == 0


def test_resume_with_another_model_is_refused(model: Path, made: Made, source: Path, tmp_path: Path) -> None:
    arguments = command("npy", model, source, tmp_path / "v.npy")
    unfinished(arguments)
    assert "the model has changed" in bertcli(*changed(arguments, "-m", made(head="pretraining", seed=8))).error


def stanford(folder: Path) -> tuple[list[str], Path]:
    """A command on a model whose settings are in a file without a usual ending, and that file."""
    write_late(folder, "stanford")
    return ["encode", "--pooling", "none", "--prompt-name", "document"], folder / "artifact.metadata"


def templated(folder: Path) -> tuple[list[str], Path]:
    """The same of a model that puts pairs of texts into a chat template."""
    write_reranker(folder, template=PUBLISHED, head="classifier", in_file=True, limit=250)
    return ["classify", "--text-pair", "tea"], folder / "chat_template.jinja"


def with_settings_of_a_module(folder: Path) -> tuple[list[str], Path]:
    """The same of a sentence model, one of whose modules has a folder of its own."""
    make(folder, sentence=Sentence(("mean",)))
    return ["encode"], folder / "1_Pooling" / "config.json"


@pytest.mark.parametrize("write", [stanford, templated, with_settings_of_a_module])
def test_resume_after_a_change_of_any_file_that_was_read_is_refused(
    write: Callable[[Path], tuple[list[str], Path]], source: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "model"
    words, file = write(folder)
    ending = "npz" if words[0] == "encode" else "jsonl"
    target = tmp_path / f"v.{ending}"
    arguments: list[str | Path] = [*words, "-m", folder, "-i", source, "-o", target, "--resume"]
    with crashing(24):
        bertcli(*arguments)
    contents = file.read_bytes()
    (folder / "README.md").write_text("which nothing reads", encoding="utf-8")
    file.write_bytes(contents + b" ")
    assert "the model has changed; restore that" in bertcli(*arguments).error
    file.write_bytes(contents)
    done = bertcli(*arguments)
    assert (done.status, "there is no progress" in done.err) == (0, False), done.err


def test_resume_of_a_finished_run_begins_anew_where_a_setting_of_the_model_changed(
    source: Path, tmp_path: Path
) -> None:
    words, file = stanford(tmp_path / "model")
    arguments: list[str | Path] = [*words, "-m", tmp_path / "model", "-i", source, "-o", tmp_path / "v.npz", "--resume"]
    bertcli(*arguments)
    first = np.load(tmp_path / "v.npz")["embeddings"]
    settings = json.loads(file.read_bytes())
    write_json(file, {**settings, "doc_maxlen": 5})
    assert bertcli(*arguments).status == 0
    assert len(np.load(tmp_path / "v.npz")["embeddings"]) < len(first)


def test_resume_with_another_numpy_is_refused(
    model: Path, source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments = command("npy", model, source, tmp_path / "v.npy")
    unfinished(arguments)
    now = np.__version__
    monkeypatch.setattr(np, "__version__", "9.8.7")
    assert f"numpy was {now} and is now 9.8.7; restore that" in bertcli(*arguments).error


def test_resume_left_out_throws_no_finished_texts_away(model: Path, source: Path, tmp_path: Path) -> None:
    whole, target = tmp_path / "whole.npy", tmp_path / "v.npy"
    bertcli(*command("npy", model, source, whole))
    arguments = command("npy", model, source, target)
    unfinished(arguments)
    done = len([name for name in os.listdir(tmp_path / ".v.npy.parts") if name.endswith(".npz")])
    assert done > 0
    arguments.remove("--resume")
    with crashing(20):
        bertcli(*arguments)  # which is broken off, too, after less than ten seconds
    result = bertcli(*arguments)
    assert re.search(rf"Note: continuing an unfinished run of {target}, of which \d+ texts are done\.", result.err)
    assert target.read_bytes() == whole.read_bytes()
    assert leftovers(tmp_path) == []
    assert "continuing" not in bertcli(*arguments).err


def test_resume_left_out_starts_over_with_other_options(model: Path, source: Path, tmp_path: Path) -> None:
    arguments = command("npy", model, source, tmp_path / "v.npy")
    unfinished(arguments)
    arguments.remove("--resume")
    note = f"Note: discarding the progress of an unfinished run of {tmp_path / 'v.npy'}: --dtype was float32"
    assert note in bertcli(*arguments, "--dtype", "float16").err
    assert leftovers(tmp_path) == []


def test_resume_of_nothing_says_so(model: Path, source: Path, tmp_path: Path) -> None:
    arguments = command("npy", model, source, tmp_path / "v.npy")
    note = f"Note: there is no progress of an earlier run of {tmp_path / 'v.npy'}: starting at the beginning."
    assert note in bertcli(*arguments).err.splitlines()
    (tmp_path / "v.npy").unlink()
    with crashing(28):
        bertcli(*arguments)
    assert "there is no progress" not in continued(*arguments).err


@pytest.mark.parametrize("resume", [True, False])
def test_resume_beside_another_process_is_refused(resume: bool, model: Path, source: Path, tmp_path: Path) -> None:
    target = tmp_path / "v.npy"
    arguments = command("npy", model, source, target)
    if not resume:
        arguments.remove("--resume")
    with ResumableOutput(str(target)):
        message = bertcli(*arguments).error
        link = tmp_path / "link.npy"
        link.symlink_to(target)
        assert "is writing" in bertcli(*changed(arguments, "-o", link)).error
    assert f"Process {os.getpid()} is writing {target} right now" in message
    assert leftovers(tmp_path) == []
    assert bertcli(*arguments).status == 0


def test_resume_of_a_pipe_is_refused(model: Path, tmp_path: Path) -> None:
    arguments = ["encode", "-m", str(model), "--resume"]
    assert "A pipe cannot be read a second time" in bertcli(*arguments, "-o", tmp_path / "v.npy", stdin="tea\n").error
    wrong_usage(*arguments, "tea", why="--resume needs --output: only a result in a file can be continued.")
    assert bertcli(*arguments, "tea", "-o", tmp_path / "v.npy").status == 0
    assert leftovers(tmp_path) == []


def test_resume_goes_on_after_the_shards_that_are_there(model: Path, source: Path, tmp_path: Path) -> None:
    target = tmp_path / "v.npy"
    arguments = command("npy", model, source, target)
    bertcli(*arguments)
    expected = target.read_bytes()
    target.unlink()
    with crashing(52):
        bertcli(*arguments)
    shard = tmp_path / ".v.npy.parts" / "000001.npz"
    assert shard.with_name("000002.npz").exists()
    shard.unlink()
    assert continued(*arguments).status == 0
    assert target.read_bytes() == expected
    assert leftovers(tmp_path) == []


def test_resume_after_a_full_disk(model: Path, source: Path, tmp_path: Path) -> None:
    target = tmp_path / "v.jsonl"
    arguments = ["encode", *command("jsonl", model, source, target)[4:]]
    with full_disk(4000):
        result = bertcli(*arguments)
    assert "No space left on device" in result.error
    assert "texts are done: repeat the command to continue" in result.err
    assert not target.exists()
    assert continued(*arguments).status == 0
    again = target.read_bytes()
    bertcli(*arguments)
    assert target.read_bytes() == again
    assert len(again.splitlines()) == 24


@pytest.mark.parametrize("ending", ["jsonl", "csv", "parquet"])
def test_resume_may_begin_to_keep_going(
    ending: str, made: Made, source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if ending == "parquet":
        pytest.importorskip("pyarrow")
    whole, target = tmp_path / f"whole.{ending}", tmp_path / f"v.{ending}"
    texts = [*("tea " * (i % 9) for i in range(24)), "tea " * 300]  # the last is too long
    write_json_lines(source, ({"id": "x", "text": text} for text in texts))
    model = made(head="classifier", seed=7)
    arguments: list[str | Path] = ["classify", "-m", model, "-i", source, "--resume"]
    monkeypatch.setattr("bertcli.tokens.tokenizer.LONGEST", 1000)  # characters
    assert bertcli(*arguments, "-o", whole, "--keep-going").status == 1
    assert "line 25" in bertcli(*arguments, "-o", target).error
    assert leftovers(tmp_path) != []
    assert continued(*arguments, "-o", target, "--keep-going").status == 1
    assert target.read_bytes() == whole.read_bytes()


STOPS_AT_ITS_FIRST_SHARD = """
import os, signal
from bertcli.cli import main
from bertcli.files.write import resumable_output

def write_and_stop(self):
    resumable_output.ResumableOutput._write_segment = write
    write(self)
    os.kill(os.getpid(), signal.SIGSTOP)

resumable_output.SHORTEST_SEGMENT = resumable_output.LONGEST_SEGMENT = 0.0
write, resumable_output.ResumableOutput._write_segment = resumable_output.ResumableOutput._write_segment, write_and_stop
main()
"""


def test_resume_after_ctrl_c(model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compute_together(BATCH_TOKENS, monkeypatch)  # as in the process that is stopped
    source, target = tmp_path / "in.txt", tmp_path / "v.npy"
    source.write_text("She drank hot tea with milk.\n" * 5_000, encoding="utf-8")
    command = ["encode", "-m", str(model), "-i", str(source), "-o", str(target), "--resume"]
    arguments = [sys.executable, "-c", STOPS_AT_ITS_FIRST_SHARD, *command]
    with started(arguments, stderr=subprocess.PIPE) as process:
        assert process.stderr is not None
        assert os.WIFSTOPPED(os.waitpid(process.pid, os.WUNTRACED)[1])
        assert f"Process {process.pid} is writing {target} right now" in bertcli(*command).error
        process.send_signal(signal.SIGINT)
        process.send_signal(signal.SIGCONT)
        err = process.stderr.read().decode()
    assert process.returncode == 130
    assert "texts are done: repeat the command to continue" in err
    assert not target.exists()
    assert continued(*command).status == 0
    assert len(np.load(target)) == 5_000


@pytest.mark.parametrize(
    ("ending", "words", "step"),
    [
        ("csv", "classify --id-column id --keep-going", 17),
        ("parquet", "classify --id-column id --keep-going", 17),
        ("npz", "encode --chunk=8,2", 37),
        ("safetensors", "encode --chunk=8,2", 37),
        ("parquet", "encode --chunk=8,2", 37),
        ("npz", "encode --sparse", 37),
        ("parquet", "encode --sparse", 37),
    ],
)
def test_resume_goes_on_with_flat_rows_and_several_arrays(
    ending: str, words: str, step: int, model: Path, made: Made, source: Path, tmp_path: Path
) -> None:
    if ending == "parquet":
        pytest.importorskip("pyarrow")
    whole, target = tmp_path / f"whole.{ending}", tmp_path / f"v.{ending}"
    opened = made(head="classifier", seed=7) if words.startswith("classify") else model
    arguments: list[str | Path] = [*words.split(), "-m", opened, "-i", source, "--resume", "-o"]
    with crashing(None) as disk:
        assert bertcli(*arguments, whole).status == 0
    went_on = 0
    for last in range(5, disk.calls, step):
        target.unlink(missing_ok=True)
        with crashing(last):
            bertcli(*arguments, target)
        again = bertcli(*arguments, target)
        went_on += "continuing an unfinished run of" in again.err
        assert again.status == 0
        assert target.read_bytes() == whole.read_bytes()
        assert leftovers(tmp_path) == []
    assert went_on > 0


def test_resume_of_a_finished_run_computes_it_again(model: Path, source: Path, tmp_path: Path) -> None:
    target = tmp_path / "v.npy"
    run = command("npy", model, source, target)
    bertcli(*run)
    expected = target.read_bytes()
    target.write_bytes(b"other")
    again = bertcli(*run)
    assert f"Note: there is no progress of an earlier run of {target}: starting at the beginning." in again.err
    assert (again.status, target.read_bytes()) == (0, expected)


def test_resume_with_another_number_of_threads_is_refused(model: Path, source: Path, tmp_path: Path) -> None:
    """It can change the last bit of a sum."""
    arguments = [*command("npy", model, source, tmp_path / "v.npy"), "--threads"]
    unfinished([*arguments, "1"])
    assert "--threads was 1 and is now 2; restore that" in bertcli(*arguments, "2").error


@pytest.mark.parametrize(
    "words",
    [("encode", "tea", "-o", "v.npy"), ("encode", "tea", "-o", "v.jsonl"), ("params", "-o", "p.json"),
     ("search", "tea", "-i", "notes.txt", "--index", "notes.index", "-o", "hits.jsonl"),
     ("export", "-o", "graph.onnx"), ("export", "-o", "folder")],
    ids=" ".join,
)  # fmt: skip
def test_a_result_is_on_the_disk_before_it_has_its_name_and_its_name_at_the_end(
    words: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else a power cut could leave an empty file under it, or none although the command said that it was written."""
    monkeypatch.chdir(tmp_path)
    Path("notes.txt").write_text("A pot of tea.\n")
    synced, named, fsync, replace = set(), [], os.fsync, os.replace
    renamed_in: dict[int, str] = {}  # folders that are not synced since

    def noted_sync(number: int) -> None:
        synced.add(os.fstat(number).st_ino)
        renamed_in.pop(os.fstat(number).st_ino, None)
        fsync(number)

    def noted_replace(source: str | Path, target: str | Path) -> None:
        whole = Path(target).resolve()
        if whole.is_relative_to(tmp_path):
            named.append(whole.name)
            assert Path(source).stat().st_ino in synced, target
            renamed_in[whole.parent.stat().st_ino] = whole.name
        replace(source, target)

    monkeypatch.setattr(os, "fsync", noted_sync)
    monkeypatch.setattr(os, "replace", noted_replace)
    assert bertcli(*words, "-m", "bert-mini-sentence").status == 0
    assert {path.name for path in tmp_path.rglob("*") if path.is_file()} <= {*named, "notes.txt"}
    # Segments are in a folder that is gone.
    left = {path.stat().st_ino for path in (tmp_path, *tmp_path.rglob("*"))}
    assert {number: name for number, name in renamed_in.items() if number in left} == {}
