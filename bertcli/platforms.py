"""Differences between operating systems: forks, syncing of folders, memory.

Everything here has a way for a system that lacks it. `.github/decisions/platforms.md` lists the tested systems.
"""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any


def at_fork(**hooks: Callable[[], Any]) -> None:
    """Register functions to call around a fork: `before`, `after_in_parent`, `after_in_child`.

    Windows has no forks, so there is nothing to register.
    """
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(**hooks)


def sync_folder(folder: Path) -> None:
    """Wait until the names in a folder are on the disk, if the system has a call for it. Errors: OSError."""
    try:
        opened = os.open(folder, os.O_RDONLY)
    except PermissionError:
        return  # Windows opens no folders; its file system brings names to the disk in order by itself
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


def physical_memory() -> int | None:
    """Bytes of memory that this machine has; None where the system does not say."""
    if not hasattr(os, "sysconf"):
        return None
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
