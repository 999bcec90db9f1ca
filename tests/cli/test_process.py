"""The command as a process: pipes that close, signals, streams as they come, what an import costs.

Most are forked (helpers/forked.py). Those are started that are about imports, or about how Python begins.
"""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from conftest import Made
from helpers.deadlines import SECONDS
from helpers.forked import MAIN, forked, run

COMMAND = [sys.executable, "-m", "bertcli"]
PIPE = subprocess.PIPE


@pytest.fixture
def model(made: Made) -> Path:
    return made(head="pretraining", seed=7)


def run_started(*arguments: str | Path, **environment: str) -> subprocess.CompletedProcess[bytes]:
    """Start `bertcli ARGUMENTS` with these variables, and run it to its end."""
    return subprocess.run(
        [*COMMAND, *map(str, arguments)],
        capture_output=True,
        env={**os.environ, **environment},
        check=False,
        timeout=SECONDS,
    )


@pytest.mark.parametrize(
    "code",
    [
        "import sys; print('tea'); sys.exit(3)",
        "import sys; print(sys.stdin.read(), sys.argv[1:], __name__); sys.exit('no')",
        "import os, signal; os.kill(os.getpid(), signal.SIGTERM)",
        "import os; os.close(1); print('tea')",
        "import threading, time; threading.Thread(target=lambda: (time.sleep(0.1), print('late'))).start()",
        "import sys; print(sys.stdout.name, sys.stdout.encoding, sys.stderr.line_buffering, sys.stdin.isatty())",
        "raise KeyboardInterrupt",
    ],
)
def test_process_that_is_forked_ends_as_one_that_is_started(code: str) -> None:
    """Else the others here would say little."""
    command = [sys.executable, "-c", code, "a", "b"]
    expected = subprocess.run(command, input=b"milk", capture_output=True, check=False, timeout=SECONDS)
    found = run("a", "b", code=code, stdin=b"milk")
    assert (found.returncode, found.stdout) == (expected.returncode, expected.stdout)
    assert found.stderr.splitlines()[-1:] == expected.stderr.splitlines()[-1:]


@pytest.mark.parametrize(("name", "value"), [("PYTHONUNBUFFERED", "1"), ("PYTHONIOENCODING", "ascii")])
def test_process_that_is_forked_opens_its_streams_as_one_that_is_started(name: str, value: str) -> None:
    code = """
import sys
for stream in (sys.stdin, sys.stdout, sys.stderr):
    print(stream.encoding, stream.errors, stream.line_buffering, stream.write_through, type(stream.buffer).__name__)
"""
    environment = {**os.environ, name: value}
    command = [sys.executable, "-c", code]
    expected = subprocess.run(command, input=b"", capture_output=True, env=environment, check=True, timeout=SECONDS)
    assert run(code=code, environment=environment).stdout == expected.stdout


def test_process_closed_pipe_ends_quietly(model: Path) -> None:
    arguments: list[str | Path] = ["encode", "-m", model, "--format", "jsonl"]
    with forked(*arguments, stdin=PIPE, stdout=PIPE, stderr=PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdin.write(b"tea\n" * 10_000)
        process.stdin.close()
        assert process.stdout.readline().startswith(b'{"index": 0, "text": "tea"')
        process.stdout.close()
        err = process.stderr.read()
    assert process.wait() == 0
    assert [line for line in err.splitlines() if not line.startswith(b"Note: ")] == []


@pytest.mark.parametrize("line", ["--help", "encode --help", "params --variant tiny"])
def test_process_pipe_that_nobody_reads_is_no_failure(line: str) -> None:
    with forked(*line.split(), code=f"import time; time.sleep(0.3); {MAIN}", stdout=PIPE, stderr=PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.wait() == 0


@pytest.mark.parametrize(("ending", "status"), [("0", 0), ("sys.exit(3)", 3), ("throw(KeyboardInterrupt)", 130)])
def test_process_closed_pipe_hides_no_other_end(ending: str, status: int) -> None:
    code = (
        "import sys\nimport bertcli.cli.app as application\nfrom bertcli.cli import main\n"
        "def throw(error):\n    raise error\n"
        f"application.application = lambda *_: lambda **_: (print('tea'), {ending})\nmain()\n"
    )
    reader, writer = os.pipe()
    os.close(reader)
    try:
        done = run(code=code, stdout=writer)
    finally:
        os.close(writer)
    assert (done.returncode, done.stderr) == (status, b"")


def test_process_streams_that_are_closed_are_done_without(model: Path, tmp_path: Path) -> None:
    target = tmp_path / "v.npy"
    for closed, more in (("sys.stdout", ["-o", str(target)]), ("sys.stderr", [])):
        code = f"import os, sys; os.close({closed}.fileno()); {closed} = None; {MAIN}"
        words = ["encode", "-m", str(model), "tea", *more]
        result = run(*words, code=code)
        assert result.returncode == 0, result.stderr
        assert b"Note" not in result.stdout
    assert target.exists()


def test_process_each_line_is_answered_before_the_next_is_written(model: Path) -> None:
    with forked("tokenize", "-m", model, "--format", "jsonl", stdin=PIPE, stdout=PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for word in (b"tea", b"milk"):
            process.stdin.write(word + b"\n")
            process.stdin.flush()
            assert word in process.stdout.readline()
        process.stdin.close()
        assert process.stdout.read() == b""


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_process_signals_leave_nothing_behind(number: signal.Signals, status: int, model: Path, tmp_path: Path) -> None:
    target = tmp_path / "v.npy"
    target.write_text("old", encoding="utf-8")
    with forked("encode", "-m", model, "-o", target, stdin=PIPE, stderr=PIPE) as process:
        assert process.stdin is not None
        assert process.stderr is not None
        process.stdin.write(b"tea\n")
        process.stdin.flush()
        deadline = time.monotonic() + SECONDS
        while len(list(tmp_path.iterdir())) < 2 and time.monotonic() < deadline:
            time.sleep(0.01)
        process.send_signal(number)
        err = process.stderr.read()
    assert process.wait() == status
    assert [line for line in err.splitlines() if not line.startswith(b"Note: ")] == []
    assert list(tmp_path.iterdir()) == [target]
    assert target.read_text(encoding="utf-8") == "old"


@pytest.mark.parametrize("place", ["bertcli.cli.app", "bertcli.tasks.running.batches"])
@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_process_signals_that_an_import_turns_into_an_error(
    number: signal.Signals, status: int, place: str, model: Path
) -> None:
    """Python 3.11 raises a RuntimeError where a signal comes while a class is made, C extensions an ImportError."""
    code = f"""
import builtins, os, signal, sys
real = builtins.__import__

def interrupted(name, *others):
    if name != {place!r}:
        return real(name, *others)
    try:
        os.kill(os.getpid(), signal.{number.name})
    except BaseException:
        raise RuntimeError("Error calling __set_name__") from None

builtins.__import__ = interrupted
{MAIN}
"""
    words = ["encode", "-m", str(model), "tea"]
    done = subprocess.run([sys.executable, "-c", code, *words], capture_output=True, check=False, timeout=SECONDS)
    assert (done.returncode, done.stdout) == (status, b"")
    assert b"rror" not in done.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no device that is always full")
@pytest.mark.parametrize(
    ("line", "unbuffered"),
    [
        ("tokenize -m MODEL tea --format table", ""),
        ("tokenize -m MODEL tea --format json", ""),
        ("tokenize -m MODEL tea --format jsonl", ""),
        ("--help", ""),
        ("--help", "1"),
    ],
)
def test_process_full_standard_output(line: str, unbuffered: str, model: Path) -> None:
    words = line.replace("MODEL", str(model)).split()
    with open("/dev/full", "wb") as full:
        result = run(*words, stdout=full, environment={**os.environ, "PYTHONUNBUFFERED": unbuffered})
    assert result.returncode == 1
    assert result.stderr == b"Error: No space left on device: while writing the result.\n"


@pytest.mark.parametrize(
    ("line", "status", "unbuffered"),
    [
        ("score -m /nowhere tea", 1, ""),
        ("score --nope", 2, ""),
        ("--help", 0, ""),
        ("tokenize tea", 0, "1"),
    ],
)
def test_process_status_is_told_when_nobody_listens(line: str, status: int, unbuffered: str) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    try:
        for stdout in (writer, subprocess.DEVNULL):
            environment = {**os.environ, "PYTHONUNBUFFERED": unbuffered}
            done = run(*line.split(), stdout=stdout, stderr=writer, environment=environment)
            assert done.returncode == status
    finally:
        os.close(writer)


@pytest.mark.parametrize("line", ["--help", "--version", "encode --help", "classify --format x", "--show-completion"])
def test_process_help_loads_nothing_heavy(line: str) -> None:
    code = (
        "import sys\nfrom bertcli.cli import main\nsys.argv = ['bertcli', *sys.argv[1:]]\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\n"
        "heavy = {'numpy', 'tokenizers', 'huggingface_hub', 'safetensors'} & set(sys.modules)\n"
        "sys.exit(f'loaded: {heavy}' if heavy else 0)\n"
    )
    result = subprocess.run(
        [sys.executable, "-c", code, *line.split()], capture_output=True, check=False, timeout=SECONDS
    )
    assert result.returncode == 0, result.stderr


def test_process_module_and_version() -> None:
    import bertcli

    result = run_started("--version")
    assert (result.returncode, result.stdout, result.stderr) == (0, f"bertcli {bertcli.__version__}\n".encode(), b"")


def test_process_completion_offers_commands_and_options() -> None:
    for words, position, expected in (
        ("bertcli fill", "1", b"fill-mask"),
        ("bertcli encode --pool", "2", b"--pooling"),
        ("bertcli encode --engine o", "3", b"onnx\nonnx-int8"),
        ("bertcli params --variant base-c", "3", b"base-cased\nbase-chinese"),
    ):
        asked = {"_BERTCLI_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": position}
        result = run(environment={**os.environ, **asked})
        assert expected in result.stdout


def test_process_output_that_is_not_utf8_still_takes_any_text(model: Path) -> None:
    for encoding in ("ascii", "latin-1"):
        environment = {**os.environ, "PYTHONIOENCODING": encoding}
        table = run("tokenize", "-m", model, "中国 😀", environment=environment)
        assert table.returncode == 0, table.stderr
        lines = run("tokenize", "-m", model, "中国 😀", "--format", "jsonl", environment=environment)
        assert "中国 😀".encode() in lines.stdout


def test_process_threads_are_set_before_numpy_is_loaded(model: Path) -> None:
    counts = "from bertcli.engine import blas, threads; print(blas.threads(), threads.thread_count())"
    code = f"try:\n    {MAIN}\nfinally:\n    {counts}"
    for number in ("1", "2"):
        arguments = ["score", "-m", str(model), "tea", "--format", "jsonl", "--threads", number]
        result = subprocess.run(
            [sys.executable, "-c", code, *arguments], capture_output=True, check=False, timeout=SECONDS
        )
        assert result.returncode == 0, result.stderr
        record, counts = result.stdout.decode().splitlines()
        assert json.loads(record)["text"] == "tea"
        assert counts in (f"{number} {number}", f"None {number}")  # None: a library of products that does not say


@pytest.mark.parametrize("form", ["table", "json", "jsonl"])
def test_process_result_for_a_closed_stream_is_an_error(made: Made, form: str) -> None:
    words = ["bertcli", "tokenize", "-m", str(made()), "tea", "--format", form]
    code = f"import os, sys; os.close(1); sys.stdout = None; sys.argv = {words!r}; from bertcli.cli import main; main()"
    done = run(code=code)
    assert done.returncode == 1
    assert b"Error: " in done.stderr
    assert b"Traceback" not in done.stderr


def test_process_loads_only_the_command_that_is_named() -> None:
    code = (
        "import sys; from bertcli.cli.app import application; application(*sys.argv[1:])\n"
        "print(*sorted(name for name in sys.modules if name in "
        "('bertcli.wings.evaluate.command', 'bertcli.cli.info', 'bertcli.cli.trace')))"
    )
    every = "bertcli.cli.info bertcli.cli.trace bertcli.wings.evaluate.command"
    for command, loaded in (("trace", "bertcli.cli.trace"), ("fill-mask", ""), ("fillmask", every), ("--help", "")):
        done = subprocess.run([sys.executable, "-c", code, command], capture_output=True, check=True, timeout=SECONDS)
        assert done.stdout.decode().strip() == loaded


def test_process_help_without_the_options_of_commands_is_that_with_them() -> None:
    code = "import sys; from bertcli.cli.app import application; application(*sys.argv[1:])(['--help'])"
    pages = {run(*word, code=code).stdout for word in ([], ["-h"], ["--help"])}
    assert len(pages) == 1
    assert b"Count parameters module by module, as Keras' summary does." in pages.pop()


def test_process_searches_for_no_garbage_while_it_begins_and_ends() -> None:
    code = (
        "import gc, sys; from bertcli.cli import main\n"
        "before = gc.get_stats()[0]['collections']\n"
        "try: main()\n"
        "finally: print(gc.get_stats()[0]['collections'] - before, gc.get_freeze_count() > 0, file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code, "--help"], capture_output=True, check=True, timeout=SECONDS)
    assert done.stderr.split() == [b"0", b"True"]


def test_process_loads_only_the_task_of_its_command_and_no_network_of_a_kind() -> None:
    code = (
        "import sys; sys.argv[1:] = [*sys.argv[1:], '--format', 'jsonl']; from bertcli.cli import main\n"
        "try: main()\n"
        "finally: print(*sorted(name[14:] for name in sys.modules if name in "
        "{f'bertcli.tasks.{part}{task}' for part in ('', 'compute.') for task in ('encode', 'fill_mask', 'tag')} "
        "or name[:14] in ('bertcli.kinds.', 'bertcli.wings.') "
        "and name.rpartition('.')[2] in ('family', 'network', 'on_backbone', 'ops', 'weights')))"
    )
    for command, text, task in (("fill-mask", "Hot [MASK].", "fill_mask"), ("encode", "Hot tea.", "encode")):
        words = [sys.executable, "-c", code, command, text]
        done = subprocess.run(words, capture_output=True, check=False, timeout=SECONDS)
        assert done.stdout.decode().splitlines()[-1].split() == [f"compute.{task}", task]
