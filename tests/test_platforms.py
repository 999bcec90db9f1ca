"""The commands as on Windows (helpers/windows): the same results and, byte for byte, the same files as on Linux."""

import http.client
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path

import pytest
from helpers.little_doctor import MEASURE_LITTLE

PLAYED = Path(__file__).parent / "helpers" / "windows"
TEXTS = ["Good hot tea.", "Bad cold tea.", "The film was a joy.", "She waited for hours.", "Nobody laughed."]
BETWEEN = "\x1e"
RUN_EACH = f"""
import json, os, sys
from bertcli.cli.app import application
from bertcli.report.terminal import take_any_text
from bertcli.tasks.running import run
take_any_text()
{MEASURE_LITTLE}
seconds = run.SECONDS_BEFORE_WORKERS
for folder, commands in json.loads(sys.argv[1]).items():
    os.chdir(folder)
    run.SECONDS_BEFORE_WORKERS = 0.0 if folder == "workers" else seconds
    for words in commands:
        print(end={BETWEEN!r}, flush=True)
        try:
            application(words[0])(words, prog_name="bertcli")
        except SystemExit as ended:
            assert not ended.code, words
    os.chdir("..")
"""
LABELS = ["positive", "negative", "positive", "negative", "negative"]
NUMBERS = b"0123456789.,e+-"  # of which the page of a pass holds measured times
# When a record was made, and the digest of a file of texts, whose lines end otherwise.
VARYING = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d)?Z?|\b[0-9a-f]{8,32}\b")
VARYING_BYTES = re.compile(VARYING.pattern.encode())


class System:
    """A folder, those in it with inputs as a system's programs write them, and bertcli as it runs there."""

    def __init__(self, folder: Path, windows: bool) -> None:
        self.folder, self.windows = folder, windows
        folder.mkdir()
        self.environment = {
            **os.environ,
            "OPENBLAS_NUM_THREADS": "1",
            "BERTCLI_CACHE": str(folder / "cache"),
            "PYTHONWARNINGS": "error",
        }
        self.environment.pop("COLUMNS", None)  # pytest-xdist sets it; then wide tables are turned, without a rule
        if windows:
            self.environment |= {"BERTCLI_PLAYED": str(folder), "PYTHONPATH": str(PLAYED), "PYTHONIOENCODING": "cp1252"}

    def add_folder(self, name: str) -> None:
        """Make a folder with inputs."""
        folder = self.folder / name
        (folder / "made").mkdir(parents=True)
        inputs = {
            "texts.txt": TEXTS,
            "texts.many.txt": TEXTS * 100,
            "texts.csv": ["text,label", *(f"{text},{label}" for text, label in zip(TEXTS, LABELS, strict=True))],
            "texts.jsonl": [json.dumps({"text": text}) for text in TEXTS],
        }
        end = "\r\n" if self.windows else "\n"
        for file, lines in inputs.items():
            (folder / file).write_bytes("".join(line + end for line in lines).encode())

    def command(self, *arguments: str) -> list[str]:
        return [sys.executable, "-m", "bertcli", *arguments]

    def run_each(self, commands: Mapping[str, Sequence[Sequence[str]]]) -> list[str]:
        """What each command of each folder prints, all of one process; they must succeed. JSON is UTF-8 everywhere."""
        _, *parts = self.output([sys.executable, "-c", RUN_EACH, json.dumps(commands)]).split(BETWEEN.encode())
        each = [words for of_folder in commands.values() for words in of_folder]
        return [self.decoded(part, "json" in words) for part, words in zip(parts, each, strict=True)]

    def printed(self, command: Sequence[str]) -> str:
        return self.decoded(self.output(command))

    def output(self, command: Sequence[str]) -> bytes:
        """What a program writes to stdout; it must succeed."""
        done = subprocess.run(command, cwd=self.folder, env=self.environment, capture_output=True, check=False)
        assert done.returncode == 0, done.stderr.decode(errors="replace")
        assert done.stderr.count(b"\r\n") == (done.stderr.count(b"\n") if self.windows else 0)
        return done.stdout

    def decoded(self, output: bytes, as_json: bool = False) -> str:
        """As text, with lines that end in a line feed."""
        return output.decode("cp1252" if self.windows and not as_json else "utf-8").replace("\r\n", "\n")

    @property
    def files(self) -> dict[str, bytes]:
        """What lies in the folder, but for inputs and the cache."""
        found = (path for path in self.folder.rglob("*") if path.is_file())
        names = {path.relative_to(self.folder).as_posix(): path for path in found}
        return {
            name: path.read_bytes().translate(None, NUMBERS if path.name == "pass.html" else b"")
            for name, path in names.items()
            if not re.match("cache|[^/]*/texts[.]", name)
        }


@pytest.fixture
def systems(tmp_path: Path) -> tuple[System, System]:
    return System(tmp_path / "linux", windows=False), System(tmp_path / "windows", windows=True)


ASKED = """
import os, signal

def refused(call, *values):
    try:
        call(*values)
    except (OSError, ImportError) as error:
        return type(error).__name__

held = open("held", "w")
held.write("1\\n")
held.flush()
open("new", "wb").close()
print(hasattr(os, "register_at_fork"), hasattr(signal, "SIGHUP"), refused(__import__, "fcntl", globals()),
      refused(os.open, ".", os.O_RDONLY), refused(os.replace, "new", "held"), refused(os.unlink, "held"),
      refused(os.stat, "/proc/self/maps"), os.path.getsize("held"))
"""


def test_the_play_takes_away_what_windows_lacks(tmp_path: Path) -> None:
    """Else all other tests here would say nothing."""
    windows = System(tmp_path / "windows", windows=True)
    code = f"exec(compile({ASKED!r}, 'bertcli', 'exec'), {{'__name__': 'bertcli.played'}})"
    denied = "PermissionError"
    expected = ["False", "False", "ModuleNotFoundError", denied, denied, denied, "FileNotFoundError", "3"]
    assert windows.printed([sys.executable, "-W", "ignore", "-c", code]).split() == expected


FIRST_RUNS = {
    "encode": [
        ["encode", "-i", "texts.txt", "-o", "v.npy", "--resume"],
        ["encode", "-i", "texts.txt", "-o", "v.npy", "--resume"],
        ["search", "tea", "-i", "v.npy", "-i", "texts.txt", "--format", "json"],
        ["encode", "-i", "texts.csv", "-o", "v.npy", "--dtype", "float16"],
        ["search", "tea", "-i", "v.npy", "--format", "json"],
    ],
    "encode into the other formats": [
        ["encode", "-i", "texts.csv", "-o", "v.npz"],
        ["encode", "-i", "texts.jsonl", "-o", "v.safetensors", "--dtype", "int8"],
        ["encode", "-i", "texts.txt", "-o", "v.parquet"],
        ["encode", "-i", "texts.txt", "-o", "v.jsonl"],
        ["search", "tea", "-i", "v.npz", "--format", "json"],
        ["search", "tea", "-i", "v.safetensors", "--format", "json"],
        ["search", "tea", "-i", "v.parquet", "--format", "json"],
    ],
    "workers": [["encode", "-i", "texts.many.txt", "-o", "v.npy", "--threads", "16"]],
    "run": [
        ["fill-mask", "She poured a cup of hot [MASK].", "--format", "json"],
        ["classify", "-i", "texts.csv", "-o", "labels.csv"],
        ["classify", "-i", "texts.txt", "-o", "labels.json"],
        ["tokenize", "Good hot tea.", "--format", "json"],
        ["evaluate", "texts.csv", "--format", "json"],
        ["evaluate", "texts.csv", "-o", "judged.html"],
        ["params", "--variant", "tiny", "--format", "json"],
    ],
    "pages": [
        ["trace", "Good hot tea.", "-o", "pass.html"],
        ["explain", "The film was a joy.", "-o", "words.html"],
        ["explain", "The film was a joy.", "-o", "words.json"],
    ],
    "onnx": [
        ["export", "-o", "made/model.onnx"],
        ["export", "-o", "made/model.onnx"],
        ["encode", "-i", "texts.txt", "-o", "v.npy", "--engine", "onnx"],
        ["encode", "-i", "texts.txt", "-o", "w.npy", "--engine", "onnx-int8"],
    ],
}


def test_windows_gives_what_linux_gives(systems: tuple[System, System]) -> None:
    """One process of each system runs them all: its start is most of the time."""
    linux, windows = systems
    runs = {name: commands for name, commands in FIRST_RUNS.items() if name != "onnx" or find_spec("onnxruntime")}
    for system in systems:
        for name in runs:
            system.add_folder(name)
    of_linux, of_windows = (system.run_each(runs) for system in systems)
    each = [words for commands in runs.values() for words in commands]
    for arguments, expected, printed in zip(each, of_linux, of_windows, strict=True):
        if "json" in arguments:
            assert VARYING.sub("", printed) == VARYING.sub("", expected)
        else:
            assert "�" not in printed
    assert windows.files.keys() == linux.files.keys()
    for file, content in linux.files.items():
        assert VARYING_BYTES.sub(b"", windows.files[file]) == VARYING_BYTES.sub(b"", content), file


@pytest.fixture
def served(systems: tuple[System, System]) -> Iterator[int]:
    _, windows = systems
    arguments = windows.command("serve", "--port", "0")
    with subprocess.Popen(arguments, cwd=windows.folder, env=windows.environment, stderr=subprocess.PIPE) as process:
        try:
            assert process.stderr is not None
            for line in process.stderr:
                if found := re.search(rb"http://127\.0\.0\.1:(\d+)", line):
                    yield int(found[1])
                    break
        finally:
            process.terminate()
            begun = time.monotonic()
            process.wait(30)
            assert time.monotonic() - begun < 20


def test_windows_serves_an_answer(served: int) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", served, timeout=60)
    connection.request(
        "POST", "/v1/embeddings", json.dumps({"input": "Hot tea."}), {"Content-Type": "application/json"}
    )
    answer = connection.getresponse()
    assert answer.status == 200
    assert len(json.loads(answer.read())["data"][0]["embedding"]) > 100
    connection.request("GET", "/metrics")
    metrics = connection.getresponse().read()
    connection.close()
    assert b"te_request_count" in metrics
    assert b"process_resident_memory_bytes" not in metrics  # Windows is not asked
