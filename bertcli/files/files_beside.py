"""Where a result may be written (`check_output`), and the files beside it: FILE.errors.jsonl, FILE.settings.json.

They are for what its format has no room for. A result replaces and removes those of an earlier one of its name. So
they, and the folder of an unfinished run, are looked at before: what bertcli has not written is not touched. Nor is
what a command reads (`check_not_read`).
"""

import json
import os
import re
from collections.abc import Iterable
from pathlib import Path

from bertcli.errors import BertcliError
from bertcli.files.formats import BY_ENDING, ERRORS, SEVERAL, SINGLE, ending_of

ERROR_FIELDS = {"index", "text", "error"}  # of a line of ERRORS, perhaps with an id
SETTINGS_FIELDS = {"model", "settings"}
LONGEST = 1 << 26  # bytes: longer are neither a line of ERRORS nor settings
# What lies in the folder of an unfinished run.
OF_PARTS = r"\d{6,}\.npz|fingerprint\.json|lock|process|new|result|settings"


def names_beside(ending: str) -> tuple[str, ...]:
    """The ends of the names of what may stand beside a file of this ending."""
    format = BY_ENDING.get(ending.lower())
    return () if format is None else format.beside


def replaced_by(file: str) -> list[str]:
    """The files that writing this one may replace or remove: itself, and those beside it."""
    return [file, *(f"{os.path.realpath(file)}.{name}" for name in names_beside(Path(file).suffix))]


def check_output(file: str | None, allowed: tuple[str, ...]) -> None:
    """Raise BertcliError for an output file with another ending, or one that cannot be written; None passes."""
    if file is None:
        return
    ending = ending_of(file)
    if ending not in allowed:
        single = ending in SINGLE and not {*SEVERAL}.isdisjoint(allowed)
        why = f" A {ending} file holds one array, but this result has several." if single else ""
        choices = f"one of {', '.join(allowed)}" if len(allowed) > 1 else allowed[0]
        raise BertcliError(f"Cannot write {file}: the ending must be {choices}.{why}")
    path = Path(os.path.realpath(file))
    if not path.parent.is_dir():
        raise BertcliError(f"Cannot write {file}: there is no folder {path.parent}.")
    if path.exists() and not path.is_file():
        raise BertcliError(f"Cannot write {file}: something of that name exists that is not a file.")
    if path.exists() and not os.access(path, os.W_OK):
        raise BertcliError(f"Cannot write {file}: it already exists and is write-protected.")
    if not os.access(path.parent, os.W_OK):
        raise BertcliError(f"Cannot write {file}: the folder {path.parent} is not writable.")
    check_beside(file)
    format = BY_ENDING.get(ending)
    if format is not None and format.needs is not None:
        format.needs(file)


def check_not_read(
    output: str | None, files: Iterable[str | Path], why: str = "the texts are read from {}", option: str = "--output"
) -> None:
    """Raise BertcliError if writing this option's file would replace or remove a file that is read, by whatever name.

    why: how it is read; {} stands for it.
    """
    there = [] if output is None else [*filter(os.path.isfile, replaced_by(output))]
    for file in filter(os.path.isfile, files if there else ()):
        for replaced in there:
            if os.path.samefile(file, replaced):
                it = "it" if replaced == output else f"{replaced} beside it"
                raise BertcliError(f"Cannot write {output}: {why.format(it)}; choose another {option}.")


def parts_folder(path: Path) -> Path:
    """The folder in which a result is made."""
    return path.with_name(f".{path.name}.parts")


def check_beside(file: str) -> None:
    """Raise BertcliError if something beside a file, or in the folder of an unfinished run, is not bertcli's."""
    path = Path(os.path.realpath(file))
    beside = [path.with_name(f"{path.name}.{name}") for name in names_beside(Path(file).suffix)]
    strange = [other for other in beside if os.path.lexists(other) and not _is_ours(other)]
    folder = parts_folder(path)
    if folder.is_dir():
        strange += [other for other in folder.iterdir() if not re.fullmatch(OF_PARTS, other.name)]
    if strange:
        other = os.path.relpath(strange[0], path.parent)
        raise BertcliError(
            f"Cannot write {file}: {other} beside it would be replaced or removed, and is not of an earlier result; "
            "move it, or choose another --output."
        )


def _is_ours(file: Path) -> bool:
    """True if a file beside a result has the form of what bertcli writes there."""
    is_errors = file.name.endswith(ERRORS)
    try:
        with open(file, "rb") as stream:
            begin = stream.readline(LONGEST) if is_errors else stream.read(LONGEST)
        noted = json.loads(begin)
    except (OSError, ValueError, RecursionError):
        return False
    if not isinstance(noted, dict):
        return False
    return {*noted} - {"id"} == ERROR_FIELDS if is_errors else {*noted} == SETTINGS_FIELDS
