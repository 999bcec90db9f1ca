"""How fast bertcli is here, beside the peers that are installed: `python tests/bench [--json] [--only …] [--quick]`.

Never a test: it asserts nothing. Everything runs on one random BERT-base, made once in a folder for temporary files.
Ratios are of the best times, taken in turn in one run: peers' time over bertcli's, so more is better. With `--readme`
what the README says of speed is measured, and printed as it stands there: on an idle machine, with all peers installed.
"""

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

sys.path[0:1] = [str(Path(__file__).parents[1]), str(Path(__file__).parents[2])]

Record = dict[str, Any]
WITHIN = "BERTCLI_BENCH_CORES"  # set in the processes that `--cores` starts


def groups(
    folder: Path,
    quick: bool,
    texts: Path | None,
    models: list[str],
    beside: Path | None,
    published: Path | None,
) -> dict[str, Callable[[], Iterator[Record]]]:
    """What can be measured, by name; modules are imported when their turn comes."""
    from bench.calls import costs, short_calls
    from bench.engines import first_results, int8_accuracy
    from bench.families import families
    from bench.machine import machine, products
    from bench.passes import passes
    from bench.peers import minilm_checkpoint
    from bench.processes import processes
    from bench.served import served
    from bench.stream import stream

    return {
        "machine": machine,
        "products": lambda: products(3 if quick else 15),
        "passes": lambda: passes(folder, quick, beside),
        "families": lambda: families(quick, published),
        "stream": lambda: stream(folder, 120 if quick else 600, texts, beside),
        "processes": lambda: processes(folder, 1 if quick else 3, beside),
        "first-results": lambda: first_results(folder, 1 if quick else 3),
        "calls": lambda: short_calls(0.3 if quick else 2),
        "costs": lambda: costs(folder, 0.1 if quick else 0.7),
        "served": lambda: served(Path(models[0]) if models else minilm_checkpoint(), 100 if quick else 600, beside),
        "int8": lambda: int8_accuracy(200, texts, models),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="one JSON array instead of a table")
    parser.add_argument("--readme", action="store_true", help="what the README says of speed, measured here")
    parser.add_argument("--quick", action="store_true", help="fewer repetitions and texts")
    parser.add_argument("--texts", type=Path, metavar="FILE", help="real texts for the stream, one a line")
    parser.add_argument("--model", nargs="+", default=[], metavar="NAME", help="more models, for int8 and served")
    parser.add_argument("--beside", type=Path, metavar="FOLDER", help="another checkout, to measure as a peer")
    parser.add_argument("--published", type=Path, metavar="FOLDER", help="JinaBERT's code, a peer of families")
    parser.add_argument(
        "--only",
        nargs="+",
        default=[],
        help="machine, products, passes, families, stream, processes, first-results, calls, costs, served, int8",
    )
    parser.add_argument(
        "--cores", nargs="+", type=int, default=[], metavar="N", help="repeat it all with so many cores, e.g. 1 2"
    )
    chosen = parser.parse_args()
    if chosen.cores and WITHIN not in os.environ:
        for count in chosen.cores:
            with_cores(count)
        return
    import bertcli  # the checkout beside this file, installed or not; before NumPy, for its choice of kernel
    from bench.peers import base_checkpoint, missing

    if chosen.readme:
        from bench.readme import readme

        for text in readme(base_checkpoint(), chosen.quick):
            print(text, flush=True)
        return
    records: list[Record] = []
    for name, run in groups(
        base_checkpoint(),
        chosen.quick,
        chosen.texts,
        chosen.model,
        chosen.beside,
        chosen.published,
    ).items():
        if chosen.only and name not in chosen.only:
            continue
        for record in run():
            records.append({"group": name, **record})
            if not chosen.json:
                print(line(name, record), flush=True)
    if chosen.json:
        print(json.dumps({"bertcli": bertcli.__version__, "missing": missing(), "records": records}, indent=2))
    else:
        print(f"Not installed, so not measured: {', '.join(missing()) or 'nothing'}.")


def with_cores(count: int) -> None:
    """Run this command in a process of its own that may use so many cores; so do the peers in it."""
    here = sorted(os.sched_getaffinity(0))
    print(f"\n{count} of {len(here)} cores", flush=True)
    limits = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"), str(count))
    subprocess.run(
        [sys.executable, str(Path(__file__).parent), *sys.argv[1:]],
        check=True,
        env={**os.environ, **limits, WITHIN: str(count)},
        preexec_fn=partial(os.sched_setaffinity, 0, here[:count]),
    )


def line(group: str, record: Record) -> str:
    """One record as a row: what was measured, then name and value of each number."""
    numbers = "  ".join(f"{key} {value}" for key, value in record.items() if key != "what" and value is not None)
    return f"{group:15}{record['what']:34}{numbers}"


if __name__ == "__main__":
    main()
