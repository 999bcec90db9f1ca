"""Runs that are killed, meet a full disk, or whose reader leaves: `python tests/large/interrupted.py [--runs 200]`.

kill: SIGKILL at a random moment, perhaps several times, then --resume to the end: the file must be that of an unbroken
run, byte for byte. disk: the same on a file system that fills up (a small tmpfs where that may be mounted, else a limit
on the size of files). pipe: the reader of standard output leaves at a random moment: status 0, nothing on standard
error but notes, and what was read is a beginning of the whole. Prints a line for each and status 1 for a miss.
"""

import argparse
import json
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from helpers.checkpoints import make  # noqa: E402
from large.flat import WORDS  # noqa: E402

# A shard is written after every few windows here, so that a run of a second has many moments to be killed in.
COMMAND = (
    "import sys\nfrom bertcli.files.write import resumable_output\nfrom bertcli.cli import main\n"
    "resumable_output.SHORTEST_SEGMENT = resumable_output.LONGEST_SEGMENT = 0.02\n"
    "from bertcli.tasks.running import run\nrun.BATCH_TOKENS = 60\nmain()\n"
)
FORMS = {
    "npy": ["encode"],
    "safetensors": ["encode", "--pooling", "none"],
    "npz": ["encode", "--dtype", "int8", "--pooling", "none"],
    "jsonl": ["encode"],
    "json": ["fill-mask", "--top-k", "3"],
    "parquet": ["encode", "--id-column", "id"],
}
Setup = Callable[[], None] | None
One = Callable[["Scene", str], tuple[bool, bool]]  # a run of the kind: is the result right, was something resumed


class Scene:
    """A model, a file of texts, and for each form of output what an unbroken run makes of it."""

    def __init__(self, folder: Path, lines: int, forms: Sequence[str], seed: int) -> None:
        self.folder = folder
        self.choose = random.Random(seed)
        self.model = make(folder / "model", head="pretraining")
        self.source = folder / "in.jsonl"
        with self.source.open("w", encoding="utf-8") as file:
            for index in range(lines):
                text = " ".join(self.choose.choices(WORDS, k=self.choose.randint(0, 30)))
                file.write(json.dumps({"id": index, "text": f"[MASK] {text}"}) + "\n")
        self.whole: dict[str, bytes] = {}
        self.seconds: dict[str, float] = {}
        for form in forms:
            target = folder / f"whole.{form}"
            with self.start(self.arguments(form, target), stderr=subprocess.DEVNULL) as process:
                begun = work_begun(process, target)
            assert process.returncode == 0, form
            self.seconds[form] = time.monotonic() - begun
            self.whole[form] = target.read_bytes()

    def arguments(self, form: str, target: Path) -> list[str]:
        options = ["-m", str(self.model), "-i", str(self.source)]
        return [sys.executable, "-c", COMMAND, *FORMS[form], *options, "-o", str(target), "--resume"]

    def start(self, arguments: Sequence[str], setup: Setup = None, **streams: Any) -> subprocess.Popen[bytes]:
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        return subprocess.Popen(arguments, env=environment, preexec_fn=setup, **streams)

    def run(self, form: str, target: Path, setup: Setup = None) -> subprocess.CompletedProcess[bytes]:
        arguments = self.arguments(form, target)
        with self.start(arguments, setup, stderr=subprocess.PIPE) as process:
            _, err = process.communicate()
        return subprocess.CompletedProcess(arguments, process.returncode, b"", err)

    def agrees(self, form: str, target: Path) -> bool:
        """Whether the file is that of an unbroken run, with nothing left beside it."""
        left = [path.name for path in target.parent.iterdir() if path.name.startswith(f".{target.name}.")]
        same = target.exists() and target.read_bytes() == self.whole[form] and not left
        target.unlink(missing_ok=True)
        return same


def kill(scene: Scene, form: str) -> tuple[bool, bool]:
    """Kill once or more; whether the result is right, and whether there was something to go on with."""
    target = scene.folder / f"v.{form}"
    resumed = False
    for _ in range(scene.choose.choice([1, 1, 2, 3])):
        with scene.start(scene.arguments(form, target), stderr=subprocess.DEVNULL) as process:
            if scene.choose.random() < 0.9:
                work_begun(process, target)
            time.sleep(scene.choose.uniform(0, 1.0) * scene.seconds[form])
            process.kill()
        resumed |= has_shards(target)
        if target.exists() and target.read_bytes() != scene.whole[form]:
            return False, resumed
    done = scene.run(form, target)
    return done.returncode == 0 and scene.agrees(form, target), resumed


def work_begun(process: subprocess.Popen[bytes], target: Path) -> float:
    """Wait until the process has loaded its model and begun to write; the time then."""
    while process.poll() is None and not target.with_name(f".{target.name}.parts").exists():
        time.sleep(0.001)
    return time.monotonic()


def has_shards(target: Path) -> bool:
    return any(target.parent.glob(f".{target.name}.parts/*.npz"))


def full_tmpfs(disk: Path, size: int) -> One:
    """Runs on a tmpfs in which a ballast of random size leaves too little room."""

    def one(scene: Scene, form: str) -> tuple[bool, bool]:
        target, ballast = disk / f"v.{form}", disk / "ballast"
        room = int(len(scene.whole[form]) * scene.choose.uniform(0.05, 1.0))
        with ballast.open("wb") as file:
            file.truncate(0)
            os.posix_fallocate(file.fileno(), 0, max(1, size - room))
        first = scene.run(form, target)
        ballast.unlink()
        return gone_on(scene, form, target, first, b"No space left on device")

    return one


def full_limit(scene: Scene, form: str) -> tuple[bool, bool]:
    """Runs that may make no file larger than a random size."""
    target = scene.folder / f"v.{form}"
    room = int(len(scene.whole[form]) * scene.choose.uniform(0.05, 1.0))
    first = scene.run(form, target, lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (room, room)))
    return gone_on(scene, form, target, first, b"File too large")


def gone_on(
    scene: Scene, form: str, target: Path, first: subprocess.CompletedProcess[bytes], message: bytes
) -> tuple[bool, bool]:
    """A run that met a full disk said so and left no target; another one goes on, to the whole."""
    if first.returncode == 0:
        return scene.agrees(form, target), False
    said = message in first.stderr and not target.exists()
    resumed = has_shards(target)
    done = scene.run(form, target)
    return said and done.returncode == 0 and scene.agrees(form, target), resumed


def pipe(scene: Scene, form: str) -> tuple[bool, bool]:
    """The reader takes some bytes and leaves."""
    arguments = [*scene.arguments("jsonl", Path("-"))[:-3], "--format", "jsonl"]
    wanted = int(len(scene.whole["jsonl"]) * scene.choose.uniform(0, 1))
    with scene.start(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        read = process.stdout.read(wanted)
        process.stdout.close()
        errors = [line for line in process.stderr.read().splitlines() if not line.startswith(b"Note: ")]
    return process.returncode == 0 and not errors and scene.whole["jsonl"].startswith(read), wanted > 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=200, help="of each kind")
    parser.add_argument("--kinds", default="kill,disk,pipe")
    parser.add_argument("--forms", default=",".join(FORMS))
    parser.add_argument("--lines", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    forms = options.forms.split(",")
    missed = 0
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        scene = Scene(folder, options.lines, list(dict.fromkeys([*forms, "jsonl"])), options.seed)
        times = ", ".join(f"{form} {scene.seconds[form]:.1f}" for form in scene.whole)
        print(f"seconds an unbroken run works: {times}", flush=True)
        for kind in options.kinds.split(","):
            kinds: dict[str, Callable[[], tuple[One, str]]] = {
                "kill": lambda: (kill, ""),
                "disk": lambda: disk(stack, scene, folder),
                "pipe": lambda: (pipe, ""),
            }
            one, how = kinds[kind]()
            missed += repeated(kind + how, one, scene, forms, options.runs)
    return int(missed > 0)


def disk(stack: ExitStack, scene: Scene, folder: Path) -> tuple[One, str]:
    """A full disk as real as can be had here."""
    mount = folder / "disk"
    mount.mkdir()
    size = 4 * max(map(len, scene.whole.values()))
    if subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", mount], capture_output=True).returncode:
        return full_limit, " (limited size of files)"
    stack.callback(lambda: subprocess.run(["umount", mount], check=True))
    return full_tmpfs(mount, size), " (tmpfs)"


def repeated(name: str, one: One, scene: Scene, forms: Sequence[str], runs: int) -> int:
    right = resumed = 0
    for number in range(runs):
        form = forms[number % len(forms)]
        good, went_on = one(scene, form)
        right += good
        resumed += went_on
        if not good:
            print(f"{name}: run {number} ({form}) missed", flush=True)
    print(f"{name}: {right} of {runs} right ({resumed} had something to go on with)", flush=True)
    return runs - right


if __name__ == "__main__":
    sys.exit(main())
