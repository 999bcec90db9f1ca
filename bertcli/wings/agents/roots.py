"""Which files a client of `bertcli mcp` may name: those below the folders that --root gives, links followed."""

import glob
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from bertcli.engine.pauses import check_wanted
from bertcli.errors import BertcliError, quoted
from bertcli.files.read.passages import ENDINGS, with_texts
from bertcli.tasks.limits import NO_LIMITS, DoorLimits, check_files

MOST_FILES = 10_000
MOST_NAMES = 200_000  # below a folder that are looked at


class Roots:
    """The folders below which a client may read files.

    folders: as --root names them. Errors: BertcliError for one that is no folder.
    """

    def __init__(self, folders: Sequence[str]) -> None:
        self.folders = [Path(folder).resolve() for folder in folders]
        for name, folder in zip(folders, self.folders, strict=True):
            if not folder.is_dir():
                raise BertcliError(f"There is no folder {quoted(name)} (--root).")

    def files(self, patterns: Sequence[str], limits: DoorLimits = NO_LIMITS) -> list[str]:
        """List the files that names or patterns, such as "docs/**/*.md", name below a folder, without links.

        A folder stands for all files in it that search can read, without hidden ones; of several files, those whose
        rows have no text are left out. Errors: BertcliError for a file outside of the folders, a pattern without files,
        files without texts, and for too many files, or too large ones.
        """
        names: dict[str, None] = {}
        of_several: dict[str, None] = {}
        for pattern in patterns:
            matched = [path for folder in self.folders for path in self._matching(folder, pattern)]
            if not matched:
                raise BertcliError(f"No file below {self} is named {quoted(pattern)}.")
            names |= dict.fromkeys(map(str, matched))
            if len(matched) > 1:
                of_several |= dict.fromkeys(map(str, matched))
            if len(names) > MOST_FILES:
                raise BertcliError(f"{quoted(pattern)} names more than {MOST_FILES:,} files: name fewer.")
        check_files(names, limits)
        # Only now, since it reads a row of each.
        left_out = of_several.keys() - with_texts([*of_several])
        return [name for name in names if name not in left_out]

    def shown(self, file: str) -> str:
        """Name a file as a client does: from its folder on."""
        for folder in self.folders:
            if Path(file).is_relative_to(folder):
                return _readable(str(Path(file).relative_to(folder)))
        return _readable(Path(file).name)

    def in_words(self, text: str) -> str:
        """Return a text in which files are named as a client names them."""
        for folder in self.folders:
            text = text.replace(f"{folder}{os.sep}", "")
        return _readable(text)

    def _matching(self, folder: Path, pattern: str) -> Iterator[Path]:
        """Yield the files below a folder that a pattern names. Errors: BertcliError for one outside of it."""
        is_pattern = glob.has_magic(pattern)
        if is_pattern and (Path(pattern).is_absolute() or ".." in Path(pattern).parts):
            raise BertcliError(f"{quoted(pattern)} is not below {self}: give a pattern that begins in a folder there.")
        try:
            path = (folder / pattern).resolve()
            is_file, is_folder = path.is_file(), path.is_dir()
        except (RuntimeError, OSError, ValueError):  # a cycle of links, a name that no file can have
            return
        # Before anything is said of it: what is elsewhere is refused whether it is there or not.
        is_inside = self._is_inside(path)
        if not is_pattern and not is_inside:
            raise BertcliError(f"{quoted(pattern)} is not below {self} (--root).")
        if is_inside and is_file:
            yield path
        elif is_inside and is_folder:
            yield from self._matching(path, "**/*")
        elif is_pattern:
            yield from self._of_pattern(folder, pattern)

    def _of_pattern(self, folder: Path, pattern: str) -> Iterator[Path]:
        names_hidden = _is_hidden(Path(pattern))
        looked_at = []
        # pathlib's ** follows no links, so that a cycle of them ends.
        for named in folder.glob(pattern):
            check_wanted()
            if _is_hidden(named.relative_to(folder)) and not names_hidden:
                continue
            looked_at.append(named)
            if len(looked_at) > MOST_NAMES:
                raise BertcliError(f"{quoted(pattern)} names more than {MOST_NAMES:,} files and folders: name fewer.")
        for named in sorted(looked_at):
            if named.is_file() and named.name.endswith(ENDINGS) and self._is_inside(named.resolve()):
                yield named.resolve()

    def _is_inside(self, path: Path) -> bool:
        """True for a path, without links, below one of the folders."""
        return any(path.is_relative_to(folder) for folder in self.folders)

    @property
    def relative(self) -> str:
        """A sentence on what names are relative to."""
        return f"Names are relative to {self}; . is all of it."

    def __str__(self) -> str:
        return " or ".join(quoted(folder.name or "/") for folder in self.folders)


def _is_hidden(path: Path) -> bool:
    """True if a name in the path begins with a dot, as .git does."""
    return any(part.startswith(".") for part in path.parts)


def _readable(text: str) -> str:
    """A text with the names of files in it; a byte of a name that is not UTF-8 is written as in "caf\\xe9.txt"."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
