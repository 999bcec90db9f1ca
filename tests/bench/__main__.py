"""How fast bertcli is here, beside the peers that are installed: `python tests/bench [--json] [--only …] [--quick]`.

Never a test: it asserts nothing. Everything runs on one random BERT-base, made once in a folder for temporary files.
Ratios are of the best times, taken in turn in one run: peers' time over bertcli's, so more is better. With `--readme`
what the README says of speed is measured, and printed as it stands there: on an idle machine, with all peers installed.
"""

import argparse
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

sys.path[0:1] = [str(Path(__file__).parents[1]), str(Path(__file__).parents[2])]

Record = dict[str, Any]


def groups(
    folder: Path,
    quick: bool,
    texts: Path | None,
    labeled: Path | None,
    models: list[str],
    beside: Path | None,
    published: Path | None,
) -> dict[str, Callable[[], Iterator[Record]]]:
    """What can be measured, by name; modules are imported when their turn comes."""
    from bench.engines import engines, engines_stream, first_results, int8_accuracy
    from bench.families import families
    from bench.machine import machine
    from bench.passes import passes, where_time_goes
    from bench.processes import processes
    from bench.served import served
    from bench.stream import alike, growth, shared, stream

    return {
        "machine": machine,
        "passes": lambda: passes(folder, quick, beside),
        "families": lambda: families(quick, published),
        "time": lambda: where_time_goes(folder),
        "stream": lambda: stream(folder, 120 if quick else 600, texts, beside),
        "alike": lambda: alike(folder, 1 if quick else 4),
        "workers": lambda: shared(folder, 800 if quick else 4000),
        "growth": lambda: growth(folder, (250, 1000) if quick else (1000, 4000, 16000)),
        "processes": lambda: processes(folder, 1 if quick else 3, beside),
        "engines": lambda: engines(folder, quick),
        "engines-stream": lambda: engines_stream(folder, 100 if quick else 500),
        "first-results": lambda: first_results(folder, 1 if quick else 3),
        "served": lambda: served(Path(models[0]) if models else folder, 100 if quick else 600),
        "int8": lambda: int8_accuracy(200, texts, labeled, models),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="one JSON array instead of a table")
    parser.add_argument("--readme", action="store_true", help="what the README says of speed, measured here")
    parser.add_argument("--quick", action="store_true", help="fewer repetitions and texts")
    parser.add_argument("--texts", type=Path, metavar="FILE", help="real texts for the stream, one a line")
    parser.add_argument("--labeled", type=Path, metavar="FILE", help="a .tsv of 0 or 1 and a text, for int8")
    parser.add_argument("--model", nargs="+", default=[], metavar="NAME", help="more models, for int8 and served")
    parser.add_argument("--beside", type=Path, metavar="FOLDER", help="another checkout, to measure as a peer")
    parser.add_argument("--published", type=Path, metavar="FOLDER", help="JinaBERT's code, a peer of families")
    parser.add_argument(
        "--only",
        nargs="+",
        default=[],
        help="machine, passes, families, time, stream, alike, workers, growth, processes, engines, engines-stream, "
        "first-results, served, int8",
    )
    chosen = parser.parse_args()
    import bertcli  # the checkout beside this file, installed or not; before NumPy, for its choice of kernel
    from bench.peers import base_checkpoint, missing

    if chosen.readme:
        from bench.readme import readme

        for text in readme(base_checkpoint(), chosen.quick):
            print(text, flush=True)
        return
    records: list[Record] = []
    for name, run in groups(
        base_checkpoint(), chosen.quick, chosen.texts, chosen.labeled, chosen.model, chosen.beside, chosen.published
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


def line(group: str, record: Record) -> str:
    """One record as a row: what was measured, then name and value of each number."""
    numbers = "  ".join(f"{key} {value}" for key, value in record.items() if key != "what" and value is not None)
    return f"{group:15}{record['what']:34}{numbers}"


if __name__ == "__main__":
    main()
