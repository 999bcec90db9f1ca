"""Peak memory and time per token of `bertcli encode` over growing files: `python tests/large/flat.py [-m DIR]`.

Prints a row a file; memory is to be flat to 5 %, processor time per token to 10 % (what an empty file takes is taken
off first). Status 1 when it is not.
"""

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parent.parent.parent
LEAST, MOST = 4, 40  # words of a text
COMMON = """
the of and to in a is that was he for it with as his on be at by had not are but from or have an they which one you were
all her she there would their we him been has when who will no more if out so up said what its about than into them can
only other time new some could these two may first then do any like my now over such our man me even most made after
also did many off before must well back through years much where your way down should because long each just those
"""
WORDS = COMMON.split()


class Cost(NamedTuple):
    """What a run took."""

    kilobytes: int
    seconds: float
    wall: float


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-m", "--model", help="folder of a model (default: the bundled one)")
    parser.add_argument("--lines", default="1000,20000,200000", help="lengths of the files")
    parser.add_argument("--repeat", type=int, default=3, help="runs of files of up to 20,000 lines; the median counts")
    parser.add_argument("--ending", default="npy")
    parser.add_argument("--threads", default=None)
    options = parser.parse_args()
    model = ["-m", options.model] if options.model else []
    more = ["--threads", options.threads] if options.threads else []
    sizes = [int(size) for size in options.lines.split(",")]
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / f"v.{options.ending}"
        files = {size: write(Path(folder) / f"{size}.jsonl", size) for size in [0, *sizes]}
        costs = {
            size: median(
                [run([*model, *more, "-i", str(file), "-o", str(target)]) for _ in range(repeats(size, options.repeat))]
            )
            for size, file in files.items()
        }
        tokens = {size: count(options.model, files[size], Path(folder)) for size in sizes}
    print(f"{'lines':>9} {'tokens':>10} {'peak MB':>8} {'CPU s':>8} {'CPU µs/token':>13} {'wall s':>8} {'tokens/s':>9}")
    each = {}
    for size in sizes:
        memory, seconds, wall = costs[size]
        each[size] = (seconds - costs[0].seconds) / tokens[size] * 1e6
        rate = tokens[size] / (wall - costs[0].wall)
        print(
            f"{size:>9,} {tokens[size]:>10,} {memory / 1024:>8.1f} {seconds:>8.2f} {each[size]:>13.2f} {wall:>8.2f} "
            f"{rate:>9,.0f}"
        )
    memory_spread = spread([costs[size].kilobytes for size in sizes])
    time_spread = spread(list(each.values()))
    print(f"memory: largest / smallest = 1 + {memory_spread:.1%} (to be within 5 %)")
    print(f"time per token: largest / smallest = 1 + {time_spread:.1%} (to be within 10 %)")
    return int(memory_spread > 0.05 or time_spread > 0.10)


def write(path: Path, lines: int) -> Path:
    choose = random.Random(lines)
    with path.open("w", encoding="utf-8") as file:
        for index in range(lines):
            text = " ".join(choose.choices(WORDS, k=choose.randint(LEAST, MOST)))
            file.write(json.dumps({"id": index, "text": text}) + "\n")
    return path


def repeats(size: int, asked: int) -> int:
    return asked if size <= 20_000 else 1


def run(arguments: Sequence[str]) -> Cost:
    """One `bertcli encode` as a process of its own."""
    begun = time.monotonic()
    process = subprocess.Popen(
        [sys.executable, "-m", "bertcli", "encode", *arguments], stderr=subprocess.DEVNULL, env=environment()
    )
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"bertcli encode {' '.join(arguments)}: status {process.returncode}")
    return Cost(used.ru_maxrss, used.ru_utime + used.ru_stime, time.monotonic() - begun)


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT)}


def count(model: str | None, file: Path, folder: Path) -> int:
    """Tokens in a file, special ones included."""
    sys.path.insert(0, str(ROOT))
    import bertcli

    tokenizer = bertcli.load(model).tokenizer
    texts = [json.loads(line)["text"] for line in file.open(encoding="utf-8")]
    return sum(len(one.ids) for i in range(0, len(texts), 5000) for one in tokenizer.encode(texts[i : i + 5000]))


def median(costs: Sequence[Cost]) -> Cost:
    middle = len(costs) // 2
    return Cost(*(sorted(values)[middle] for values in zip(*costs, strict=True)))


def spread(values: Sequence[float]) -> float:
    return max(values) / min(values) - 1


if __name__ == "__main__":
    sys.exit(main())
