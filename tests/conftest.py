"""Fixtures every test may use. A folder here is for a room of bertcli/, and its files for that room's files, but for:

checkpoint  from a folder to a model: folder/, weights/ (CONTRIBUTING says where rooms without a folder here are tested)
browser     pages and figures in a browser
large       memory over growing files; no test
examples    programs and packages that tests run and install
reference   recorded numbers, and the scripts that record them
helpers     models, files and processes that tests make
bench       speed, beside other programs; no test
fuzz        hostile files, for as long as you like; no test
"""

import atexit
import gc
import os
import signal
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from typing import Any

import pytest
from helpers.browser import open_browser
from helpers.checkpoints import make
from hypothesis import HealthCheck, settings
from reference import view_cases

import bertcli
from bertcli.analysis.trace import passes
from bertcli.cli import COLLECT_AFTER
from bertcli.engine import blas
from bertcli.engine.threads import cores
from bertcli.model import Model
from bertcli.weights.tensors import StoredTensor

Made = Callable[..., Path]

if "BERTCLI_CACHE" not in os.environ:  # not the user's own; the processes of pytest-xdist have the same one
    os.environ["BERTCLI_CACHE"] = mkdtemp(prefix="bertcli-tests-")
    atexit.register(rmtree, os.environ["BERTCLI_CACHE"], ignore_errors=True)
os.environ.pop("PYTHONUNBUFFERED", None)  # most people's programs find out at their end what could not be written
for name in ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"):
    os.environ.pop(name, None)  # the Hub's client would not speak to a server on this machine either
os.environ["ORT_DISABLE_TELEMETRY"] = "1"  # tests import ONNX Runtime by themselves, too

# Background jobs of a script are started with Ctrl-C ignored, and processes started from here would inherit that.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# How long a case takes, or is made, says how busy the machine is, not whether the code is right. And a test says of the
# same code the same thing twice: new cases are for `tests/fuzz`, and for `pytest --hypothesis-profile=default`.
settings.register_profile("same", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("same")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, Any, Any]:
    """Nine thousand tests stay to the end: the garbage collector need not go through them again and again."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.collect()
        gc.freeze()
        gc.set_threshold(COLLECT_AFTER)  # as commands do
        gc.enable()


def pytest_report_header() -> str:
    """What computes the numbers of this run; test_same_vector.py says which libraries the promise was tested on."""
    import numpy as np  # after bertcli, which may choose the kernel, as for users

    library = np.show_config(mode="dicts")["Build Dependencies"]["blas"]
    used = f"{library['name']} {library['version']}, kernel {blas.kernel()}, threads {blas.threads()}"
    return f"numpy: {np.__version__} on {used}; cores: {cores()}"


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """The same at the end of a quiet run, which has no header."""
    if terminalreporter.verbosity < 0:
        terminalreporter.write_line(pytest_report_header())


@pytest.fixture(scope="session", autouse=True)
def no_waiting() -> Iterator[None]:
    """No test cuts the power, and no test needs the shortest time of many passes.

    That a file is synced before it is renamed is counted (helpers/crashes.py), not waited for.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda descriptor: None)
        patch.setattr(passes, "MOST_PASSES", 2)
        yield


@pytest.fixture(scope="session", autouse=True)
def converted_once() -> Iterator[None]:
    """The matrices of the bundled models, which are stored as halves, are converted once, not in each of the tests.

    They are read-only, and their files are those of the repository.
    """
    convert = StoredTensor.float32
    converted: dict[tuple[Path, str], Any] = {}

    def float32(tensor: StoredTensor) -> Any:
        if tensor.file.parent.parent.name != "sample_weights" or tensor.array.ndim != 2:
            return convert(tensor)
        key = tensor.file, tensor.name
        if key not in converted:
            converted[key] = convert(tensor)
        return converted[key]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(StoredTensor, "float32", float32)
        yield


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Made]:
    """`checkpoints.make` without a folder: the same keywords give the same folder, made once; for reading only.

    A test that wrote into one would change what others find there, or not, by the order in which they run.
    """
    root = tmp_path_factory.mktemp("checkpoints")
    folders: dict[str, Path] = {}
    files: dict[str, dict[str, int]] = {}

    def make_once(**keywords: Any) -> Path:
        key = repr(sorted(keywords.items()))
        if key not in folders:
            folders[key] = make(root / str(len(folders)), **keywords)
            files[key] = times_in(folders[key])
        return folders[key]

    yield make_once
    written = [key for key, folder in folders.items() if times_in(folder) != files[key]]
    assert not written, f"tests wrote into folders that are made once for all of them: {'; '.join(written)}"


def times_in(folder: Path) -> dict[str, int]:
    """When each file of a folder was written."""
    return {str(path.relative_to(folder)): path.stat().st_mtime_ns for path in folder.rglob("*") if path.is_file()}


@pytest.fixture
def few_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    """A probe's control task has two draws, not ten, which are half of its time: for tests that look at the rest."""
    from helpers.draws import FEW, draw  # of a wing, which may be gone

    draw(FEW, monkeypatch)


@pytest.fixture
def ten_draws(few_draws: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """As many draws as a probe has: for tests of the draws, in a file whose others have few."""
    from helpers.draws import ALL, draw

    draw(ALL, monkeypatch)


@pytest.fixture
def mlm(made: Made) -> Model:
    return bertcli.load(made(head="pretraining", seed=7))


@pytest.fixture
def classifier(made: Made) -> Model:
    return bertcli.load(made(head="classifier", id2label={0: "bad", 1: "good", 2: "so-so"}))


@pytest.fixture(scope="session")
def labels(made: Made) -> Model:
    """Of the models of views (reference/view_cases.py) that with labels."""
    return bertcli.load(made(**view_cases.LABELS))


@pytest.fixture(scope="session")
def masks(made: Made) -> Model:
    """That which fills masks."""
    return bertcli.load(made(**view_cases.MASKS))


@pytest.fixture(scope="session")
def vectors(made: Made) -> Model:
    """That without a head."""
    return bertcli.load(made(**view_cases.VECTORS))


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A real browser; tests that want one are skipped where there is none."""
    driver = open_browser(tmp_path_factory.mktemp("profile"))
    yield driver
    driver.quit()
