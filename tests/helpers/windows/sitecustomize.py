"""A process that is as on Windows where programs notice it; loaded at its start, as PYTHONPATH names this folder.

* Modules and names of `os` and `signal` that only POSIX has are missing: for bertcli, since the standard library and
  other packages have Windows' ways only where they were installed for it.
* A folder cannot be opened. A file that any such process has open or mapped can be neither replaced nor removed, and
  the folder that it is in not renamed. A rename replaces nothing.
* /proc and /sys do not exist. Only sockets can be waited for with `select`.
* Text is written with CRLF, and as cp1252 where no encoding is given.

`sys.platform` stays that of Linux: what asks for it is not played, nor are drive letters and backslashes.
"""

import builtins
import errno
import io
import os
import select
import signal
import stat
import sys
import sysconfig
from collections.abc import Sequence
from contextlib import suppress
from types import ModuleType
from typing import Any

MODULES = {"fcntl", "grp", "pty", "pwd", "resource", "syslog", "termios", "tty"}
OS_NAMES = [
    "chown",
    "chroot",
    "fchmod",
    "fchown",
    "fork",
    "forkpty",
    "fstatvfs",
    "getegid",
    "geteuid",
    "getgid",
    "getgroups",
    "getloadavg",
    "getpgid",
    "getpgrp",
    "getpriority",
    "getresuid",
    "getuid",
    "killpg",
    "lchown",
    "mkfifo",
    "mknod",
    "nice",
    "openpty",
    "posix_fadvise",
    "posix_fallocate",
    "pread",
    "preadv",
    "pwrite",
    "pwritev",
    "register_at_fork",
    "sched_getaffinity",
    "sched_setaffinity",
    "sched_yield",
    "sendfile",
    "setgid",
    "setpgid",
    "setpriority",
    "setsid",
    "setuid",
    "statvfs",
    "sync",
    "sysconf",
    "sysconf_names",
    "tcgetpgrp",
    "ttyname",
    "uname",
    "wait",
    "wait3",
    "wait4",
    "waitid",
]
SIGNAL_NAMES = [
    "SIGALRM",
    "SIGCHLD",
    "SIGHUP",
    "SIGKILL",
    "SIGPIPE",
    "SIGQUIT",
    "SIGSTOP",
    "SIGUSR1",
    "SIGUSR2",
    "alarm",
    "getitimer",
    "pause",
    "pthread_sigmask",
    "setitimer",
    "sigpending",
    "sigwait",
]
LIBRARY = sysconfig.get_paths()["stdlib"]
MARK = "BERTCLI_PLAYED"  # a variable of the environment of all processes that are played together
HIDDEN = ("/proc", "/sys")

original_import, original_open, original_stat = builtins.__import__, io.open, os.stat
original_os_open, original_select = os.open, select.select
originals = {name: getattr(os, name) for name in ("replace", "rename", "unlink", "remove")}


def from_library(depth: int = 2) -> bool:
    """Whether the standard library calls, or filelock, which on Windows locks by other means."""
    file = sys._getframe(depth).f_code.co_filename
    return (
        file.startswith("<frozen") or (file.startswith(LIBRARY) and "site-packages" not in file) or "filelock" in file
    )


class WindowsModule(ModuleType):
    """A module without the names that only POSIX has."""

    def __init__(self, module: ModuleType, missing: Sequence[str]) -> None:
        super().__init__(module.__name__)
        self._module, self._missing = module, frozenset(missing)

    def __getattr__(self, name: str) -> Any:
        if name in self._missing:
            raise AttributeError(f"module '{self.__name__}' has no attribute '{name}'", name=name, obj=self)
        return getattr(self._module, name)


FOR_BERTCLI = {"os": WindowsModule(os, OS_NAMES), "signal": WindowsModule(signal, SIGNAL_NAMES)}


def import_as_on_windows(name: str, globals: Any = None, *arguments: Any, **named: Any) -> Any:
    package, for_bertcli = name.partition(".")[0], str((globals or {}).get("__name__")).startswith("bertcli")
    if for_bertcli and package in MODULES:
        raise ModuleNotFoundError(f"No module named '{name}'", name=name)
    return (for_bertcli and FOR_BERTCLI.get(package)) or original_import(name, globals, *arguments, **named)


def hidden(path: Any) -> bool:
    return isinstance(path, str | os.PathLike) and str(path).startswith(HIDDEN)


def refuse(path: Any) -> PermissionError:
    return PermissionError(errno.EACCES, "Permission denied", str(path))


def open_as_on_windows(file: Any, mode: str = "r", buffering: int = -1, encoding: str | None = None,
                       errors: str | None = None, newline: str | None = None, **named: Any) -> Any:  # fmt: skip
    if hidden(file):
        raise FileNotFoundError(errno.ENOENT, "No such file or directory", str(file))
    if isinstance(file, str | os.PathLike) and os.path.isdir(file):
        raise refuse(file)
    if "b" not in mode:
        encoding = "cp1252" if encoding in (None, "locale") else encoding
        newline = "\r\n" if newline is None and set(mode) & set("wax") else newline
    return original_open(file, mode, buffering, encoding, errors, newline, **named)


def os_open_as_on_windows(path: Any, *arguments: Any, **named: Any) -> int:
    if os.path.isdir(path) and not from_library():
        raise refuse(path)
    return original_os_open(path, *arguments, **named)


def stat_as_on_windows(path: Any, *arguments: Any, **named: Any) -> os.stat_result:
    if hidden(path):
        raise FileNotFoundError(errno.ENOENT, "No such file or directory", str(path))
    return original_stat(path, *arguments, **named)


def in_use() -> set[str]:
    """The files that a process of this play has open or mapped."""
    mark = f"{MARK}={os.environ[MARK]}".encode()
    files = set()
    for number in filter(str.isdigit, os.listdir("/proc")):
        try:
            with original_open(f"/proc/{number}/environ", "rb") as environment:
                if mark not in environment.read().split(b"\0"):
                    continue
            with original_open(f"/proc/{number}/maps", encoding="utf-8", errors="surrogateescape") as maps:
                files |= {line.split(maxsplit=5)[5].rstrip("\n") for line in maps if "/" in line}
            descriptors = os.listdir(f"/proc/{number}/fd")
        except OSError:
            continue  # the process has ended, or is another user's
        for descriptor in descriptors:
            with suppress(OSError):  # closed by now, as the one that listed them
                files.add(os.readlink(f"/proc/{number}/fd/{descriptor}"))
    return files


def check_free(path: Any) -> None:
    """Refuse a file that is in use, or a folder with such a file in it."""
    whole = os.path.realpath(path)
    inside = whole + os.sep if os.path.isdir(path) else None
    if any(file == whole or (inside and file.startswith(inside)) for file in in_use()):
        raise refuse(path)


def replace_as_on_windows(source: Any, target: Any, **named: Any) -> None:
    check_free(source)
    if os.path.exists(target):
        if os.path.isdir(target):
            raise refuse(target)
        check_free(target)
    originals["replace"](source, target, **named)


def rename_as_on_windows(source: Any, target: Any, **named: Any) -> None:
    if os.path.lexists(target):
        raise FileExistsError(errno.EEXIST, "File exists", str(target))
    replace_as_on_windows(source, target, **named)


def unlink_as_on_windows(path: Any, **named: Any) -> None:
    if "dir_fd" not in named and os.path.lexists(path):
        check_free(path)
    originals["unlink"](path, **named)


def select_as_on_windows(*waited_for: Any) -> Any:
    for one in (one for some in waited_for[:3] for one in some):
        if not stat.S_ISSOCK(os.fstat(one if isinstance(one, int) else one.fileno()).st_mode):
            raise OSError(10038, "An operation was attempted on something that is not a socket")
    return original_select(*waited_for)


def play() -> None:
    patched: Any = builtins
    patched.__import__, patched.open = import_as_on_windows, open_as_on_windows
    for module, functions in (
        (io, {"open": open_as_on_windows}),
        (os, {"open": os_open_as_on_windows, "stat": stat_as_on_windows, "replace": replace_as_on_windows,
              "rename": rename_as_on_windows, "unlink": unlink_as_on_windows, "remove": unlink_as_on_windows}),
        (select, {"select": select_as_on_windows}),
    ):  # fmt: skip
        for name, function in functions.items():
            setattr(module, name, function)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(newline="\r\n")


if MARK in os.environ:
    play()
