"""How many cores' worth of CPU time this process may use, according to the operating system and container limits.

Does not import NumPy: its library starts one thread per visible core when it is loaded, whatever the limits are.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from pathlib import PurePosixPath

GROUPS = "/proc/self/cgroup"
MOUNT = "/sys/fs/cgroup"


def usable_cores() -> int:
    """Cores this process may run on, or fewer if its control groups (cgroups) allow less CPU time than that."""
    quota = cpu_quota()
    return cores() if quota is None else max(1, min(cores(), math.ceil(quota)))


def cores() -> int:
    """Cores this process may run on."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def cpu_quota() -> float | None:
    """CPU seconds per second that the control groups of this process allow, as with `docker run --cpus 1.5`.

    None without a limit, and on systems without control groups.
    """
    return min((limit for folder, version in _groups() if (limit := _limit(folder, version)) is not None), default=None)


def _groups() -> Iterator[tuple[str, int]]:
    """The folders of this process's control groups and all their parents, which hold the limits; and their version."""
    for line in _read(GROUPS).splitlines():
        _, _, rest = line.partition(":")
        controllers, colon, path = rest.partition(":")
        if not colon or (controllers and "cpu" not in controllers.split(",")):
            continue
        mount, version = (f"{MOUNT}/cpu", 1) if controllers else (MOUNT, 2)
        group = PurePosixPath(path)
        for above in (group, *group.parents):  # a container may see its own group as the root
            yield f"{mount}{above}", version


def _limit(folder: str, version: int) -> float | None:
    """Microseconds allowed per period, divided by the period; None unless both are whole numbers."""
    if version == 2:
        found = _read(f"{folder}/cpu.max").split()
    else:
        found = [_read(f"{folder}/cpu.cfs_{name}_us").strip() for name in ("quota", "period")]
    if len(found) != 2 or not all(number.isdecimal() for number in found) or not int(found[1]):
        return None  # "max", -1, or no such file
    return int(found[0]) / int(found[1])


def _read(file: str) -> str:
    try:
        with open(file, encoding="utf-8", errors="replace") as opened:
            return opened.read()
    except OSError:
        return ""
