"""ONNX Runtime, opened: which devices it can use here, a file that runs on one of them, and graphs that are kept.

Graphs are made once and opened in place afterwards, under a folder that may be deleted at any time. Each model has a
folder, named after where its weights lie and the precision; in it is a folder for each graph, named after the weights,
the settings and the versions. When a graph is made, what else lies there for an hour or longer is removed: graphs of
earlier weights or versions, and what a killed process left. The graphs of other models stay.
"""

import hashlib
import os
import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from tempfile import mkdtemp
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bertcli import platforms
from bertcli.engine.packing import Packed
from bertcli.engine.threads import thread_count
from bertcli.errors import BertcliError, first_line, quoted
from bertcli.onnx.graph import IDS, INPUTS, MASK, SEGMENTS
from bertcli.tracing.dispatch import Array, Integers

PROVIDER = "ExecutionProvider"  # ends the names of ONNX Runtime's devices
MOST_TOKENS = 2048  # of a run of several sentences: with more, activations leave the caches and nothing is gained
OVERHEAD = 16  # tokens that take as long as a call, where that was not measured (speeds.py)
ONLY_FATAL = 4  # of ONNX Runtime's levels of logging: what goes wrong is raised

NAME = "model.onnx"
OLD = 3600  # seconds after which another graph of the same model is removed
Make = Callable[[Path], None]  # writes a graph's file, and others beside it


def installed(package: str) -> bool:
    """Whether a package of the extra can be imported."""
    return find_spec(package) is not None


def require(*packages: str) -> None:
    """Raise BertcliError if the packages of the extra are not installed."""
    missing = [name for name in packages if not installed(name)]
    if missing:
        raise BertcliError(f"This needs {' and '.join(missing)}: pip install 'bertcli[onnx]'.")


def runtime() -> Any:
    """The package onnxruntime, told before it starts to send nothing: newer builds report to their maker by default."""
    require("onnxruntime")
    os.environ["ORT_DISABLE_TELEMETRY"] = "1"
    import onnxruntime

    return onnxruntime


def available_devices() -> list[str]:
    """The devices that the installed ONNX Runtime was built for, by its own names: cpu, cuda, coreml."""
    return [name.removesuffix(PROVIDER).lower() for name in runtime().get_available_providers()]


def provider_of(device: str) -> str:
    """What ONNX Runtime calls a device; BertcliError if the installed one cannot use it."""
    usable = available_devices()
    if device.lower() not in usable:
        raise BertcliError(
            f"There is no device {quoted(device)} in the installed onnxruntime: choose from {', '.join(usable)}, or "
            "install a build of it for that device."
        )
    name: str = runtime().get_available_providers()[usable.index(device.lower())]
    return name


_turn = Lock()  # a session's own threads are as many as there are cores


def _forget() -> None:
    """In a forked child: a thread that does not exist here may have had its turn."""
    global _turn
    _turn = Lock()


platforms.at_fork(after_in_child=_forget)


@contextmanager
def _explained(what: str) -> Iterator[None]:
    """Turn an error of ONNX Runtime into a BertcliError that begins with `what`."""
    try:
        yield
    except Exception as error:  # ONNX Runtime's classes have none in common
        raise BertcliError(f"{what}: {first_line(error)}.") from error


class Session:
    """An ONNX file, ready to run; may be shared between threads."""

    def __init__(self, file: Path | bytes, device: str = "cpu", *, packed: bool = True) -> None:
        """`file` may be a file's content; `packed`: with a second copy of the weights, in the order that kernels read.

        Errors: BertcliError if the file or the device, one of `available_devices`, cannot be used.
        """
        onnxruntime = runtime()
        options = onnxruntime.SessionOptions()
        name = "a graph" if isinstance(file, bytes) else file
        if any("\ud800" <= letter <= "\udfff" for letter in str(name)):  # as Python shows bytes of another encoding
            raise BertcliError(f"ONNX Runtime cannot open {name}: the name of a file must be UTF-8.")
        options.log_severity_level = ONLY_FATAL
        options.intra_op_num_threads = thread_count()
        if not packed:
            options.add_session_config_entry("session.disable_prepacking", "1")
            options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        provider = provider_of(device)
        with _explained(f"ONNX Runtime cannot open {name} on {device}"):
            self._session = onnxruntime.InferenceSession(file, options, providers=[provider])
        if self._session.get_providers()[0] != provider:  # it went on with another
            raise BertcliError(
                f"ONNX Runtime could not start {device} on this machine: see to its driver and libraries, or leave out "
                "the device (--device)."
            )
        self._device = device
        self.overhead = OVERHEAD
        self.folder = None if isinstance(file, bytes) else file.parent
        self.inputs = tuple(value.name for value in self._session.get_inputs())
        self.outputs = tuple(value.name for value in self._session.get_outputs())

    def __call__(self, inputs: Mapping[str, NDArray[np.int64]]) -> dict[str, NDArray[Any]]:
        """The results of a batch; of the inputs those are used that the graph has."""
        used = {name: inputs[name] for name in self.inputs}
        with _explained(f"ONNX Runtime failed on {self._device}"), _turn:
            results = self._session.run(None, used)
        return dict(zip(self.outputs, results, strict=True))


def hidden_states(session: Session, batch: Packed) -> Array:
    """The first result of a session for packed sentences [token, hidden]; sentences of about one length are padded."""
    lengths = np.diff(batch.offsets)
    sentence = np.repeat(np.arange(len(lengths)), lengths)
    widths = batch.positions[batch.offsets[1:] - 1] + 1  # more than the length where a mask left tokens out
    hidden: Array | None = None
    for group in groups(widths, session.overhead):
        row = np.full(len(lengths), -1)
        row[group] = np.arange(len(group))
        tokens = np.flatnonzero(row[sentence] >= 0)
        places = row[sentence[tokens]], batch.positions[tokens]
        inputs = {name: np.zeros((len(group), int(widths[group].max())), np.int64) for name in INPUTS}
        for name, values in ((IDS, batch.ids[tokens]), (SEGMENTS, batch.segments[tokens]), (MASK, 1)):
            inputs[name][places] = values
        (states,) = session(inputs).values()
        if hidden is None:
            hidden = np.empty((len(sentence), states.shape[-1]), np.float32)
        hidden[tokens] = states[places]
    assert hidden is not None
    return hidden


def groups(widths: Integers, overhead: int) -> Iterator[Integers]:
    """Sentences that run together, widest first, so that all runs take the least time.

    A run takes as long as its padded tokens and `overhead` more, so padding is cheap where a call is dear. Sentences of
    one width stay together; of the ways to cut the sequence of widths the best is found from its beginning on:

        least[j] = min over i < j of least[i] + overhead · runs + widths[i] · sentences between i and j
    """
    order = np.argsort(-widths, kind="stable")
    distinct, counts = np.unique(widths, return_counts=True)
    distinct, before = distinct[::-1], np.concatenate([[0], np.cumsum(counts[::-1])])
    least, start_of = np.zeros(len(before)), np.zeros(len(before), np.intp)
    for end in range(1, len(before)):
        padded = distinct[:end] * (before[end] - before[:end])
        times = least[:end] + overhead * -(-padded // MOST_TOKENS) + padded
        start_of[end] = times.argmin()
        least[end] = times[start_of[end]]
    cuts = [len(distinct)]
    while cuts[-1]:
        cuts.append(int(start_of[cuts[-1]]))
    for start, end in zip(cuts[:0:-1], cuts[-2::-1], strict=True):
        most = max(1, MOST_TOKENS // max(1, int(distinct[start])))
        for first in range(before[start], before[end], most):
            yield order[first : min(first + most, before[end])]


# ----------------------------------------------------------------------------------------- graphs that are kept


def cache_folder() -> Path:
    """Where graphs are kept."""
    return platforms.cache_folder() / "onnx"


def cache_size() -> int:
    """Bytes of all graphs that are kept."""
    return sum(file.stat().st_size for file in cache_folder().rglob("*") if file.is_file())


def key_of(parameters: Mapping[str, Array], *settings: object) -> str:
    """A name for the graph of these weights, made with these settings: equal only if all of them are."""

    def digest(array: Array) -> bytes:
        return hashlib.sha256(np.ascontiguousarray(array).data).digest()

    whole = hashlib.sha256(repr(settings).encode())
    with ThreadPoolExecutor(thread_count()) as pool:
        for (path, array), part in zip(parameters.items(), pool.map(digest, parameters.values()), strict=True):
            whole.update(f"{path} {array.shape} ".encode() + part)
    return whole.hexdigest()


def open_cached(model: str, key: str, make: Make, device: str) -> Session:
    """The graph of this key, made if it is not there.

    Safe with several processes: a graph is made under another name and renamed, and the first one stays. Errors:
    BertcliError, also for a cache that cannot be written.
    """
    place = cache_folder() / model / key
    try:
        if not place.is_dir():
            _keep(place, make)
    except OSError as error:
        raise BertcliError(
            f"ONNX Runtime's graph cannot be written to {place} ({error.strerror or error}): make room, or name "
            f"another folder for it ({platforms.CACHE_VARIABLE})."
        ) from None
    return Session(place / NAME, device)


def _keep(place: Path, make: Make) -> None:
    """Make a graph beside its place and move it there, unless another process has put one there in the meantime."""
    place.parent.mkdir(parents=True, exist_ok=True)
    _remove_old(place.parent)
    draft = Path(mkdtemp(prefix=".", dir=place.parent))
    try:
        made = draft / "made"
        made.mkdir()
        make(made / NAME)
        for part in made.iterdir():
            with part.open("r+b") as written:
                os.fsync(written.fileno())
        try:
            os.rename(made, place)
        except OSError:
            if not place.is_dir():  # no other process was faster
                raise
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def _remove_old(folder: Path) -> None:
    for other in folder.iterdir() if not folder.is_symlink() else ():  # what it leads to may be anyone's
        with suppress(OSError):
            if time.time() - other.stat().st_mtime > OLD:
                shutil.rmtree(other)
