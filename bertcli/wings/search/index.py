"""What `search` keeps (`KeptVectors`): vectors of files' passages, by a digest of each file, in memory and in a file.

The file of --index is a .safetensors file, whatever its name:

    embeddings   float32 [part, width]   a vector for each part of a passage
    counts       int32 [part]            or, of sparse vectors, how many entries each has,
    indices      int32 [entry]           where these stand in the vocabulary,
    values       float32 [entry]         and the entries
    spans        int32 [part, 3]         the number of the passage in its file, and the part's first and last character
    index        JSON (metadata)         what made the vectors, and of each file digest, path and number of parts

It holds no texts: these are read from the files, whose digests say that they are still the same.
"""

import io
import json
import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bertcli.errors import BertcliError
from bertcli.files.arrays import FileArray, open_safetensors, write_safetensors
from bertcli.files.texts import STANDARD_INPUT
from bertcli.files.write.save import save
from bertcli.wings.search.rows import DenseRows, Rows, SparseRows, joined

FORMAT = "bertcli search index 1"
Spans = NDArray[np.int32]


class FileVectors(NamedTuple):
    """The parts of a file's passages, each [passage, start, end], and their vectors; `path` is the whole path."""

    path: str
    spans: Spans
    rows: Rows

    @property
    def size(self) -> int:
        """The bytes of its arrays."""
        arrays: Any = self.rows
        return self.spans.nbytes + sum(int(array.nbytes) for array in arrays)

    def copied(self) -> "FileVectors":
        """A copy with arrays of its own."""
        rows: Any = self.rows
        return FileVectors(self.path, self.spans.copy(), type(rows)(*(array.copy() for array in rows)))


class Made(NamedTuple):
    """The origin of vectors: the model's fingerprint (name and digest), the settings, and the width."""

    model: str
    settings: Mapping[str, Any]
    width: int


class KeptVectors:
    """The vectors of files' passages between searches: in a file, if `index` names one, and in memory, if `most` > 0.

    most: bytes of vectors in memory. What was searched longest ago goes first. Vectors that were made otherwise are
    forgotten; so are those of a file that has changed (`Passages` leaves them out).
    """

    def __init__(self, index: str | None = None, most: int = 0) -> None:
        self.index = index
        self._most = most
        self._made: Made | None = None
        self._entries: dict[str, FileVectors] = {}
        self._written: object = None  # the state of the index that the entries in memory are of

    @property
    def is_used(self) -> bool:
        """True if vectors outlive a search."""
        return self.index is not None or self._most > 0

    def read(self, made: Made) -> dict[str, FileVectors]:
        """The entries by the digests of files. Errors: as of `read_index`."""
        if self._made == made and self._written == self._state():
            return {**self._entries}
        return {} if self.index is None else read_index(self.index, made)

    def write(self, made: Made, entries: Mapping[str, FileVectors]) -> None:
        """Write the index, if there is one. Errors: BertcliError."""
        if self.index is not None:
            write_index(self.index, made, entries)

    def remember(self, made: Made, entries: dict[str, FileVectors], used: Collection[str]) -> None:
        """Keep entries in memory, those that are used now before all others."""
        if self._most == 0:
            return
        latest_first = [*reversed(entries)]
        of_now = [digest for digest in latest_first if digest in used]
        kept: list[str] = []
        size = 0
        for digest in [*of_now, *(digest for digest in latest_first if digest not in used)]:
            size += entries[digest].size
            if size > self._most:
                break
            kept.append(digest)
        # Of an index memory has all or nothing.
        is_whole = self.index is None or len(kept) == len(entries)
        self._made, self._written = (made, self._state()) if is_whole else (None, None)
        before = self._entries
        self._entries = {}
        for digest in reversed(kept if is_whole else []):
            entry = entries[digest]
            # Parts of a large array would keep all of it.
            self._entries[digest] = entry if before.get(digest) is entry else entry.copied()

    def _state(self) -> object:
        """What changes when the index is written."""
        if self.index is None or not os.path.exists(self.index):
            return None
        found = os.stat(self.index)
        return found.st_mtime_ns, found.st_size, found.st_ino


def remove_outdated(entries: dict[str, FileVectors], files: Iterable[str], used: Collection[str]) -> None:
    """Remove the entries of earlier states of `files`, and of files that are gone; `used`: the digests in use now.

    What other searches left of files that still exist stays.
    """
    paths = {os.path.abspath(file) for file in files}
    for digest, entry in [*entries.items()]:
        if digest not in used and (entry.path in paths or not os.path.exists(entry.path)):
            del entries[digest]


def read_index(file: str, made: Made) -> dict[str, FileVectors]:
    """Read the entries of an index, by the files' digests; none if the index does not exist yet.

    Errors: BertcliError for a file that is no index or damaged, and for one whose vectors were made otherwise.
    """
    path = Path(file)
    if path.suffix == ".bin":
        raise BertcliError(f"{file}: choose a name for the index that does not end in .bin (--index).")
    if not path.exists():
        return {}
    try:
        readers = open_safetensors(path)
        described = json.loads(str(readers["index"]()))
        if described["format"] != FORMAT:
            raise ValueError(described["format"])
        model, settings = str(described["model"]), dict(described["settings"])
        rows = _rows(readers)
        entries = _entries(described["files"], readers["spans"](), rows)
    except (BertcliError, OSError, ValueError, KeyError, TypeError):
        raise BertcliError(
            f"{file} is damaged, or no index of bertcli search: delete it, or give another name (--index)."
        ) from None
    if model.split()[-1] != made.model.split()[-1]:
        raise BertcliError(
            f"{file} was made by another model, {model}, not by {made.model}: give that one (-m), or another --index."
        )
    is_sparse = bool(settings.get("sparse"))
    if is_sparse != bool(made.settings.get("sparse")):
        holds = "sparse vectors: give" if is_sparse else "dense vectors: leave out"
        raise BertcliError(f"{file} holds {holds} --sparse, or give another --index.")
    for name, value in made.settings.items():
        if settings.get(name) != value:
            raise BertcliError(
                f"{file} was made with {name} {settings.get(name)!r}, and this command has {value!r}: give the same "
                "options, or another --index."
            )
    if not rows.fit(made.width):
        raise BertcliError(f"{file} is damaged: delete it, and the next search writes a new one.")
    return entries


def _rows(readers: Mapping[str, Any]) -> Rows:
    """The vectors in the file. Errors: ValueError, KeyError for arrays that are no vectors; `read_index` explains."""
    kind: Any = DenseRows if "embeddings" in readers else SparseRows
    rows: Rows = kind(*(readers[name]() for name in kind._fields))
    if not rows.are_whole:
        raise ValueError("rows")
    return rows


def divided(
    files: Mapping[str, tuple[str, Sequence[Any]]], parts: Sequence[tuple[int, int, int]], rows: Rows, done: int
) -> Iterator[tuple[str, FileVectors]]:
    """Yield the entry of each file, by its digest, whose passages are all among the first `done` texts.

    files: each one's name and passages, by its digest. parts: the number of a text, and the first and last character of
    a part of it, in the order of the files; rows: their vectors.
    """
    spans = np.array(parts, np.int32).reshape(-1, 3)
    firsts = [0, *accumulate(len(passages) for _, passages in files.values())]
    firsts = [first for first in firsts if first <= done]
    bounds = np.searchsorted(spans[:, 0], firsts).tolist()
    rows_of_files: Iterator[Rows] = rows.between(bounds)
    # Only as many files as there are rows between bounds.
    each = zip(files.items(), firsts, pairwise(bounds), rows_of_files, strict=False)
    for (digest, (file, _)), first, (begin, end), of_file in each:
        path = file if file == STANDARD_INPUT else os.path.abspath(file)
        yield digest, FileVectors(path, spans[begin:end] - np.array((first, 0, 0), np.int32), of_file)


def _entries(files: Any, spans: Spans, rows: Rows) -> dict[str, FileVectors]:
    """The parts of each file. Errors: ValueError, KeyError, TypeError for what does not fit together."""
    count = rows.number
    if spans.shape != (count, 3) or spans.dtype != np.int32:
        raise ValueError("arrays")
    counts = [int(entry["parts"]) for entry in files]
    bounds = [0, *accumulate(counts)]
    if min(counts, default=0) < 0 or bounds[-1] != count:
        raise ValueError("parts")
    rows_of_files: Iterator[Rows] = rows.between(bounds)
    each = zip(files, pairwise(bounds), rows_of_files, strict=True)
    return {
        str(entry["digest"]): FileVectors(str(entry["path"]), spans[begin:end], of_file)
        for entry, (begin, end), of_file in each
    }


def write_index(file: str, made: Made, entries: Mapping[str, FileVectors]) -> None:
    """Write an index: beside it first, then in its place. Errors: BertcliError."""
    rows = joined([entry.rows for entry in entries.values()])
    files = [{"digest": digest, "path": entry.path, "parts": len(entry.spans)} for digest, entry in entries.items()]
    described = {"format": FORMAT, "model": made.model, "settings": made.settings, "files": files}
    arrays = [_stored(name, array) for name, array in rows._asdict().items()]
    spans = FileArray("spans", "<i4", (rows.number, 3), [entry.spans for entry in entries.values()])
    stream = io.BytesIO()
    write_safetensors(stream, [*arrays, spans, FileArray.text("index", json.dumps(described))])
    save(file, stream.getvalue())


def _stored(name: str, array: NDArray[Any]) -> FileArray:
    return FileArray(name, array.dtype.newbyteorder("<").str, array.shape, [array])
