"""Fuzz every reader of bertcli: `python tests/fuzz [--cases N] [--minutes M] [--parts csv,gz]`.

Each round of cases runs in a process of its own whose memory is bounded (address space above what it has at its start),
and each case has its time. What is found (anything but a result or a BertcliError of one short line; a crash, a hang)
is saved in --keep. Status 1 when something was.
"""

import argparse
import contextlib
import hashlib
import os
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from fuzz.rounds import Limits, Outcomes, Round, guarded

ROUND = 1000  # cases in a process


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=10_000, help="cases for each part (default 10,000)")
    parser.add_argument("--minutes", type=float, default=30, help="stop after so long, at the end of a round")
    parser.add_argument("--parts", default="", help="comma separated; all of them by default")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=5, help="time for a case")
    parser.add_argument("--memory", type=int, default=256, help="MiB for a round beyond an idle process")
    parser.add_argument("--keep", type=Path, default=Path("fuzz-found"), help="folder for what is found")
    options = parser.parse_args()
    os.environ |= {"TOKENIZERS_PARALLELISM": "false", "RAYON_NUM_THREADS": "1"}
    # The tokenizers library reads these when it is loaded.
    from fuzz.parts import PARTS

    chosen = {name: PARTS[name] for name in (options.parts.split(",") if options.parts else PARTS)}
    by_part = {name: Outcomes() for name in chosen}
    limits = Limits(options.seconds, options.memory << 20)
    end = time.monotonic() + 60 * options.minutes
    together = min(ROUND, options.cases)
    rounds = [(number, name) for number in range(-(-options.cases // together)) for name in chosen]
    with contextlib.suppress(KeyboardInterrupt):  # the table tells what was done
        for number, name in rounds:
            if time.monotonic() > end:
                break
            outcomes = guarded(Round(chosen[name], options.seed + number, together, limits))
            by_part[name].add(outcomes)
            for report, files in outcomes.found.values():
                keep(options.keep / name, report, files)
    show(by_part)
    return 1 if any(outcomes.found for outcomes in by_part.values()) else 0


def keep(folder: Path, report: str, files: dict[str, bytes]) -> None:
    """Save what was found, under a name that is the same for the same report."""
    place = folder / hashlib.sha256(report.encode()).hexdigest()[:10]
    place.mkdir(parents=True, exist_ok=True)
    (place / "report.log").write_text(report, encoding="utf-8", errors="backslashreplace")
    for name, data in files.items():
        (place / name).parent.mkdir(exist_ok=True)
        (place / name).write_bytes(data)
    print(f"found: {place}: {report.strip().splitlines()[-1][:150]}", file=sys.stderr, flush=True)


def show(by_part: dict[str, Outcomes]) -> None:
    print(f"{'part':<15} {'cases':>9} {'read':>9} {'refused':>9} {'found':>6} {'slowest ms':>11} {'peak MiB':>9}")
    total = Outcomes()
    for name, outcomes in [*by_part.items(), ("all", total)]:
        counts = outcomes.counts
        print(
            f"{name:<15} {counts.total():>9,} {counts['read']:>9,} {counts['refused']:>9,} {counts['found']:>6,} "
            f"{1000 * outcomes.slowest:>11.1f} {outcomes.peak / 2**20:>9.1f}"
        )
        total.add(outcomes)


if __name__ == "__main__":
    sys.exit(main())
