"""Merge the files of a run's shards (--shard I/N) into one, byte for byte the file of a run without shards.

Each shard's file has a note beside it, v-00003-of-00007.npy.shard: its number, the run's fingerprint, a digest.
"""

import glob
import json
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from bertcli.errors import BertcliError
from bertcli.files.companion_files import ERRORS, SETTINGS_FILE
from bertcli.files.formats import ARRAYS, TABLES, Format, check_output, ending_of, format_of
from bertcli.files.write.resumable_output import Fingerprint, ResumableOutput, difference, digest, save
from bertcli.folder.files import read_object

# Endings of the files beside a shard's: a pattern such as v-* matches them, too.
NO_SHARDS = (".shard", f".{ERRORS}", f".{SETTINGS_FILE}")


class Note(NamedTuple):
    """The note beside a shard's file: its number, their count, the run, a digest of the file and its list of errors."""

    shard: int
    of: int
    fingerprint: Fingerprint
    digest: str


def shard_file(file: str, number: int, count: int) -> str:
    """Return the name of a shard's file."""
    path = Path(file)
    return str(path.with_name(f"{path.stem}-{number:05}-of-{count:05}{path.suffix}"))


def write_note(file: str, shard: tuple[int, int], fingerprint: Fingerprint) -> None:
    """Write the note beside a shard's file."""
    common = {name: value for name, value in fingerprint.items() if name != "--shard"}
    save(f"{file}.shard", json.dumps(Note(*shard, common, _digest(file))._asdict()).encode())


def merge(patterns: Sequence[str], target: str) -> int:
    """Merge the files of all shards, given as names or patterns, into `target`; return the number of shards.

    Errors: BertcliError naming a file that is missing, damaged, or of another run or format; then nothing is written.
    """
    check_output(target, (*TABLES, *ARRAYS))
    ending = ending_of(target)
    files: list[str] = []
    for pattern in patterns:
        files += [file for file in sorted(glob.glob(pattern)) if not file.endswith(NO_SHARDS)] or [pattern]
    files, format = _complete(files, ending), format_of(target, Format)
    with ResumableOutput(target) as segments:
        for file in files:
            if format.notes_errors and _errors(file).exists():
                segments.add({ERRORS: _errors(file).read_bytes()}, {})
        beside = Path(f"{files[0]}.{SETTINGS_FILE}")
        with segments.result(beside.read_bytes() if beside.exists() else None) as stream:
            format.join(stream, files)
    return len(files)


def _complete(files: Sequence[str], ending: str) -> list[str]:
    """Sort files by their shards' numbers. Errors: BertcliError unless they are all shards of one run."""
    for file in files:
        if ending_of(file) != ending:
            raise BertcliError(f"{file} cannot be merged into a {ending} file, only into one of its own format.")
    notes = [_note(file) for file in files]
    first = notes[0]
    by_number: dict[int, str] = {}
    for file, note in zip(files, notes, strict=True):
        other_count = f"one of {note.of} shards, not of {first.of}" if note.of != first.of else None
        why = other_count or difference(first.fingerprint, note.fingerprint)
        if why:
            raise BertcliError(f"{file} is of another run than {files[0]}: {why}.")
        if note.shard in by_number:
            raise BertcliError(f"{file} and {by_number[note.shard]} are the same shard, {note.shard}/{note.of}.")
        by_number[note.shard] = file
    missing = [number for number in range(first.of) if number not in by_number]
    if missing:
        names = ", ".join(f"{number}/{first.of}" for number in missing[:20])
        raise BertcliError(f"Shards are missing: {names}{', …' if missing[20:] else ''}.")
    return [by_number[number] for number in sorted(by_number)]


def _note(file: str) -> Note:
    if not Path(file).is_file():
        path = Path(file)
        shards = f"{path.stem}-*-of-*{path.suffix}"
        written = any(path.parent.glob(shards))
        advice = f"; its shards are here: give '{path.with_name(shards)}'" if written else ""
        raise BertcliError(f"There is no file {file}{advice}.")
    if not Path(f"{file}.shard").is_file():
        raise BertcliError(f"{file} is not a whole shard: {file}.shard, which a run with --shard writes, is missing.")
    try:
        note = Note(**read_object(Path(f"{file}.shard")))
    except (BertcliError, TypeError):
        raise BertcliError(f"{file}.shard is damaged: run this shard again.") from None
    if note.digest != _digest(file):
        raise BertcliError(f"{file} or its list of errors has changed: run shard {note.shard}/{note.of} again.")
    return note


def _errors(file: str) -> Path:
    return Path(f"{file}.{ERRORS}")


def _digest(file: str) -> str:
    return digest(path for path in (Path(file), _errors(file)) if path.exists())
