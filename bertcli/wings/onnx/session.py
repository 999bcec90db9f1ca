"""Run graphs with ONNX Runtime: its devices, `Session`, and the cache of graphs. open_session.py opens a model's.

Graphs are made once and opened in place afterwards, under a folder that may be deleted at any time. Each model has a
folder, named after where its weights lie and the precision; in it is a folder for each graph, named after the weights,
the settings and the versions. When a graph is made, what else lies there for an hour or longer is removed: graphs of
earlier weights or versions, and what a killed process left. The graphs of other models stay.
"""

import hashlib
import json
import logging
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

from bertcli.engine.packing import Packed
from bertcli.engine.threads import thread_count
from bertcli.errors import BertcliError, first_line, quoted
from bertcli.platforms import at_fork
from bertcli.tracing.dispatch import Array, Integers
from bertcli.wings.onnx.graph import IDS, MASK, PLACES, POSITIONS, ROWS, SEGMENTS

logger = logging.getLogger("bertcli")

CACHE_VARIABLE = "BERTCLI_CACHE"  # of the environment: another place for the cache
PROVIDER = "ExecutionProvider"  # ends the names of ONNX Runtime's devices
MOST_TOKENS = 2048  # of a run of several sentences: with more, activations leave the caches and nothing is gained
# times the hidden size: the number of keys to which a token attends in the time of its products (measured: 2.3 to 4.6)
ATTENTION = 3
OVERHEAD = 16  # tokens that take as long as a call, where that was not measured (pass_times.py)
# Microseconds for which a thread waits in a loop for the next product before it sleeps. ONNX Runtime's own limit is
# longer, and a thread in a loop takes the core from the one that it waits for: with other programs on both cores a pass
# of 128 tokens of MiniLM's sizes took 200 ms, 133 with this limit, 135 with NumPy. Older ONNX Runtime ignores it.
SPIN_KEY, SPIN = "session.intra_op.spin_duration_us", "200"
ONLY_FATAL = 4  # of ONNX Runtime's levels of logging: what goes wrong is raised

NAME = "model.onnx"
DIGESTS = "digests.json"  # beside a graph that is kept: the digest of each of its files
OLD = 3600  # seconds after which another graph of the same model is removed
Make = Callable[[Path], None]  # writes a graph's file, and others beside it


def installed(package: str) -> bool:
    """True if a package of the extra can be imported."""
    return find_spec(package) is not None


def require(*packages: str) -> None:
    """Raise BertcliError if the packages of the extra are not installed."""
    missing = [name for name in packages if not installed(name)]
    if missing:
        raise BertcliError(f"This needs {' and '.join(missing)}: pip install 'bertcli[onnx]'.")


def runtime() -> Any:
    """Import onnxruntime with its telemetry disabled: newer builds report to their maker by default."""
    require("onnxruntime")
    os.environ["ORT_DISABLE_TELEMETRY"] = "1"
    import onnxruntime

    return onnxruntime


def available_devices() -> list[str]:
    """List the devices that the installed ONNX Runtime was built for: cpu, cuda, coreml and others."""
    return [name.removesuffix(PROVIDER).lower() for name in runtime().get_available_providers()]


def provider_of(device: str) -> str:
    """Return ONNX Runtime's name for a device. Errors: BertcliError if the installed one cannot use it."""
    usable = available_devices()
    if device.lower() not in usable:
        raise BertcliError(
            f"There is no device {quoted(device)} in the installed onnxruntime: choose from {', '.join(usable)}, or "
            "install a build of it for that device."
        )
    name: str = runtime().get_available_providers()[usable.index(device.lower())]
    return name


_turn = Lock()  # one run at a time: a session already uses a thread per core


def _forget() -> None:
    """Replace the lock in a forked child: the thread that held it does not exist there."""
    global _turn
    _turn = Lock()


at_fork(after_in_child=_forget)


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
        """Open a file, or the content of one.

        packed: let ONNX Runtime keep a second copy of the weights, in the order that its kernels read.

        Errors: BertcliError if the file or the device, one of `available_devices`, cannot be used.
        """
        onnxruntime = runtime()
        options = onnxruntime.SessionOptions()
        name = "a graph" if isinstance(file, bytes) else file
        if any("\ud800" <= letter <= "\udfff" for letter in str(name)):  # as Python shows bytes of another encoding
            raise BertcliError(f"ONNX Runtime cannot open {name}: the name of a file must be UTF-8.")
        options.log_severity_level = ONLY_FATAL
        options.intra_op_num_threads = thread_count()
        options.add_session_config_entry(SPIN_KEY, SPIN)
        if not packed:
            options.add_session_config_entry("session.disable_prepacking", "1")
            options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        provider = provider_of(device)
        with _explained(f"ONNX Runtime cannot open {name} on {device}"):
            self._session = onnxruntime.InferenceSession(file, options, providers=[provider])
        if self._session.get_providers()[0] != provider:  # it went on with another
            raise BertcliError(
                f"ONNX Runtime could not start {device} on this machine: see to its driver and libraries, or leave out "
                "the device."
            )
        self._device = device
        self.overhead = OVERHEAD
        self.folder = None if isinstance(file, bytes) else file.parent
        self.inputs = tuple(value.name for value in self._session.get_inputs())
        outputs = self._session.get_outputs()
        self.outputs = tuple(value.name for value in outputs)
        self.hidden = int(outputs[0].shape[-1]) if outputs and isinstance(outputs[0].shape[-1], int) else 1

    def __call__(self, inputs: Mapping[str, NDArray[np.int64]]) -> dict[str, NDArray[Any]]:
        """Run the graph, and return its results by name; inputs that the graph does not have are left out."""
        used = {name: inputs[name] for name in self.inputs}
        with _explained(f"ONNX Runtime failed on {self._device}"), _turn:
            results = self._session.run(None, used)
        return dict(zip(self.outputs, results, strict=True))


def hidden_states(session: Session, batch: Packed) -> Array:
    """Run the session of a packed graph on packed sentences, in groups; return packed rows [token, hidden]."""
    lengths = np.diff(batch.offsets)
    widths = batch.positions[batch.offsets[1:] - 1] + 1  # more than the length where a mask left tokens out
    runs = [*groups(widths, session.overhead, session.hidden)]
    if len(runs) == 1:
        return _states(session, batch, slice(None), lengths, widths)
    sentence = np.repeat(np.arange(len(lengths)), lengths)
    hidden = np.empty((len(sentence), session.hidden), np.float32)
    for group in runs:
        chosen = np.zeros(len(lengths), np.bool_)
        chosen[group] = True
        tokens = np.flatnonzero(chosen[sentence])
        hidden[tokens] = _states(session, batch, tokens, lengths[chosen], widths[chosen])
    return hidden


def _states(session: Session, batch: Packed, tokens: Integers | slice, lengths: Integers, widths: Integers) -> Array:
    """Run a session on some sentences of a batch, those of these tokens, lengths and widths."""
    shape = len(lengths), int(widths.max())
    positions = batch.positions[tokens]
    places = positions + np.repeat(np.arange(0, shape[0] * shape[1], shape[1]), lengths)
    mask, rows = np.zeros((2, shape[0] * shape[1]), np.int64)
    mask[places] = 1
    rows[places] = np.arange(len(places))
    inputs = {
        IDS: batch.ids[tokens],
        SEGMENTS: batch.segments[tokens],
        POSITIONS: positions,
        PLACES: places,
        MASK: mask.reshape(shape),
        ROWS: rows.reshape(shape),
    }
    (states,) = session({name: values.astype(np.int64, copy=False) for name, values in inputs.items()}).values()
    return states


def groups(widths: Integers, overhead: int, hidden: int) -> Iterator[Integers]:
    """Group sentences into runs, widest first, so that all runs together take the least time.

    A run costs its tokens, which every grouping has, `overhead` tokens, and attention, for which alone sentences are
    padded: that of a token to `width` keys takes as long as width / (ATTENTION · hidden) tokens. Sentences of one width
    stay together. The best cuts of the sorted widths are found by dynamic programming:

        least[j] = min over i < j of least[i] + overhead · runs + attention of the sentences between i and j
    """
    if len(widths) == 1:
        yield np.zeros(1, np.intp)
        return
    order = np.argsort(-widths, kind="stable")
    distinct, counts = np.unique(widths, return_counts=True)
    distinct, before = distinct[::-1], np.concatenate([[0], np.cumsum(counts[::-1])])
    least, start_of = np.zeros(len(before)), np.zeros(len(before), np.intp)
    for end in range(1, len(before)):
        padded = distinct[:end] * (before[end] - before[:end])
        attention = padded * distinct[:end] / (ATTENTION * hidden)
        times = least[:end] + overhead * -(-padded // MOST_TOKENS) + attention
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
    """Return the folder in which graphs are cached: in $BERTCLI_CACHE, or bertcli in the user's folder for caches."""
    named = os.environ.get(CACHE_VARIABLE)
    if named:
        return Path(named).expanduser() / "onnx"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "bertcli" / "onnx"


def cache_size() -> int:
    """Count the bytes of all cached graphs."""
    return sum(file.stat().st_size for file in cache_folder().rglob("*") if file.is_file())


def open_cached(model: str, key: str, make: Make, device: str) -> Session:
    """Open the cached graph of this key; make it if it is missing, or damaged: if a digest of its files differs.

    Safe with several processes: a graph is made under a temporary name and renamed; the first one stays. Errors:
    BertcliError, also for a cache that cannot be written.
    """
    folder = cache_folder() / model / key
    try:
        if folder.is_dir() and not _is_whole(folder):
            logger.warning("the graph in %s is damaged: making it again.", folder)
            shutil.rmtree(folder)
        if not folder.is_dir():
            _make_folder(folder, make)
    except OSError as error:
        raise BertcliError(
            f"ONNX Runtime's graph cannot be written to {folder} ({error.strerror or error}): make room, or name "
            f"another folder for it ({CACHE_VARIABLE})."
        ) from None
    return Session(folder / NAME, device)


def _make_folder(folder: Path, make: Make) -> None:
    """Make a graph in a temporary folder and rename that, unless another process was faster."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    _remove_old(folder.parent)
    draft = Path(mkdtemp(prefix=".", dir=folder.parent))
    try:
        made = draft / "made"
        made.mkdir()
        make(made / NAME)
        (made / DIGESTS).write_text(json.dumps(_digests(made)))
        for part in made.iterdir():
            with part.open("r+b") as written:
                os.fsync(written.fileno())
        try:
            os.rename(made, folder)
        except OSError:
            if not folder.is_dir():  # no other process was faster
                raise
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def _digests(folder: Path) -> dict[str, str]:
    """Digest a graph's file, and that of its weights if it has one."""
    with ThreadPoolExecutor(thread_count()) as pool:
        files = sorted(folder.glob(f"{NAME}*"))
        return dict(zip((file.name for file in files), pool.map(_digest, files), strict=True))


def _digest(file: Path) -> str:
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "blake2b").hexdigest()


def _is_whole(folder: Path) -> bool:
    """True if a kept graph's files have the digests that were noted when it was made."""
    with suppress(OSError, ValueError):
        return bool(json.loads((folder / DIGESTS).read_bytes()) == _digests(folder))
    return False


def _remove_old(folder: Path) -> None:
    for other in folder.iterdir() if not folder.is_symlink() else ():  # what it leads to may be anyone's
        with suppress(OSError):
            if time.time() - other.stat().st_mtime > OLD:
                shutil.rmtree(other)
